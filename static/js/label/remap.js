// The panel of keys: press the button of an action, then the key it shall have.

import { choosable, keyOf } from "./keys.js";

export class Remap {
  #waiting = null; // the row that waits for its key

  // save(own) sends the person's own keys and returns "" or what went wrong.
  constructor(panel, keymap, { save, changed }) {
    Object.assign(this, { panel, keymap, save, changed });
    this.message = panel.querySelector("[data-keys-message]");
    this.rows = new Map([...panel.querySelectorAll("[data-key-of]")].map((b) => [b.dataset.keyOf, b]));
    for (const [action, button] of this.rows) {
      button.addEventListener("click", () => this.#wait(action));
      button.addEventListener("blur", () => this.#waiting === action && this.#stop());
    }
    panel.querySelector("[data-keys-reset]").addEventListener("click", () => this.#keep({}, "You have the usual keys again."));
    document.addEventListener("keydown", (event) => this.#key(event), true);
  }

  // render writes the keys on the buttons.
  render() {
    for (const [action, button] of this.rows) {
      button.classList.toggle("is-waiting", action === this.#waiting);
      button.firstElementChild.textContent = action === this.#waiting ? "Press…" : this.keymap.label(action);
    }
  }

  #wait(action) {
    this.#waiting = action;
    this.#say("Press the key for it. Escape leaves it as it is.");
    this.render();
  }

  #stop(message = "") {
    this.#waiting = null;
    this.#say(message);
    this.render();
  }

  #key(event) {
    const action = this.#waiting;
    if (!action || event.code.startsWith("Shift")) return;
    if (event.code === "Tab") return this.#stop(); // nobody is held here
    event.preventDefault();
    event.stopPropagation();
    if (event.repeat) return;
    if (event.code === "Escape") return this.#stop();
    if (!choosable(event)) return this.#say("This key is the browser's. Press another, or Escape.");
    const key = keyOf(event);
    const holder = this.keymap.action(key);
    if (holder && holder !== action) {
      return this.#say(`This is the key of ${this.rows.get(holder)?.dataset.name ?? "another class"}. Press another, or Escape.`);
    }
    this.#keep({ ...this.keymap.keys, [action]: key }, `Saved for ${this.rows.get(action).dataset.name}.`);
  }

  async #keep(keys, message) {
    this.keymap.use(keys);
    this.#stop(message);
    this.changed();
    const problem = await this.save(keys);
    if (problem) this.#say(`${problem} This page uses the key; the next one will not.`);
  }

  #say(text) {
    this.message.textContent = text;
  }
}
