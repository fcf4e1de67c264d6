// The feed: the leased items that this page will show next, with their images
// loaded and decoded ahead, so that the next image is there when a key goes down.

const HOLD = 10; // leased items a page holds
const REFILL = 6; // ask for more below this many
const DECODE = 4; // images decoded ahead
const MOST = 100; // the server's limit for one claim

export class Feed {
  items = [];
  asOf = ""; // the server's time of the newest lease, which fences a late release
  #claiming = null;

  // skip(id) says which items this page must not show: answered here and not yet
  // sent, or held by another tab. skipped() is how many of those there may be.
  constructor(api, { skip, skipped, onChange, onState }) {
    this.api = api;
    this.skip = skip;
    this.skipped = skipped;
    this.onChange = onChange;
    this.onState = onState;
  }

  get current() {
    return this.items[0] ?? null;
  }

  get ids() {
    return this.items.map((i) => i.id);
  }

  get low() {
    return this.items.length < REFILL;
  }

  // take removes the current item and gets the following ones ready.
  take() {
    const item = this.items.shift();
    this.#prepare();
    if (this.low) this.refill();
    return item;
  }

  // putBack makes an item the current one again.
  putBack(item) {
    this.items = this.items.filter((i) => i.id !== item.id);
    this.items.unshift(item);
    this.#prepare();
  }

  // keep drops every item that is not in ids, and reports whether the current
  // one was among them.
  keep(ids) {
    const kept = new Set(ids);
    const lost = this.current !== null && !kept.has(this.current.id);
    this.items = this.items.filter((i) => kept.has(i.id));
    return lost;
  }

  // drop removes one item, wherever it is.
  drop(id) {
    this.items = this.items.filter((i) => i.id !== id);
  }

  // refill claims up to HOLD items; calls while one is under way share it.
  refill() {
    this.#claiming ??= this.#claim().finally(() => {
      this.#claiming = null;
    });
    return this.#claiming;
  }

  async #claim() {
    const answer = await this.api.claim(Math.min(MOST, HOLD + this.skipped()));
    if (answer.kind !== "ok") {
      this.onState(answer);
      return answer;
    }
    const { items, as_of: asOf } = answer.body;
    const had = new Map(this.items.map((i) => [i.id, i]));
    const fresh = items.filter((i) => !had.has(i.id) && !this.skip(i.id));
    // What is already here stays first and in its order: nothing moves under the
    // annotator's eyes.
    this.items.push(...fresh);
    this.asOf = asOf;
    this.#prepare();
    this.onState(answer);
    this.onChange();
    return answer;
  }

  #prepare() {
    for (const item of this.items.slice(0, DECODE + 1)) prepare(item);
  }
}

// prepare gives an item its decoded <img>. item.ready turns true when it can be
// painted at once, item.failed when the image cannot be had.
export function prepare(item) {
  if (item.image) return item.loading;
  const image = new Image(item.width, item.height);
  image.className = "label-image";
  image.alt = "Image to label";
  image.draggable = false;
  image.setAttribute("elementtiming", "label-image");
  image.src = item.src;
  item.image = image;
  item.ready = false;
  item.failed = false;
  item.loading = image.decode().then(
    () => {
      item.ready = true;
    },
    () => {
      item.failed = true;
      item.image = null; // the next prepare tries again
    },
  );
  return item.loading;
}
