// The feed: the leased items that this page will show next. All their images are
// loaded, so that labeling goes on while the network is away, and the first few are
// decoded, so that the next image is there when a key goes down.

const HOLD = 10; // leased items a page holds
const REFILL = 6; // ask for more below this many
const DECODE = 4; // images decoded ahead
const MOST = 100; // the server's limit for one claim

export class Feed {
  items = [];
  asOf = ""; // the server's time of the newest lease, which fences a late release
  #claiming = null;
  #took = false; // since the last refill was thought of

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

  // take removes the current item, and putBack makes an item the current one again.
  // ahead gets those that follow ready: it is asked for after the next image is
  // painted, which is not to share the processor with it.
  take() {
    this.#took = true;
    return this.items.shift();
  }

  putBack(item) {
    this.items = this.items.filter((i) => i.id !== item.id);
    this.items.unshift(item);
  }

  ahead() {
    this.#prepare();
    if (this.#took && this.low) this.refill();
    this.#took = false;
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
    for (const [i, item] of this.items.entries()) {
      if (i <= DECODE) prepare(item);
      else if (i < HOLD) load(item);
    }
  }
}

// load gives an item its <img>, whose bytes are on their way from then on.
function load(item) {
  if (item.image) return;
  const image = new Image(item.width, item.height);
  image.className = "label-image";
  image.alt = "Image to label";
  image.draggable = false;
  image.setAttribute("elementtiming", "label-image");
  image.src = item.src;
  item.image = image;
}

// prepare decodes the image of an item. item.ready turns true when it can be painted
// at once, item.failed when the image cannot be had.
export function prepare(item) {
  if (item.ready) return Promise.resolve();
  if (item.loading) return item.loading;
  load(item);
  item.failed = false;
  item.loading = item.image
    .decode()
    .then(
      () => {
        item.ready = true;
      },
      () => {
        item.failed = true;
        item.image = null; // the next prepare tries again
      },
    )
    .finally(() => {
      item.loading = null;
    });
  return item.loading;
}
