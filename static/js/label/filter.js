// Type to filter, for projects with more classes than keys: type a part of the
// name, Enter answers with the first match, arrows choose another. The field keeps
// the focus, so the next image can be typed straight away; Escape gives the keys back.

export class Filter {
  #chosen = 0; // among the matches

  constructor(field, buttons, onPick) {
    this.field = field;
    this.buttons = buttons; // [{button, name}], classes first, then the other answers
    this.onPick = onPick;
    if (!field) return;
    field.addEventListener("input", () => {
      this.#chosen = 0;
      this.#apply();
    });
    field.addEventListener("keydown", (event) => this.#key(event));
  }

  focus() {
    this.field?.focus();
  }

  close() {
    if (!this.field) return;
    this.field.value = "";
    this.#chosen = 0;
    this.field.blur();
    this.#apply();
  }

  #key(event) {
    if (event.isComposing || this.#text === "") return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key] ?? 0;
    if (step !== 0) {
      event.preventDefault();
      this.#chosen = Math.min(Math.max(0, this.#chosen + step), Math.max(0, this.#matches().length - 1));
      return this.#apply();
    }
    if (event.repeat || event.key !== "Enter") return;
    event.preventDefault();
    const match = this.#matches()[this.#chosen];
    if (!match) return;
    this.field.value = "";
    this.#chosen = 0;
    this.#apply();
    this.onPick(match.button);
  }

  get #text() {
    return this.field.value.trim().toLowerCase();
  }

  // #matches puts the name itself before names that start with the text, and those
  // before names that contain it.
  #matches() {
    const text = this.#text;
    const rank = (name) => (name === text ? 0 : name.startsWith(text) ? 1 : 2);
    return this.buttons.filter((b) => b.name.includes(text)).sort((a, b) => rank(a.name) - rank(b.name));
  }

  #apply() {
    const typing = this.#text !== "";
    const matches = typing ? this.#matches() : this.buttons;
    const chosen = typing ? matches[this.#chosen] : null;
    const wanted = new Set(matches);
    for (const entry of this.buttons) {
      entry.button.hidden = entry.isClass && !wanted.has(entry);
      entry.button.classList.toggle("is-match", entry === chosen);
    }
    chosen?.button.scrollIntoView({ block: "nearest" });
  }
}
