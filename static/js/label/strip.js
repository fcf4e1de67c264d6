// The strip of the last ten decisions. Clicking one takes it back and reopens it.

const SLOTS = 10;

export class Strip {
  locked = "";
  records = []; // oldest first: {item, verdict, class, key}

  constructor(list, labels, onReopen) {
    this.list = list;
    this.labels = labels;
    this.onReopen = onReopen;
  }

  get last() {
    return this.records.at(-1) ?? null;
  }

  // push and remove change what there is to take back at once; render shows it.
  push(record) {
    this.records = this.records.filter((r) => r.item.id !== record.item.id);
    this.records.push(record);
    if (this.records.length > SLOTS) this.records.shift();
  }

  remove(record) {
    this.records = this.records.filter((r) => r !== record);
  }

  // lock says why no decision can be taken back any more, "" when they can.
  lock(reason) {
    if (this.locked === reason) return;
    this.locked = reason;
    for (const record of this.records) this.#mark(record);
  }

  // reset takes the server's view, newest first, and plays on it what is still on
  // its way there.
  reset(recent, pending) {
    let records = recent.toReversed();
    for (const entry of pending) {
      if (entry.kind === "flag") continue;
      records = records.filter((r) => r.item.id !== entry.item);
      if (entry.kind === "decide") records.push({ item: entry.view, verdict: entry.verdict, class: entry.class, key: entry.key });
    }
    this.records = records.slice(-SLOTS);
    this.render();
  }

  // render brings the list in line: newest first, always ten places. What is there
  // already stays where it is, with the focus if it has it.
  render() {
    const nodes = this.records.map((record) => this.#node(record)).reverse();
    const wanted = new Set(nodes);
    for (const node of [...this.list.children]) if (!wanted.has(node)) node.remove();
    nodes.forEach((node, i) => {
      if (this.list.children[i] !== node) this.list.insertBefore(node, this.list.children[i] ?? null);
    });
    while (this.list.children.length < SLOTS) this.list.append(document.createElement("li"));
  }

  // focus keeps the focus in the list after the button that had it has gone.
  focus() {
    this.list.querySelector("button")?.focus();
  }

  #node(record) {
    record.node ??= this.#build(record);
    this.#mark(record);
    return record.node;
  }

  // #mark says on the button of a decision what a click does.
  #mark({ node, name }) {
    const button = node?.firstElementChild;
    if (!button) return;
    button.disabled = this.locked !== "";
    button.title = this.locked ? `${name}. ${this.locked}` : `${name}: click to answer again`;
    button.setAttribute("aria-label", this.locked ? name : `${name}. Answer again`);
  }

  #build(record) {
    const { name, short, mark } = this.labels(record.verdict, record.class);
    const node = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "label-past";
    record.name = name;
    const image = new Image();
    image.alt = "";
    // What has been on the screen is here already, also while the network is away.
    image.src = record.item.ready ? record.item.src : record.item.thumb;
    const corner = document.createElement("span");
    corner.className = "label-past-mark";
    corner.append(mark);
    const caption = document.createElement("span");
    caption.className = "label-past-name";
    caption.append(short);
    button.append(image, corner, caption);
    button.addEventListener("click", () => this.onReopen(record));
    node.append(button);
    return node;
  }
}
