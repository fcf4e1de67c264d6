// Swiping on the image: right takes the suggestion, left says unknown class. Both
// have buttons too. The image follows the finger and names what lifting it would
// say; going back before lifting takes it back.

const FAR = 0.22; // of the image's width: from here on lifting the finger answers
const START = 12; // pixels before a touch is a swipe and no tap

export class Swipe {
  #from = null;
  #dx = 0;

  // asks(direction) names the answer of a direction, {value, name, mark}, or null.
  constructor(canvas, hint, { asks, answer, none, blocked }) {
    Object.assign(this, { canvas, hint, asks, answer, none, blocked });
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    canvas.addEventListener("pointerup", (event) => this.#up(event));
    canvas.addEventListener("pointercancel", () => this.#end());
    // A swipe ends in a click on some browsers; it is not meant as one.
    canvas.addEventListener("click", (event) => this.swiped && event.stopImmediatePropagation(), true);
  }

  #down(event) {
    this.swiped = false;
    if (event.pointerType === "mouse" || this.blocked()) return;
    if (this.#from || !event.isPrimary) return this.#end(); // a second finger zooms
    this.#from = { id: event.pointerId, x: event.clientX, y: event.clientY };
    this.#dx = 0;
  }

  #move(event) {
    if (event.pointerId !== this.#from?.id) return;
    this.#dx = event.clientX - this.#from.x;
    const across = Math.abs(this.#dx);
    if (!this.swiped && (across < START || across < Math.abs(event.clientY - this.#from.y))) return;
    this.swiped = true;
    this.canvas.setPointerCapture(event.pointerId);
    this.canvas.classList.add("is-swiped");
    this.canvas.style.setProperty("--swipe", `${this.#dx}px`);
    this.#show();
  }

  #up(event) {
    if (event.pointerId !== this.#from?.id) return;
    const asked = this.swiped && this.#far ? this.asks(this.#direction) : undefined;
    this.#end();
    if (asked) this.answer(asked.value);
    else if (asked === null) this.none();
  }

  #end() {
    this.#from = null;
    this.canvas.classList.remove("is-swiped");
    this.canvas.style.removeProperty("--swipe");
    this.hint.hidden = true;
  }

  get #far() {
    return Math.abs(this.#dx) >= FAR * this.canvas.clientWidth;
  }

  get #direction() {
    return this.#dx > 0 ? "right" : "left";
  }

  #show() {
    const asked = this.asks(this.#direction);
    this.hint.hidden = false;
    this.hint.dataset.direction = this.#direction;
    this.hint.classList.toggle("is-far", this.#far && asked !== null);
    const name = document.createElement("span");
    name.textContent = asked?.name ?? "No suggestion";
    this.hint.replaceChildren(...(asked ? [asked.mark] : []), name);
  }
}
