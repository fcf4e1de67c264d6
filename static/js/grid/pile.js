// The pile: pages that come after the one on the screen. Each holds leased items of
// one class, with their images on the way, so that the next page is there when this
// one is accepted.

import { tileOf } from "./tiles.js";

const MOST = 100; // the server's limit for one claim

export class Pile {
  pages = []; // {class, tiles}
  asOf = ""; // the server's time of the newest lease, which fences a late release
  #claiming = null;

  // skip(id) says which items must not be shown, skipped() how many of those there
  // may be. prepare(tile) gets its image. onState(answer) hears every answer.
  constructor(api, size, { skip, skipped, prepare, onState }) {
    this.api = api;
    this.size = size;
    this.skip = skip;
    this.skipped = skipped;
    this.prepare = prepare;
    this.onState = onState;
  }

  get ids() {
    return this.pages.flatMap((p) => p.tiles.map((t) => t.item.id));
  }

  // next takes the page that comes next, null if there is none yet.
  next() {
    return this.pages.shift() ?? null;
  }

  // putBack makes a page the next one.
  putBack(page) {
    if (page.tiles.length > 0) this.pages.unshift(page);
  }

  // keep drops every item that is not in ids.
  keep(ids) {
    const kept = new Set(ids);
    for (const page of this.pages) page.tiles = page.tiles.filter((t) => kept.has(t.item.id));
    this.pages = this.pages.filter((p) => p.tiles.length > 0);
  }

  // refill claims a page if there is none ahead; calls while one is under way share
  // it.
  refill() {
    if (this.pages.length > 0) return Promise.resolve();
    this.#claiming ??= this.#claim().finally(() => {
      this.#claiming = null;
    });
    return this.#claiming;
  }

  async #claim() {
    const answer = await this.api.alike(Math.min(MOST, this.size + this.skipped()));
    if (answer.kind === "ok") {
      const { class: index, items, as_of: asOf } = answer.body;
      this.asOf = asOf;
      const tiles = items.filter((i) => !this.skip(i.id)).slice(0, this.size).map((i) => tileOf(i));
      await Promise.all(tiles.map((t) => this.prepare(t)));
      if (tiles.length > 0) this.pages.push({ class: index, tiles });
    }
    this.onState(answer);
  }
}
