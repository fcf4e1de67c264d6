// Two tabs of one person share that person's leases. They tell each other what
// they hold, so that no image is shown twice.

const REPLY_MS = 80;

export class Tabs {
  #others = new Map(); // tab -> Set of item ids

  // held() are the items of this tab; onOther runs when another one opens.
  constructor(scope, tab, held, onOther = () => {}) {
    this.tab = tab;
    this.held = held;
    this.onOther = onOther;
    this.channel = "BroadcastChannel" in self ? new BroadcastChannel(`winnow-label-${scope}`) : null;
    if (!this.channel) return;
    this.channel.onmessage = ({ data }) => this.#hear(data);
    addEventListener("pagehide", () => this.channel.postMessage({ tab, items: [] }));
  }

  // meet asks the other tabs what they hold and gives them a moment to answer.
  async meet() {
    if (!this.channel) return;
    this.channel.postMessage({ tab: this.tab, ask: true, items: [] });
    await new Promise((resolve) => setTimeout(resolve, REPLY_MS));
  }

  // tell says what this tab holds now.
  tell() {
    this.channel?.postMessage({ tab: this.tab, items: this.held() });
  }

  has(item) {
    for (const items of this.#others.values()) if (items.has(item)) return true;
    return false;
  }

  get count() {
    let n = 0;
    for (const items of this.#others.values()) n += items.size;
    return n;
  }

  #hear(message) {
    if (message.items.length > 0) this.#others.set(message.tab, new Set(message.items));
    else this.#others.delete(message.tab);
    if (!message.ask) return;
    this.tell();
    this.onOther();
  }
}
