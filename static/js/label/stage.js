// The stage: the image on the screen, its zoom, and what is done when it does not
// load. An image is swapped by its element, which is decoded: nothing is laid out
// again and nothing flickers.

import { prepare } from "./feed.js";

const RETRY_MS = 1_000;
const RETRY_MOST_MS = 8_000;
const PAN = 0.15; // of the stage, for each press of an arrow

export class Stage {
  shown = null; // the item on the screen; only that one can be answered
  #x = 0.5;
  #y = 0.5;

  // current() is the item that should be on the screen; onShown runs when it is.
  constructor(canvas, zoomButton, { current, onShown, skipKey }) {
    Object.assign(this, { canvas, zoomButton, current, onShown, skipKey });
    zoomButton.addEventListener("click", () => this.zoom());
    canvas.addEventListener("click", (event) => this.zoom(event));
    canvas.addEventListener("pointermove", (event) => this.#follow(event));
  }

  // show paints the current item as soon as it can be; there must be one.
  show() {
    const item = this.current();
    if (item === this.shown) return;
    this.clear();
    if (item.ready) return this.#paint(item);
    this.canvas.setAttribute("aria-busy", "true");
    this.#load(item, 0);
  }

  // clear takes the image away.
  clear() {
    this.shown = null;
    if (this.zoomed) this.zoom();
  }

  // empty leaves nothing behind, for a page without an image.
  empty() {
    this.clear();
    this.canvas.replaceChildren();
  }

  #paint(item) {
    const before = this.canvas.firstChild;
    if (before !== item.image) this.canvas.replaceChildren(item.image);
    this.canvas.removeAttribute("aria-busy");
    this.shown = item;
    this.onShown(item);
  }

  // #load waits for an image that is not decoded yet, trying again if it fails.
  async #load(item, failures) {
    this.canvas.replaceChildren();
    await prepare(item);
    if (this.current() !== item || this.shown === item) return;
    if (item.ready) return this.#paint(item);
    this.shown = item; // it may be skipped
    this.canvas.textContent = `This image does not load. It is tried again; ${this.skipKey()} skips it.`;
    await new Promise((resolve) => setTimeout(resolve, Math.min(RETRY_MOST_MS, RETRY_MS * 2 ** failures)));
    if (this.current() !== item) return;
    this.shown = null;
    this.#load(item, failures + 1);
  }

  get zoomed() {
    return this.canvas.classList.contains("is-zoomed");
  }

  zoom(event) {
    if (!this.zoomed && !this.shown) return;
    const on = this.canvas.classList.toggle("is-zoomed");
    this.zoomButton.setAttribute("aria-pressed", String(on));
    if (on && event) this.#follow(event);
    else this.#look(0.5, 0.5);
  }

  // pan moves what is seen of a zoomed image, and reports whether it is zoomed.
  pan(code) {
    const step = { ArrowLeft: [-PAN, 0], ArrowRight: [PAN, 0], ArrowUp: [0, -PAN], ArrowDown: [0, PAN] }[code];
    if (!step || !this.zoomed) return false;
    this.#look(this.#x + step[0], this.#y + step[1]);
    return true;
  }

  #follow(event) {
    if (!this.zoomed) return;
    const box = this.canvas.getBoundingClientRect();
    this.#look((event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
  }

  #look(x, y) {
    this.#x = Math.min(1, Math.max(0, x));
    this.#y = Math.min(1, Math.max(0, y));
    this.canvas.style.setProperty("--zoom-x", `${100 * this.#x}%`);
    this.canvas.style.setProperty("--zoom-y", `${100 * this.#y}%`);
  }
}
