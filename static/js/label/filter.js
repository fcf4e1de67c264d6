// Type to filter, for projects with more classes than keys: type a part of the
// name, Enter answers with the first match. The field keeps the focus, so the
// next image can be typed straight away; Escape gives the keys back.

export class Filter {
  constructor(field, buttons, onPick) {
    this.field = field;
    this.buttons = buttons; // [{button, name}], classes first, then the other answers
    this.onPick = onPick;
    if (!field) return;
    field.addEventListener("input", () => this.#apply());
    field.addEventListener("keydown", (event) => this.#key(event));
  }

  focus() {
    this.field?.focus();
  }

  close() {
    if (!this.field) return;
    this.field.value = "";
    this.field.blur();
    this.#apply();
  }

  #key(event) {
    if (event.isComposing || event.repeat || event.key !== "Enter") return;
    event.preventDefault();
    const match = this.#matches()[0];
    if (this.field.value.trim() === "" || !match) return;
    this.field.value = "";
    this.#apply();
    this.onPick(match.button);
  }

  // #matches puts names that start with the text before names that contain it.
  #matches() {
    const text = this.field.value.trim().toLowerCase();
    const starts = this.buttons.filter((b) => b.name.startsWith(text));
    const contains = this.buttons.filter((b) => !b.name.startsWith(text) && b.name.includes(text));
    return [...starts, ...contains];
  }

  #apply() {
    const typing = this.field.value.trim() !== "";
    const matches = new Set(this.#matches());
    const first = typing ? this.#matches()[0] : null;
    for (const entry of this.buttons) {
      entry.button.hidden = typing && entry.isClass && !matches.has(entry);
      entry.button.classList.toggle("is-match", entry === first);
    }
  }
}
