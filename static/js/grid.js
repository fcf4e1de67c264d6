// Grid mode: a page of images that the model gives one class. One picks out the
// wrong ones and accepts the others with one key. The server's page works as a plain
// form; this module takes it over. Answers go to the labeling page's outbox, a page
// in one batch, each under its own client key; the next page is there at once.

import { dragToPick } from "./grid/drag.js";
import { Pile } from "./grid/pile.js";
import { tileOf, Tiles } from "./grid/tiles.js";
import { Api } from "./label/api.js";
import { Clock } from "./label/clock.js";
import { isField, Keymap } from "./label/keys.js";
import { holdTab, newKey, openOutbox, Sender } from "./label/outbox.js";
import { Status } from "./label/status.js";
import { Tabs } from "./label/tabs.js";
import { listenTheme } from "./label/theme.js";

const AGAIN_MS = 3_000; // between two looks for a group
const BLINK_MS = 300; // a page that nobody can have seen yet is not accepted
const IDLE_MS = 60_000; // forty images take longer to look at than one
const MOST = 100; // items of one request

const $ = (id) => document.getElementById(id);

class GridPage {
  constructor(boot) {
    this.boot = boot;
    this.round = boot.round;
    this.wait = boot.wait;
    this.tab = newKey();
    this.scope = `${boot.user}:${boot.project}`;
    this.api = new Api(boot.base, boot.user);
    this.page = null; // {class, tiles, rest} on the screen; rest: only what stayed of the one before
    this.past = boot.past.map((b) => ({ class: b.class, records: b.items })); // batches, oldest first
    this.away = new Set(); // items answered here: a claim under way may still list them
    this.refusals = []; // of the batch that is being sent
    this.keymap = new Keymap(boot.keys);
    this.status = new Status();
    this.form = $("grid-form");
    this.buttons = new Map([...this.form.querySelectorAll(".grid-answers button")].map((b) => [b.value, b]));
    this.clock = new Clock(undefined, IDLE_MS);
  }

  async start() {
    holdTab(this.tab);
    this.tabs = new Tabs(this.scope, this.tab, () => this.held, () => this.status.cut && this.sender.kick());
    const [outbox] = await Promise.all([openOutbox(this.scope, this.tab), this.tabs.meet(), this.keymap.learnLayout()]);
    this.outbox = outbox;
    this.adopt();
    this.tiles = new Tiles($("grid-tiles"), $("grid-tile"), {
      answerOf: (value) => this.answerOf(value),
      changed: () => this.told(),
    });
    this.pile = new Pile(this.api, this.boot.size, {
      skip: (id) => this.away.has(id) || this.tabs.has(id) || this.held.includes(id),
      skipped: () => this.outbox.entries.length + this.tabs.count + this.held.length,
      prepare: (tile) => this.tiles.prepare(tile),
      onState: (answer) => this.claimed(answer),
    });
    this.pile.asOf = this.boot.as_of;
    this.sender = new Sender(this.outbox, this.api, {
      onSaved: (entry, body) => this.saved(entry, body),
      onRefused: (entry, message) => this.refused(entry, message),
      onState: (state, message) => this.status.linked(state, message),
    });
    this.listen();
    this.showKeys();
    const items = this.boot.items.filter((i) => !this.away.has(i.id) && !this.tabs.has(i.id));
    if (items.length > 0) this.pile.putBack({ class: this.boot.class, tiles: items.map((i) => tileOf(i)) });
    this.sender.kick();
    this.advance();
    document.documentElement.dataset.grid = "ready";
  }

  // adopt takes over what earlier pages left in the outbox: their batches can be
  // taken back, and what they took back is no batch any more.
  adopt() {
    const undone = new Set(this.outbox.entries.filter((e) => e.kind === "undo").map((e) => e.item));
    for (const batch of this.past) batch.records = batch.records.filter((r) => !undone.has(r.item.id));
    for (const entry of this.outbox.entries) {
      if (entry.kind === "undo") {
        this.away.delete(entry.item);
        continue;
      }
      if (entry.kind !== "decide") continue;
      this.away.add(entry.item);
      if (!entry.batch) continue;
      let batch = this.past.find((b) => b.id === entry.batch);
      if (!batch) this.past.push((batch = { id: entry.batch, class: entry.group, records: [] }));
      batch.records.push({ item: entry.view, verdict: entry.verdict, class: entry.class, key: entry.key });
    }
    this.past = this.past.filter((b) => b.records.length > 0);
  }

  listen() {
    this.clock.listen();
    listenTheme($("label-theme"));
    document.addEventListener("keydown", (event) => this.key(event));
    // Enter in a checkbox is ours; it must not send the form on top.
    $("grid-tiles").addEventListener("keypress", (event) => event.key === "Enter" && event.preventDefault());
    this.form.addEventListener("submit", (event) => {
      event.preventDefault();
      const value = event.submitter?.value ?? "later";
      if (value === "later") this.accept();
      else this.answer(value);
    });
    $("grid-undo-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.undo();
    });
    $("label-help-toggle").addEventListener("click", () => this.help());
    $("label-help-close").addEventListener("click", () => this.help(false));
    $("grid-zoom").addEventListener("click", () => this.zoom());
    dragToPick($("grid-scroll"), $("grid-marquee"), this.tiles);

    addEventListener("pagehide", () => this.release());
    addEventListener("pageshow", (event) => event.persisted && location.reload());
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.renew());
    setInterval(() => this.renew(), (this.boot.lease_seconds * 1000) / 3);
  }

  // key turns a key press into what it asks for.
  key(event) {
    if (event.defaultPrevented || event.isComposing) return;
    if (event.code === "KeyA" && (event.ctrlKey || event.metaKey) && !isField(event.target)) {
      event.preventDefault();
      return this.tiles.pick(this.tiles.list, true);
    }
    if (event.ctrlKey || event.altKey || event.metaKey || isField(event.target)) return;
    if (event.code === "Enter" || event.code === "NumpadEnter") return this.enter(event);
    if (!$("label-help").contains(event.target) && this.tiles.key(event)) return event.preventDefault();
    const asked = this.keymap.command(event);
    if (!asked) return;
    event.preventDefault();
    switch (asked.name) {
      case "class":
        return this.answer(`known:${asked.index}`);
      case "undo":
        return this.undo();
      case "help":
        return this.help();
      case "zoom":
        return this.zoom();
      case "grid":
        return $("grid-single").click();
      case "close":
        if (!$("label-help").hidden) return this.help(false);
        return this.tiles.pick(this.tiles.list, false);
      default:
        return this.answer(asked.name);
    }
  }

  // enter accepts the page, except on a button or link, which it presses. Held down
  // it does nothing more.
  enter(event) {
    const other = event.target.closest?.("button, a, summary");
    if (other && !event.repeat) return;
    event.preventDefault();
    if (!other && !event.repeat) this.accept();
  }

  // answer says what the picked images are.
  answer(value) {
    if (!this.page || !this.buttons.has(value)) return;
    const own = value === `known:${this.page.class}`;
    const n = this.tiles.answer(own ? null : value);
    if (n === 0) return this.status.say("Nothing is picked out.");
    this.status.say(`${count(n)}: ${this.answerOf(value).name}.`);
  }

  // accept answers the page: the picked ones as they were answered, the rest as the
  // group's class. What was picked out without an answer stays for the next page.
  accept() {
    if (!this.page || performance.now() - this.shownAt < BLINK_MS) return;
    const { class: group, tiles } = this.page;
    const decided = this.tiles.decided;
    if (decided.length === 0) {
      return this.status.notice("Say what the picked images are, or label them one at a time.");
    }
    const batch = newKey();
    const duration = Math.round(this.clock.elapsed / decided.length);
    const records = decided.map((tile) => {
      const [verdict, index] = (tile.answer ?? `known:${group}`).split(":");
      return { item: tile.item, verdict, class: verdict === "known" ? Number(index) : -1, key: newKey() };
    });
    for (const r of records) {
      this.outbox.add({
        key: r.key, kind: "decide", item: r.item.id, view: r.item, verdict: r.verdict, class: r.class, duration, batch, group,
      });
      this.away.add(r.item.id);
    }
    this.past.push({ id: batch, class: group, records });
    const stay = tiles.filter((t) => !t.lost && !decided.includes(t));
    const unseen = stay.filter((t) => !t.seen).length;
    if (unseen > 0) this.status.notice(`${count(unseen)} had not loaded and ${unseen === 1 ? "stays" : "stay"} here.`);
    const others = records.filter((r) => r.verdict !== "known" || r.class !== group).length;
    this.status.say(`${count(records.length - others)} ${this.nameOf(group)}${others > 0 ? `, ${others} otherwise` : ""}.`);
    this.page = { class: group, tiles: stay };
    this.sender.kick();
    this.advance();
  }

  // advance goes on to the next page. What stayed of the one before comes first.
  advance() {
    const stay = this.page?.tiles ?? [];
    const next = this.pile.next();
    if (next && (stay.length === 0 || next.class === this.page.class)) {
      this.show({ class: next.class, tiles: [...stay, ...next.tiles] });
    } else {
      if (next) this.pile.putBack(next);
      this.show(stay.length > 0 ? { ...this.page, rest: true } : null);
    }
    this.pile.refill();
  }

  // undo takes the last page of answers back and shows it as it was.
  undo() {
    const batch = this.past.at(-1);
    if (!batch) return this.status.say("There is no page to take back.");
    if (this.round?.fixed) return this.status.notice(this.round.fixed);
    this.past.pop();
    const id = newKey();
    for (const r of batch.records) {
      this.outbox.add({ key: newKey(), kind: "undo", item: r.item.id, view: r.item, of: r.key, batch: id });
      this.away.delete(r.item.id);
    }
    const answered = batch.records.map((r) => {
      const value = r.verdict === "known" ? `known:${r.class}` : r.verdict;
      const own = value === `known:${batch.class}`;
      return tileOf(r.item, !own, own ? null : value);
    });
    const back = new Set(batch.records.map((r) => r.item.id));
    if (this.page) this.pile.putBack({ ...this.page, tiles: this.page.tiles.filter((t) => !back.has(t.item.id)) });
    this.show({ class: batch.class, tiles: answered });
    this.status.say(`Took back ${count(answered.length)}.`);
    this.sender.kick();
  }

  // show paints a page, or says why there is none.
  show(page) {
    const had = this.page !== null;
    this.page = page;
    if (page) {
      this.status.stopWaiting();
      this.tiles.show(page.tiles, true);
      $("grid-scroll").scrollTop = 0;
      $("grid-swatch").replaceChildren(this.answerOf(`known:${page.class}`).mark);
      $("grid-name").textContent = `Likely ${this.nameOf(page.class)}`;
      this.clock.start();
      this.shownAt = performance.now();
    } else {
      this.tiles.show([], false);
      this.showWait();
      if (had) $("main").focus();
    }
    this.told();
    this.tabs.tell();
  }

  showWait() {
    this.told();
    this.status.wait(this.wait);
    this.look();
  }

  // look asks again after a while whether there is a group.
  look() {
    clearTimeout(this.looking);
    this.looking = setTimeout(async () => {
      if (this.page || document.visibilityState === "hidden") return this.page || this.look();
      await this.pile.refill();
    }, AGAIN_MS);
  }

  // claimed hears what a claim brought.
  claimed(answer) {
    if (answer.kind === "ok") {
      this.round = answer.body.round ?? this.round;
      this.wait = answer.body.wait ?? null;
      if (!this.page) this.advanceFromWait();
      else if (this.page.rest && this.pile.pages[0]?.class === this.page.class) this.advance();
      this.tabs.tell();
      this.told();
    } else if (answer.kind === "refused") {
      this.status.notice(answer.message);
    } else {
      this.status.linked(answer.kind === "signedout" ? "signedout" : "retrying", answer.message);
      if (!this.page) this.showWait();
    }
  }

  advanceFromWait() {
    const next = this.pile.next();
    if (next) {
      this.show(next);
      this.pile.refill();
    } else {
      this.showWait();
    }
  }

  saved(entry, body) {
    this.round = body.round ?? this.round;
    if (entry.kind === "undo") this.reopened = true;
    this.sent();
  }

  // refused: the server will never take this entry. It is said, and what was built
  // on it goes.
  refused(entry, message) {
    this.refusals.push(message);
    for (const batch of this.past) batch.records = batch.records.filter((r) => r.key !== entry.key);
    this.past = this.past.filter((b) => b.records.length > 0);
    const undo = this.outbox.entries.find((e) => e.kind === "undo" && e.of === entry.key);
    if (undo) this.outbox.remove(undo.key);
    if (undo || entry.kind === "undo") this.loseItems([entry.item]);
    this.sent();
  }

  // sent tells of a batch once all of its answers are known, and looks for more
  // images once nothing is on its way.
  sent() {
    clearTimeout(this.telling);
    this.telling = setTimeout(() => {
      const n = this.refusals.length;
      if (n > 0) {
        this.status.notice(`${n === 1 ? "1 answer does" : `${n} answers do`} not count. ${this.refusals[0]}`);
        this.refusals = [];
        this.sync();
      }
      this.status.linked("sending", "");
      this.told();
      // Leases that an undo took are newer than what a release may end.
      if (this.reopened) this.renew();
      this.reopened = false;
      if (this.outbox.entries.length === 0) {
        if (!this.page) this.showWait();
        this.pile.refill();
      }
    });
  }

  // sync takes the server's word for where the round stands.
  async sync() {
    const answer = await this.api.state();
    if (answer.kind !== "ok") return;
    this.round = answer.body.round ?? this.round;
    this.told();
  }

  async renew() {
    if (document.visibilityState !== "visible") return;
    const kept = this.outbox.entries.map((e) => e.item);
    for (let ids = this.held; ids.length > 0; ids = ids.slice(MOST)) {
      const answer = await this.api.renew(ids.slice(0, MOST));
      if (answer.kind !== "ok") return;
      this.pile.asOf = answer.body.as_of;
      kept.push(...answer.body.kept, ...ids.slice(0, MOST).filter((id) => !this.held.includes(id)));
      const mine = new Set(kept);
      this.loseItems(ids.slice(0, MOST).filter((id) => !mine.has(id)));
    }
  }

  // loseItems takes images away that are not ours any more.
  loseItems(ids) {
    const gone = new Set(ids.filter((id) => this.held.includes(id)));
    if (gone.size === 0) return;
    this.pile.keep(this.pile.ids.filter((id) => !gone.has(id)));
    const lost = this.tiles.list.filter((t) => gone.has(t.item.id));
    if (lost.length > 0) {
      this.tiles.lose(lost);
      this.status.notice(`${count(lost.length)} of this page ${lost.length === 1 ? "is" : "are"} with somebody else by now and left out.`);
    }
    this.tabs.tell();
  }

  // release gives back what is not answered.
  release() {
    const ids = this.held.filter((id) => !this.outbox.has(id));
    for (let rest = ids; rest.length > 0; rest = rest.slice(MOST)) this.api.release(rest.slice(0, MOST), this.pile.asOf);
  }

  // held are the items that this tab shows or will show.
  get held() {
    const here = this.page?.tiles.filter((t) => !t.lost).map((t) => t.item.id) ?? [];
    return [...here, ...(this.pile?.ids ?? [])];
  }

  // told shows the figures of the page and the round.
  told() {
    this.figures();
    this.status.count(this.round, this.outbox.entries);
    const fixed = this.round?.fixed ?? "";
    $("grid-undo").setAttribute("aria-disabled", String(this.past.length === 0 || fixed !== ""));
    $("grid-undo").title = fixed;
  }

  // figures say what accepting the page does.
  figures() {
    const decided = this.tiles.decided;
    const rest = decided.filter((t) => !t.answer).length;
    const others = decided.length - rest;
    const picked = this.tiles.picked.length;
    const name = this.page ? this.nameOf(this.page.class) : "";
    $("grid-lead").textContent = `${count(this.tiles.list.length)}. Pick out the wrong ones.`;
    // Not disabled: Enter in a checkbox would press the next button instead.
    $("grid-accept").setAttribute("aria-disabled", String(decided.length === 0));
$("grid-accept-text").textContent = acceptText(rest, others, name);
    $("grid-accept-more").textContent = rest > 0 && others > 0 ? `${others} otherwise` : "";
    $("grid-picked").textContent = picked === 0 ? "The ones you pick out are" : `${picked} picked: ${picked === 1 ? "it is" : "they are"}`;
    this.form.classList.toggle("has-picked", picked > 0);
  }

  // showKeys writes on every button what is printed on its key.
  showKeys() {
    for (const kbd of document.querySelectorAll("kbd[data-action]")) {
      kbd.textContent = this.keymap.label(kbd.dataset.action);
      kbd.closest("button, a")?.setAttribute("aria-keyshortcuts", this.keymap.shortcut(kbd.dataset.action));
    }
  }

  help(open = $("label-help").hidden) {
    const panel = $("label-help");
    if (!open && panel.contains(document.activeElement)) $("label-help-toggle").focus();
    panel.hidden = !open;
    $("label-help-toggle").setAttribute("aria-expanded", String(open));
    if (open) panel.focus();
  }

  zoom() {
    const on = $("grid-tiles").classList.toggle("is-large");
    $("grid-zoom").setAttribute("aria-pressed", String(on));
    document.activeElement?.scrollIntoView({ block: "nearest" });
  }

  nameOf(index) {
    return this.buttons.get(`known:${index}`)?.dataset.name ?? "";
  }

  // answerOf returns the name of an answer, whole and short, and a copy of its mark.
  answerOf(value) {
    const button = this.buttons.get(value);
    const mark = button?.querySelector("svg")?.cloneNode(true) ?? "";
    return { name: button?.dataset.name ?? value, short: button?.dataset.short ?? value, mark };
  }
}

// acceptText says what accepting a page does.
function acceptText(rest, others, name) {
  if (rest > 0) return `Accept ${rest} as ${name}`;
  return others > 0 ? `Save ${others} otherwise` : "Nothing to accept yet";
}

function count(n) {
  return n === 1 ? "1 image" : `${n} images`;
}

const boot = $("grid-boot");
if (boot) new GridPage(JSON.parse(boot.textContent)).start();
