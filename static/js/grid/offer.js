// The labeling page offers a group of like images when there is one, and keeps quiet
// when there is not.

const LOOK_MS = 60_000;

export class Offer {
  // leave() gives the images of the labeling page back, so that the group can have
  // them.
  constructor(link, api, keymap, leave) {
    this.link = link;
    this.api = api;
    this.keymap = keymap;
    this.leave = leave;
    link.addEventListener("click", (event) => this.go(event));
    document.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("visibilitychange", () => this.look());
    setInterval(() => this.look(), LOOK_MS);
  }

  // look asks whether there is a group now. The link has its place from the start:
  // nothing moves when it comes or goes.
  async look() {
    if (document.hidden) return;
    const answer = await this.api.offer();
    if (answer.kind !== "ok") return;
    const { group } = answer.body;
    if (group) this.link.querySelector("span").textContent = group.text;
    this.link.classList.toggle("is-offered", group !== null);
  }

  key(event) {
    if (this.keymap.command(event)?.name !== "grid" || !this.link.classList.contains("is-offered")) return;
    event.preventDefault();
    this.link.click();
  }

  async go(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // in another tab
    event.preventDefault();
    await this.leave();
    location.assign(this.link.href);
  }
}
