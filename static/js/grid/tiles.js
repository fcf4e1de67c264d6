// The tiles of a page: what is picked out, which answer it has, and where the
// keyboard is. A tile is a checkbox around an image; checked means picked out, with
// an answer or without one yet.

export class Tiles {
  list = []; // {item, picked, answer, lost, seen, node, box}
  #anchor = 0; // where a range starts
  #before = null; // what was picked before the range that Shift draws now
  #shift = false; // the pointer that presses holds Shift

  // answerOf(value) returns {name, mark} of an answer. changed() is called after
  // every change.
  constructor(root, template, { answerOf, changed }) {
    this.root = root;
    this.template = template;
    this.answerOf = answerOf;
    this.changed = changed;
    root.addEventListener("pointerdown", (event) => (this.#shift = event.shiftKey));
    root.addEventListener("change", (event) => this.#toggled(event.target));
    root.addEventListener("focusin", (event) => this.#stop(this.indexOf(event.target)));
  }

  // show replaces the tiles. An entry is {item, picked, answer}; it keeps what
  // happens to it, so that a page can be left and come back to.
  show(entries, focus) {
    this.list = entries;
    for (const [i, tile] of entries.entries()) {
      if (!tile.node) this.#build(tile);
      this.#name(tile, i);
      this.#mark(tile);
    }
    this.root.replaceChildren(...entries.map((t) => t.node));
    this.#anchor = 0;
    this.#before = null;
    this.#stop(0);
    if (focus) this.focus(0);
  }

  // prepare builds a tile ahead of its page and resolves when its image is there,
  // or will not come.
  prepare(tile) {
    if (!tile.node) this.#build(tile);
    return tile.image.decode().catch(() => {});
  }

  indexOf(element) {
    const node = element.closest?.(".grid-tile");
    return this.list.findIndex((t) => t.node === node);
  }

  // picked are the tiles that were picked out and have no answer yet.
  get picked() {
    return this.list.filter((t) => t.picked && !t.answer && !t.lost);
  }

  // decided are the tiles that accepting the page answers: what nobody has seen, or
  // was picked out without an answer, is not among them.
  get decided() {
    return this.list.filter((t) => !t.lost && (t.answer ? t.seen || t.answer === "skip" : t.seen && !t.picked));
  }

  // answer gives the picked tiles an answer, or the tile that has the focus when
  // none is picked; null makes them of the group's class again. It returns how many
  // there were.
  answer(value) {
    let tiles = this.picked;
    if (tiles.length === 0) tiles = this.list.filter((t) => t.box === document.activeElement && !t.lost);
    for (const tile of tiles) this.#set(tile, value !== null, value);
    if (tiles.length > 0) this.changed();
    return tiles.length;
  }

  // pick picks tiles out or puts them back; those with an answer keep it.
  pick(tiles, on) {
    for (const tile of tiles) if (!tile.answer && !tile.lost) this.#set(tile, on, null);
    this.changed();
  }

  // lose takes tiles out of the page without moving the others.
  lose(tiles) {
    for (const tile of tiles) {
      tile.lost = true;
      this.#mark(tile);
    }
    this.changed();
  }

  focus(index) {
    this.list[index]?.box.focus({ preventScroll: false });
  }

  // key moves the keyboard's place and draws ranges; it reports whether the key was
  // its own.
  key(event) {
    const from = this.indexOf(document.activeElement);
    const to = this.#step(event.code, Math.max(0, from));
    if (to === null || this.list.length === 0) return false;
    if (from < 0) this.focus(this.#anchor);
    else if (event.shiftKey) this.#extend(from, to);
    else {
      this.focus(to);
      this.#anchor = to;
      this.#before = null;
    }
    return true;
  }

  #step(code, at) {
    const last = this.list.length - 1;
    const columns = this.#columns();
    switch (code) {
      case "ArrowLeft":
        return Math.max(0, at - 1);
      case "ArrowRight":
        return Math.min(last, at + 1);
      case "ArrowUp":
        return at < columns ? at : at - columns;
      case "ArrowDown":
        return Math.min(last, at + columns);
      case "Home":
        return 0;
      case "End":
        return last;
      default:
        return null;
    }
  }

  #columns() {
    const top = this.list[0]?.node.offsetTop;
    const next = this.list.findIndex((t) => t.node.offsetTop !== top);
    return next < 0 ? Math.max(1, this.list.length) : next;
  }

  // #extend draws the range from the anchor to a tile, and takes back what it drew
  // before, so that it shrinks as well.
  #extend(from, to) {
    if (!this.#before) {
      this.#anchor = from;
      this.#before = this.list.map((t) => t.picked);
    }
    const [low, high] = [Math.min(this.#anchor, to), Math.max(this.#anchor, to)];
    for (const [i, tile] of this.list.entries()) {
      if (!tile.answer && !tile.lost) this.#set(tile, this.#before[i] || (i >= low && i <= high), null);
    }
    const before = this.#before;
    this.focus(to);
    this.#before = before;
    this.changed();
  }

  // #toggled follows a checkbox that was pressed. With Shift the range from the one
  // pressed before does the same.
  #toggled(box) {
    const index = this.list.findIndex((t) => t.box === box);
    const tile = this.list[index];
    if (!tile) return;
    const on = box.checked;
    if (this.#shift) {
      const [low, high] = [Math.min(this.#anchor, index), Math.max(this.#anchor, index)];
      for (const t of this.list.slice(low, high + 1)) if (!t.answer && !t.lost) this.#set(t, true, null);
    } else {
      this.#set(tile, on, null);
      this.#anchor = index;
    }
    this.#shift = false;
    this.#before = null;
    this.changed();
  }

  #set(tile, picked, answer) {
    tile.picked = picked;
    tile.answer = answer;
    this.#mark(tile);
  }

  // #stop makes one tile the place where Tab enters the grid.
  #stop(index) {
    if (index < 0) return;
    for (const [i, tile] of this.list.entries()) tile.box.tabIndex = i === index ? 0 : -1;
  }

  #build(tile) {
    // Imported, not cloned: a template's own images do not load.
    tile.node = document.importNode(this.template.content.firstElementChild, true);
    tile.box = tile.node.querySelector("input[type=checkbox]");
    tile.image = tile.node.querySelector("img");
    tile.said = tile.node.querySelector("[data-answer]");
    tile.corner = tile.node.querySelector(".grid-mark");
    for (const input of tile.node.querySelectorAll("input")) input.value = tile.item.id;
    this.#load(tile, 0);
  }

  // #load shows the image, trying again while it does not come: what nobody has
  // seen is not accepted.
  #load(tile, failures) {
    tile.image.onload = () => {
      tile.seen = true;
      this.#mark(tile);
      if (this.list.includes(tile)) this.changed();
    };
    tile.image.onerror = () => {
      setTimeout(() => this.#load(tile, failures + 1), Math.min(8_000, 1_000 * 2 ** failures));
    };
    tile.image.src = failures === 0 ? tile.item.thumb : `${tile.item.thumb}?again=${failures}`;
  }

  #name(tile, index) {
    tile.said.previousSibling.textContent = `Image ${index + 1} `;
  }

  #mark(tile) {
    const answer = tile.answer ? this.answerOf(tile.answer) : null;
    tile.box.checked = tile.picked;
    tile.box.disabled = tile.lost;
    tile.node.classList.toggle("is-picked", tile.picked && !answer);
    tile.node.classList.toggle("is-answered", answer !== null);
    tile.node.classList.toggle("is-lost", tile.lost);
    tile.node.classList.toggle("is-seen", tile.seen);
    tile.said.textContent = tile.lost ? "taken by somebody else" : (answer?.name ?? "");
    const words = document.createElement("span");
    words.textContent = tile.lost ? "Taken" : (answer?.short ?? "");
    tile.corner.replaceChildren(...(answer && !tile.lost ? [answer.mark] : []), words);
  }
}

// tileOf makes the entry of an item for a page.
export function tileOf(item, picked = false, answer = null) {
  return { item, picked, answer, lost: false, seen: false };
}
