// Flagging the image for an admin: one key and labeling goes on. The same key again
// opens a line for a note; nothing waits for it.

export class Flag {
  #item = null; // the one that the open note is about
  #focused = null;

  // send(item, note) puts the flag on its way.
  constructor(button, form, { send, notice }) {
    Object.assign(this, { button, form, send, notice });
    this.field = form.querySelector("input");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.close();
    });
  }

  press(item) {
    if (!item) return;
    if (item.flagged) return this.#open(item);
    item.flagged = true;
    this.show(item);
    this.send(item, "");
    this.notice("Flagged for an admin. Flag again to add a note.");
  }

  // show brings the button in line with the image on the screen.
  show(item) {
    if (this.#item && this.#item !== item) this.close();
    const flagged = String(item?.flagged === true);
    if (this.button.getAttribute("aria-pressed") !== flagged) this.button.setAttribute("aria-pressed", flagged);
  }

  #open(item) {
    this.#item = item;
    this.#focused = document.activeElement;
    this.field.value = item.note ?? "";
    this.notice("");
    this.form.hidden = false;
    this.field.focus();
  }

  // close sends the note, if there is a new one, and gives the keys back.
  close(keep = true) {
    const item = this.#item;
    if (!item) return false;
    const note = this.field.value.trim();
    this.#item = null;
    const inside = this.form.contains(document.activeElement);
    this.form.hidden = true;
    if (inside) (this.#focused ?? document.body).focus?.();
    if (keep && note !== (item.note ?? "")) {
      item.note = note;
      this.send(item, note);
      this.notice("Flagged with your note.");
    }
    return true;
  }
}
