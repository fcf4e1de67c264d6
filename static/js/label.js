// The labeling page: one key = saved + next image. The server's page works as
// plain forms; this module takes it over. An answer goes to the outbox and the
// next image is painted in the same task: nobody waits for the network.

import { Offer } from "./grid/offer.js";
import { Api } from "./label/api.js";
import { Clock } from "./label/clock.js";
import { Feed } from "./label/feed.js";
import { Filter } from "./label/filter.js";
import { Flag } from "./label/flag.js";
import { Keymap } from "./label/keys.js";
import { holdTab, newKey, openOutbox, Sender } from "./label/outbox.js";
import { Remap } from "./label/remap.js";
import { Stage } from "./label/stage.js";
import { Status } from "./label/status.js";
import { Strip } from "./label/strip.js";
import { Swipe } from "./label/swipe.js";
import { Tabs } from "./label/tabs.js";
import { listenTheme } from "./label/theme.js";

const POLL_MS = 2_000;

const $ = (id) => document.getElementById(id);

class LabelPage {
  timers = {};

  constructor(boot) {
    this.boot = boot;
    this.round = boot.round;
    this.tab = newKey();
    this.scope = `${boot.user}:${boot.project}`;
    this.api = new Api(boot.base, boot.user);
    this.keymap = new Keymap(boot.keys);
    this.clock = new Clock();
    this.status = new Status();
    this.form = $("label-form");
    this.buttons = new Map([...this.form.querySelectorAll("button[name=answer]")].map((b) => [b.value, b]));
    this.tag = this.form.querySelector(".label-tag") ?? tagOf("suggested");
    this.stage = new Stage($("label-canvas"), $("label-zoom"), {
      current: () => this.feed.current,
      onShown: (item) => this.shown(item),
      skipKey: () => this.keymap.label("skip"),
    });
  }

  async start() {
    holdTab(this.tab);
    this.tabs = new Tabs(this.scope, this.tab, () => this.feed?.ids ?? [], () => this.status.cut && this.sender.kick());
    const [outbox] = await Promise.all([openOutbox(this.scope, this.tab), this.tabs.meet(), this.keymap.learnLayout()]);
    this.outbox = outbox;
    // What is answered here stays away until it is undone: a claim that was under
    // way while its answer was saved still lists it.
    this.answered = new Set();
    for (const { kind, item } of outbox.entries) {
      if (kind === "decide") this.answered.add(item);
      if (kind === "undo") this.answered.delete(item);
    }
    this.feed = new Feed(this.api, {
      skip: (id) => this.answered.has(id) || this.tabs.has(id),
      skipped: () => this.outbox.entries.length + this.tabs.count,
      onChange: () => this.fed(),
      onState: (answer) => this.claimed(answer),
    });
    this.sender = new Sender(this.outbox, this.api, {
      onSaved: (entry, body) => this.saved(entry, body),
      onRefused: (entry, message) => this.refused(entry, message),
      onState: (state, message) => this.status.linked(state, message),
    });
    this.strip = new Strip($("label-strip"), (verdict, index) => this.labelOf(verdict, index), (r) => this.reopen(r));
    this.strip.reset(this.boot.recent, this.outbox.entries);
    this.filter = new Filter($("label-filter"), this.filterable(), (button) => this.press(button.value));
    this.flag = new Flag($("label-flag"), $("label-note"), {
      send: (item, note) => this.post({ kind: "flag", item: item.id, note }),
      notice: (text) => this.status.notice(text),
    });
    this.remap = new Remap($("label-keys"), this.keymap, {
      save: async (keys) => (await this.api.saveKeys(keys)).message ?? "",
      changed: () => this.showKeys(),
    });
    new Swipe($("label-canvas"), $("label-swipe"), {
      asks: (direction) => this.swiped(direction),
      answer: (value) => this.press(value),
      none: () => this.status.notice("There is no suggestion to take. Choose the class below."),
      blocked: () => this.stage.zoomed || !this.stage.shown,
    });

    const offer = new Offer($("label-grid"), this.api, this.keymap, () => this.api.giveBack(this.unanswered, this.feed.asOf));

    this.listen();
    this.showKeys();
    this.adoptFirst();
    this.sender.kick();
    this.show();
    this.settle();
    await this.feed.refill();
    document.documentElement.dataset.labeling = "ready";
    offer.look();
  }

  // adoptFirst keeps the image that the server's page already shows.
  adoptFirst() {
    const item = this.boot.item;
    if (!item || this.feed.skip(item.id)) return;
    const image = $("label-canvas").querySelector("img");
    if (image?.complete && image.naturalWidth > 0) Object.assign(item, { image, ready: true });
    this.feed.items.push(item);
  }

  listen() {
    this.clock.listen();
    listenTheme($("label-theme"));
    document.addEventListener("keydown", (event) => this.key(event));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (event.submitter) this.press(event.submitter.value);
    });
    $("label-undo-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.undo(this.strip.last);
    });
    $("label-flag").addEventListener("click", () => this.flag.press(this.stage.shown));
    $("label-help-toggle").addEventListener("click", () => this.help());
    $("label-help-close").addEventListener("click", () => this.help(false));

    addEventListener("pagehide", () => this.release());
    // A page that the back button brings back as it was has given its images away.
    addEventListener("pageshow", (event) => event.persisted && location.reload());
    document.addEventListener("visibilitychange", () => this.renew());
    setInterval(() => this.renew(), (this.boot.lease_seconds * 1000) / 3);
  }

  // key turns a key press into what it asks for.
  key(event) {
    // A key held down on a focused button would press it again and again.
    if (event.repeat && (event.code === "Enter" || event.code === "Space") && event.target.closest?.("button")) {
      event.preventDefault();
      return;
    }
    const asked = this.keymap.command(event);
    if (asked ? this.act(asked) !== false : this.stage.pan(event.code)) event.preventDefault();
  }

  // act does what a key asks for. It returns false where the browser may have the
  // key after all.
  act({ name, index }) {
    switch (name) {
      case "class":
        return this.press(`known:${index}`);
      case "undo":
        return this.undo(this.strip.last);
      case "flag":
        return this.flag.press(this.stage.shown);
      case "help":
        return this.help();
      case "zoom":
        return this.stage.zoom();
      case "filter":
        return this.filter.focus();
      case "close":
        return this.close();
      case "grid":
        return false; // the offer of a group listens itself
      default:
        return this.press(name);
    }
  }

  close() {
    if (this.flag.close(false)) return;
    if (!$("label-help").hidden) return this.help(false);
    this.filter.close();
  }

  // post puts an entry on its way. It is on its way to the disk before the page
  // changes, and to the server after.
  post(entry) {
    entry.key = newKey();
    this.outbox.add(entry);
    this.status.kept(this.outbox.entries.length);
    this.settleSoon();
    return entry.key;
  }

  // press answers the image on the screen with the value of a button.
  press(value) {
    const button = this.buttons.get(value);
    const item = this.stage.shown;
    if (!button || !item || item !== this.feed.current) return;
    const [verdict, index] = value.split(":");
    if (item.failed && verdict !== "skip") return; // nobody has seen it
    const answer = { verdict, class: verdict === "known" ? Number(index) : -1 };
    const key = this.post({ kind: "decide", item: item.id, view: viewOf(item), ...answer, duration: this.clock.elapsed });
    this.answered.add(item.id);
    this.feed.take();
    this.show();
    this.flash(button);
    this.strip.push({ item, ...answer, key });
    this.said = `Labeled ${button.dataset.name}.`;
  }

  // undo takes a decision back and shows its image again.
  undo(record) {
    if (!record) return this.status.say("Nothing to undo.");
    if (this.round?.fixed) return this.status.notice(this.round.fixed);
    this.strip.remove(record);
    this.post({ kind: "undo", item: record.item.id, view: viewOf(record.item), of: record.key });
    this.answered.delete(record.item.id);
    this.feed.putBack(record.item);
    this.show();
    this.said = `Took back ${this.labelOf(record.verdict, record.class).name}. It is shown again.`;
  }

  reopen(record) {
    this.undo(record);
    this.strip.render();
    this.strip.focus();
  }

  // show paints the current item, or says why there is none.
  show() {
    if (this.feed.current) {
      this.status.stopWaiting();
      clearTimeout(this.timers.poll);
      return this.stage.show();
    }
    this.flag.show(null);
    this.stage.empty();
    this.wait();
  }

  // shown: the image of the item is on the screen.
  shown(item) {
    this.clock.start();
    this.flag.show(item);
    const suggested = item.suggested === undefined ? null : this.buttons.get(`known:${item.suggested}`);
    if (suggested) suggested.querySelector(".label-name").after(this.tag);
    else this.tag.remove();
  }

  // swiped is what a swipe would answer; null if it cannot.
  swiped(direction) {
    const suggested = this.stage.shown?.suggested;
    if (direction === "right" && suggested === undefined) return null;
    const value = direction === "left" ? "unknown" : `known:${suggested}`;
    const [verdict, index] = value.split(":");
    return { value, ...this.labelOf(verdict, Number(index)) };
  }

  // settle brings everything around the image in line. It runs after the image is
  // painted: nobody looks at a counter first.
  settle() {
    const { status, strip } = this;
    strip.render();
    const fixed = this.round?.fixed ?? "";
    strip.lock(fixed);
    status.count(this.round, this.outbox.entries);
    $("label-undo").setAttribute("aria-disabled", String(strip.records.length === 0 || fixed !== ""));
    $("label-undo").title = fixed;
    if (this.said) {
      const suggested = this.feed.current?.suggested;
      const next = suggested === undefined ? "" : ` Suggested: ${this.labelOf("known", suggested).name}.`;
      status.say(`${this.said} ${status.left} left${status.cut ? ", kept here" : ""}.${next}`);
      this.said = "";
    }
    this.tabs.tell();
    this.sender.kick();
    this.feed.ahead();
  }

  settleSoon() {
    if (this.settling) return;
    this.settling = true;
    afterPaint(() => {
      this.settling = false;
      this.settle();
    });
  }

  fed() {
    this.tabs.tell();
    if (!this.stage.shown) this.show();
  }

  claimed(answer) {
    if (answer.kind === "ok") {
      this.round = answer.body.round ?? this.round;
      this.waiting = answer.body.wait;
      if (!this.feed.current && answer.body.items.length === 0) this.wait();
      this.settleSoon();
    } else if (answer.kind === "refused") {
      this.status.notice(answer.message);
    } else {
      this.status.linked(answer.kind === "signedout" ? "signedout" : "retrying", answer.message);
      if (this.feed.low) this.later("claim", () => this.feed.refill());
      if (!this.feed.current) this.wait();
    }
  }

  saved(entry, body) {
    this.round = body.round ?? this.round;
    this.status.linked("sending", "");
    this.settleSoon();
    if (!this.feed.current) this.poll();
  }

  // refused: the server will never take this entry. Say so, and stop showing what
  // was built on it.
  async refused(entry, message) {
    this.status.notice(message);
    const record = this.strip.records.find((r) => r.key === entry.key);
    if (record) this.strip.remove(record);
    const undo = this.outbox.entries.find((e) => e.kind === "undo" && e.of === entry.key);
    if (undo) await this.outbox.remove(undo.key);
    if (undo || entry.kind === "undo") {
      this.feed.drop(entry.item);
      this.show();
    }
    // The image may come to this person again, when whoever has it now gives it up.
    if (!this.outbox.has(entry.item)) this.answered.delete(entry.item);
    await this.sync();
  }

  // sync takes the server's word for where the round and the strip stand.
  async sync() {
    const answer = await this.api.state();
    if (answer.kind !== "ok") return;
    this.round = answer.body.round;
    this.waiting = answer.body.wait;
    if (this.round?.state !== "labeling") {
      this.feed.items = [];
      this.show();
    }
    this.strip.reset(answer.body.recent, this.outbox.entries);
    this.settleSoon();
  }

  wait() {
    this.status.count(this.round, this.outbox.entries);
    this.status.wait(this.waiting);
    this.later("poll", () => this.poll());
  }

  // poll asks whether there is something to label again.
  async poll() {
    if (this.feed.current) return;
    if (this.round?.state !== "labeling") await this.sync();
    if (this.round?.state === "labeling") await this.feed.refill();
    if (!this.feed.current) this.wait();
  }

  later(name, action) {
    clearTimeout(this.timers[name]);
    this.timers[name] = setTimeout(action, POLL_MS);
  }

  async renew() {
    if (document.hidden || this.feed.items.length === 0) return;
    const answer = await this.api.renew(this.feed.ids);
    if (answer.kind !== "ok") return;
    this.feed.asOf = answer.body.as_of;
    // An item put back by an undo that is still on its way is ours as well.
    const kept = [...answer.body.kept, ...this.outbox.entries.map((e) => e.item)];
    if (this.feed.keep(kept)) {
      this.status.notice("You were away and somebody else has taken this image. Here is another.");
      this.show();
    }
    if (this.feed.low) this.feed.refill();
  }

  release() {
    if (this.unanswered.length > 0) this.api.release(this.unanswered, this.feed.asOf);
  }

  // unanswered are the items that go back when the page closes.
  get unanswered() {
    const answered = new Set(this.outbox.entries.filter((e) => e.kind !== "flag").map((e) => e.item));
    return this.feed.ids.filter((id) => !answered.has(id));
  }

  // showKeys writes on every button what is printed on its key.
  showKeys() {
    for (const kbd of document.querySelectorAll("kbd[data-action]")) {
      const { action } = kbd.dataset;
      kbd.textContent = this.keymap.label(action);
      kbd.closest("button, a")?.setAttribute("aria-keyshortcuts", this.keymap.shortcut(action));
    }
    this.remap.render();
  }

  flash(button) {
    clearTimeout(this.flashTimer);
    this.flashed?.classList.remove("is-pressed");
    button.classList.add("is-pressed");
    this.flashed = button;
    this.flashTimer = setTimeout(() => button.classList.remove("is-pressed"), 160);
  }

  help(open = $("label-help").hidden) {
    const panel = $("label-help");
    if (!open && panel.contains(document.activeElement)) $("label-help-toggle").focus();
    panel.hidden = !open;
    $("label-help-toggle").setAttribute("aria-expanded", String(open));
    if (open) panel.focus();
  }

  // labelOf returns the name of an answer, whole and short, and a copy of its mark, the coloured
  // shape on its button.
  labelOf(verdict, index) {
    const button = this.buttons.get(verdict === "known" ? `known:${index}` : verdict);
    const mark = button?.querySelector("svg")?.cloneNode(true) ?? "";
    return { name: button?.dataset.name ?? verdict, short: button?.dataset.short ?? verdict, mark };
  }

  filterable() {
    return [...this.buttons].map(([value, button]) => ({
      button,
      name: button.dataset.name.toLowerCase(),
      isClass: value.startsWith("known:"),
    }));
  }
}

// viewOf is what an outbox entry keeps of its item, so that it can be shown and
// taken back after a reload.
function viewOf({ id, src, thumb, width, height, suggested }) {
  return { id, src, thumb, width, height, suggested };
}

function tagOf(text) {
  const tag = document.createElement("span");
  tag.className = "label-tag";
  tag.textContent = text;
  return tag;
}

// afterPaint runs an action once the next frame is on its way to the screen. A
// hidden page has no frames.
function afterPaint(action) {
  if (document.hidden) setTimeout(action);
  else requestAnimationFrame(() => setTimeout(action));
}

const boot = $("label-boot");
if (boot) new LabelPage(JSON.parse(boot.textContent)).start();
