// How long an image was worked on. Time without any sign of the person counts up to
// a limit, and time on a hidden page not at all: a coffee is not a hard image.

const IDLE_MS = 30_000;
const DAY_MS = 24 * 3600 * 1000;
const SIGNS = ["keydown", "pointerdown", "pointermove", "wheel"];

export class Clock {
  #spent = 0;
  #since = null; // the last sign of the person; null while the clock stands

  constructor(now = () => performance.now(), idle = IDLE_MS) {
    this.now = now;
    this.idle = idle;
  }

  // listen runs the clock by what happens on the page.
  listen() {
    for (const sign of SIGNS) addEventListener(sign, () => this.touch(), { passive: true, capture: true });
    document.addEventListener("visibilitychange", () => (document.hidden ? this.pause() : this.resume()));
  }

  // start begins at zero, for an image that has just been painted.
  start() {
    this.#spent = 0;
    this.#since = document.hidden ? null : this.now();
  }

  // touch notes a sign of the person.
  touch() {
    if (this.#since === null) return;
    this.#spent = this.#sum();
    this.#since = this.now();
  }

  pause() {
    this.#spent = this.#sum();
    this.#since = null;
  }

  resume() {
    this.#since ??= this.now();
  }

  // elapsed is the time so far, in whole milliseconds.
  get elapsed() {
    return Math.min(DAY_MS, Math.round(this.#sum()));
  }

  #sum() {
    return this.#since === null ? this.#spent : this.#spent + Math.min(this.idle, this.now() - this.#since);
  }
}
