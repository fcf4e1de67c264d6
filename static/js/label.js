// The labeling page: one key = saved + next image. The server's page works as
// plain forms; this module takes it over. An answer goes to the outbox and the
// next image is painted in the same task: nobody waits for the network.

import { Api } from "./label/api.js";
import { Feed, prepare } from "./label/feed.js";
import { Filter } from "./label/filter.js";
import { command } from "./label/keys.js";
import { holdTab, newKey, openOutbox, Sender } from "./label/outbox.js";
import { Strip } from "./label/strip.js";
import { Tabs } from "./label/tabs.js";

const POLL_MS = 2_000;
const NOTICE_MS = 8_000;
const DAY_MS = 24 * 3600 * 1000;

const $ = (id) => document.getElementById(id);

class LabelPage {
  constructor(boot) {
    this.boot = boot;
    this.round = boot.round;
    this.tab = newKey();
    this.scope = `${boot.user}:${boot.project}`;
    this.api = new Api(boot.base, boot.user);
    this.shown = null; // the item on the screen; only that one can be answered
    this.link = { state: "idle", message: "" };
    this.canvas = $("label-canvas");
    this.form = $("label-form");
    this.buttons = new Map([...this.form.querySelectorAll("button[name=answer]")].map((b) => [b.value, b]));
  }

  async start() {
    holdTab(this.tab);
    this.tabs = new Tabs(this.scope, this.tab, () => this.feed?.ids ?? []);
    const [outbox] = await Promise.all([openOutbox(this.scope, this.tab), this.tabs.meet()]);
    this.outbox = outbox;
    // What is answered here stays away until it is undone: a claim that was under
    // way while its answer was saved still lists it.
    this.answered = new Set(outbox.entries.map((e) => e.item));
    this.feed = new Feed(this.api, {
      skip: (id) => this.answered.has(id) || this.tabs.has(id),
      skipped: () => this.outbox.entries.length + this.tabs.count,
      onChange: () => this.fed(),
      onState: (answer) => this.claimed(answer),
    });
    this.sender = new Sender(this.outbox, this.api, {
      onSaved: (entry, body) => this.saved(entry, body),
      onRefused: (entry, message) => this.refused(entry, message),
      onState: (state, message) => this.linked(state, message),
    });
    this.strip = new Strip($("label-strip"), (verdict, index) => this.labelOf(verdict, index), (r) => this.undo(r));
    this.strip.reset(this.boot.recent, this.outbox.entries);
    this.filter = new Filter($("label-filter"), this.filterable(), (button) => this.press(button.value));

    this.listen();
    this.adoptFirst();
    this.sender.kick();
    this.show();
    await this.feed.refill();
    document.documentElement.dataset.labeling = "ready";
  }

  // adoptFirst keeps the image that the server's page already shows.
  adoptFirst() {
    const item = this.boot.item;
    if (!item || this.feed.skip(item.id)) return;
    const image = this.canvas.querySelector("img");
    if (image?.complete && image.naturalWidth > 0) Object.assign(item, { image, ready: true, failed: false });
    this.feed.items.push(item);
  }

  listen() {
    document.addEventListener("keydown", (event) => this.key(event));
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      if (event.submitter) this.press(event.submitter.value);
    });
    $("label-undo-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.undo(this.strip.last);
    });
    $("label-help-toggle").addEventListener("click", () => this.help());
    $("label-help-close").addEventListener("click", () => this.help(false));
    $("label-zoom").addEventListener("click", () => this.zoom());
    this.canvas.addEventListener("click", (event) => this.zoom(event));
    this.canvas.addEventListener("pointermove", (event) => this.pan(event));

    addEventListener("pagehide", () => this.release());
    addEventListener("pageshow", (event) => event.persisted && this.feed.refill());
    document.addEventListener("visibilitychange", () => {
      this.clock();
      if (document.visibilityState === "visible") this.renew();
    });
    setInterval(() => this.renew(), (this.boot.lease_seconds * 1000) / 3);
  }

  // key turns a key press into what it asks for.
  key(event) {
    // A key held down on a focused button would press it again and again.
    if (event.repeat && (event.code === "Enter" || event.code === "Space") && event.target.closest?.("button")) {
      event.preventDefault();
      return;
    }
    const asked = command(event);
    if (!asked) return;
    event.preventDefault();
    switch (asked.name) {
      case "class":
        return this.press(`known:${asked.index}`);
      case "undo":
        return this.undo(this.strip.last);
      case "help":
        return this.help();
      case "zoom":
        return this.zoom();
      case "filter":
        return this.filter.focus();
      case "close":
        this.filter.close();
        return this.help(false);
      default:
        return this.press(asked.name);
    }
  }

  // press answers the image on the screen with the value of a button.
  press(value) {
    const button = this.buttons.get(value);
    const item = this.shown;
    if (!button || !item || item !== this.feed.current) return;
    const [verdict, index] = value.split(":");
    if (item.failed && verdict !== "skip") return; // nobody has seen it
    const entry = {
      key: newKey(),
      kind: "decide",
      item: item.id,
      view: viewOf(item),
      verdict,
      class: verdict === "known" ? Number(index) : -1,
      duration: this.elapsed(),
    };
    this.outbox.add(entry);
    this.answered.add(item.id);
    this.feed.take();
    this.show();
    this.flash(button);
    this.strip.push({ item, verdict, class: entry.class, key: entry.key });
    this.count();
    this.say(`${this.labelOf(verdict, entry.class).name}. ${$("label-left").textContent} left.`);
    this.tabs.tell();
    this.sender.kick();
  }

  // undo takes a decision back and shows its image again.
  undo(record) {
    if (!record) return this.say("Nothing to undo.");
    if (this.round?.fixed) return this.notice(this.round.fixed);
    this.strip.remove(record);
    this.outbox.add({ key: newKey(), kind: "undo", item: record.item.id, view: viewOf(record.item), of: record.key });
    this.answered.delete(record.item.id);
    this.feed.putBack(record.item);
    this.show();
    this.say(`Took back ${this.labelOf(record.verdict, record.class).name}.`);
    this.count();
    this.tabs.tell();
    this.sender.kick();
  }

  // show paints the current item, or says why there is none.
  show() {
    const item = this.feed.current;
    if (item === this.shown && item !== null) return;
    this.shown = null;
    this.zoomOff();
    if (!item) return this.wait();
    this.stopWaiting();
    if (item.ready) return this.paint(item);
    this.canvas.replaceChildren();
    this.canvas.setAttribute("aria-busy", "true");
    this.load(item, 0);
  }

  // load waits for an image that is not decoded yet, trying again if it fails.
  async load(item, failures) {
    await prepare(item);
    if (this.feed.current !== item || this.shown === item) return;
    if (item.ready) return this.paint(item);
    this.shown = item; // it may be skipped
    this.canvas.textContent = "This image does not load. It is tried again; S skips it.";
    await new Promise((resolve) => setTimeout(resolve, Math.min(8_000, 1_000 * 2 ** failures)));
    if (this.feed.current !== item) return;
    this.shown = null;
    this.load(item, failures + 1);
  }

  paint(item) {
    this.canvas.replaceChildren(item.image);
    this.canvas.removeAttribute("aria-busy");
    this.shown = item;
    this.spent = 0;
    this.since = document.visibilityState === "visible" ? performance.now() : null;
  }

  // elapsed is how long the image has been looked at, in milliseconds; a hidden
  // page does not count.
  elapsed() {
    return Math.min(DAY_MS, Math.round(this.spent + (this.since === null ? 0 : performance.now() - this.since)));
  }

  clock() {
    if (document.visibilityState === "visible") {
      this.since = performance.now();
    } else if (this.since !== null) {
      this.spent += performance.now() - this.since;
      this.since = null;
    }
  }

  fed() {
    this.tabs.tell();
    if (!this.shown) this.show();
  }

  claimed(answer) {
    if (answer.kind === "ok") {
      this.round = answer.body.round ?? this.round;
      this.waiting = answer.body.wait;
      if (!this.feed.current && answer.body.items.length === 0) this.wait();
      this.count();
    } else if (answer.kind === "refused") {
      this.notice(answer.message);
    } else {
      this.linked(answer.kind === "signedout" ? "signedout" : "retrying", answer.message);
      if (this.feed.low) this.later("claim", () => this.feed.refill());
    }
  }

  saved(entry, body) {
    this.round = body.round ?? this.round;
    this.linked("sending", "");
    if (!this.feed.current) this.poll();
  }

  // refused: the server will never take this entry. Say so, and stop showing what
  // was built on it.
  async refused(entry, message) {
    this.notice(message);
    const record = this.strip.records.find((r) => r.key === entry.key);
    if (record) this.strip.remove(record);
    const undo = this.outbox.entries.find((e) => e.kind === "undo" && e.of === entry.key);
    if (undo) await this.outbox.remove(undo.key);
    if (undo || entry.kind === "undo") {
      this.feed.drop(entry.item);
      this.show();
    }
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
    this.count();
  }

  // wait shows what there is to do while there is nothing to label.
  wait() {
    const pending = this.outbox.entries.length;
    const wait = pending > 0 ? { title: "Saving your last answers", detail: "" } : this.waiting;
    this.canvas.replaceChildren();
    $("main").classList.add("is-waiting");
    $("label-wait").hidden = false;
    $("label-wait-title").textContent = wait?.title ?? "Looking for images";
    $("label-wait-detail").textContent = wait?.detail ?? "";
    const bar = $("label-wait-bar");
    bar.hidden = wait?.fraction == null;
    bar.value = wait?.fraction ?? 0;
    const action = $("label-wait-action");
    action.hidden = !wait?.href;
    action.href = wait?.href ?? "";
    action.textContent = wait?.action ?? "";
    if (wait && wait.title !== this.waitTitle) this.say(`${wait.title}. ${wait.detail}`);
    this.waitTitle = wait?.title;
    this.later("poll", () => this.poll());
  }

  stopWaiting() {
    $("main").classList.remove("is-waiting");
    $("label-wait").hidden = true;
    this.waitTitle = undefined;
    clearTimeout(this.timers?.poll);
  }

  // poll asks whether there is something to label again.
  async poll() {
    if (this.feed.current) return;
    if (this.round?.state === "labeling") {
      await this.feed.refill();
    } else {
      await this.sync();
      if (this.round?.state === "labeling") await this.feed.refill();
    }
    if (!this.feed.current) this.wait();
  }

  later(name, action) {
    this.timers ??= {};
    clearTimeout(this.timers[name]);
    this.timers[name] = setTimeout(action, POLL_MS);
  }

  async renew() {
    if (document.visibilityState !== "visible" || this.feed.items.length === 0) return;
    const answer = await this.api.renew(this.feed.ids);
    if (answer.kind !== "ok") return;
    this.feed.asOf = answer.body.as_of;
    // An item put back by an undo that is still on its way is ours as well.
    const kept = [...answer.body.kept, ...this.outbox.entries.map((e) => e.item)];
    if (this.feed.keep(kept)) {
      this.notice("You were away and somebody else has taken this image. Here is another.");
      this.show();
    }
    if (this.feed.low) this.feed.refill();
  }

  release() {
    const items = this.feed.ids.filter((id) => !this.outbox.has(id));
    if (items.length > 0) this.api.release(items, this.feed.asOf);
  }

  // count shows saved, pending and left, which add up to the round.
  count() {
    const round = this.round;
    const decided = this.outbox.entries.filter((e) => e.kind === "decide").length;
    const undone = this.outbox.entries.length - decided;
    const total = round?.total ?? 0;
    const saved = round?.done ?? 0;
    const left = Math.max(0, total - saved - decided + undone);
    $("label-saved").textContent = saved;
    $("label-pending").textContent = this.outbox.entries.length;
    $("label-left").textContent = left;
    $("label-done").textContent = total - left;
    $("label-total").textContent = total;
    $("label-round").textContent = round ? `Round ${round.number}` : "No round";
    const bar = $("label-bar");
    bar.max = Math.max(1, total);
    bar.value = total - left;
    const fixed = this.round?.fixed ?? "";
    $("label-undo").disabled = this.strip.records.length === 0 || fixed !== "";
    $("label-undo").title = fixed;
    this.strip.lock(fixed);
    this.showLink();
  }

  // linked says how the connection is: idle, sending, retrying or signedout.
  linked(state, message) {
    this.link = { state, message };
    this.count();
  }

  showLink() {
    const { state, message } = this.link;
    const pending = this.outbox.entries.length;
    const kept = pending === 1 ? "1 answer is kept here and sent" : `${pending} answers are kept here and sent`;
    const box = $("label-link");
    if (state === "signedout") {
      box.firstElementChild.textContent = `${message} ${kept} when you sign in again.`;
    } else if (state === "retrying") {
      box.firstElementChild.textContent = `${message} ${kept} when it is back.`;
    }
    $("label-signin").hidden = state !== "signedout";
    box.hidden = state !== "signedout" && state !== "retrying";
  }

  notice(text) {
    $("label-notice").textContent = text;
    $("label-notice").hidden = false;
    clearTimeout(this.noticeTimer);
    this.noticeTimer = setTimeout(() => ($("label-notice").hidden = true), NOTICE_MS);
  }

  say(text) {
    $("label-say").textContent = text;
  }

  flash(button) {
    clearTimeout(this.flashTimer);
    this.flashed?.classList.remove("is-pressed");
    button.classList.add("is-pressed");
    this.flashed = button;
    this.flashTimer = setTimeout(() => button.classList.remove("is-pressed"), 160);
  }

  help(open = $("label-help").hidden) {
    $("label-help").hidden = !open;
    $("label-help-toggle").setAttribute("aria-expanded", String(open));
    if (!open && $("label-help").contains(document.activeElement)) $("label-help-toggle").focus();
  }

  zoom(event) {
    if (!this.shown) return;
    const on = this.canvas.classList.toggle("is-zoomed");
    $("label-zoom").setAttribute("aria-pressed", String(on));
    if (on && event) this.pan(event);
  }

  zoomOff() {
    this.canvas.classList.remove("is-zoomed");
    this.canvas.style.removeProperty("--zoom-x");
    this.canvas.style.removeProperty("--zoom-y");
    $("label-zoom").setAttribute("aria-pressed", "false");
  }

  pan(event) {
    if (!this.canvas.classList.contains("is-zoomed")) return;
    const box = this.canvas.getBoundingClientRect();
    this.canvas.style.setProperty("--zoom-x", `${((event.clientX - box.left) / box.width) * 100}%`);
    this.canvas.style.setProperty("--zoom-y", `${((event.clientY - box.top) / box.height) * 100}%`);
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
function viewOf({ id, src, thumb, width, height }) {
  return { id, src, thumb, width, height };
}

const boot = $("label-boot");
if (boot) new LabelPage(JSON.parse(boot.textContent)).start();
