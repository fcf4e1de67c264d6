// What the page says of itself: saved, pending and left, how the connection is, and
// why there is nothing to label.

const NOTICE_MS = 8_000;

const $ = (id) => document.getElementById(id);

export class Status {
  link = { state: "idle", message: "" };
  pending = 0;
  left = 0;

  // count shows saved, pending and left, which add up to the round.
  count(round, entries) {
    const decided = entries.filter((e) => e.kind === "decide").length;
    const undone = entries.filter((e) => e.kind === "undo").length;
    const total = round?.total ?? 0;
    const saved = round?.done ?? 0;
    this.left = Math.min(total, Math.max(0, total - saved - decided + undone));
    write("label-saved", saved);
    this.kept(entries.length);
    write("label-left", this.left);
    write("label-done", total - this.left);
    write("label-total", total);
    this.#digits(String(total).length);
    write("label-round", round ? `Round ${round.number}` : "No round");
    const bar = $("label-bar");
    bar.max = Math.max(1, total);
    bar.value = total - this.left;
    this.#showLink();
  }

  #digits(n) {
    if (n === this.digits) return;
    this.digits = n;
    $("label-bar").parentElement.style.setProperty("--digits", n);
  }

  // kept is how many entries are on their way.
  kept(pending) {
    this.pending = pending;
    write("label-pending", pending);
  }

  // linked says how the connection is: idle, sending, retrying or signedout.
  linked(state, message) {
    this.link = { state, message };
    this.#showLink();
  }

  get cut() {
    return this.link.state === "retrying" || this.link.state === "signedout";
  }

  #showLink() {
    const box = $("label-link");
    box.hidden = !this.cut;
    if (!this.cut) return;
    const out = this.link.state === "signedout";
    $("label-signin").hidden = !out;
    const kept = this.pending === 1 ? "1 answer is kept here and sent" : `${this.pending} answers are kept here and sent`;
    const text = `${this.link.message} ${kept} when ${out ? "you sign in again" : "it is back"}.`;
    if (box.firstElementChild.textContent !== text) box.firstElementChild.textContent = text;
  }

  // notice shows a sentence for a while; "" takes it away.
  notice(text) {
    write("label-notice", text);
    $("label-notice").hidden = text === "";
    clearTimeout(this.timer);
    this.timer = setTimeout(() => ($("label-notice").hidden = true), NOTICE_MS);
  }

  // say tells a screen reader.
  say(text) {
    write("label-say", text);
  }

  // wait says what there is to do while there is nothing to label.
  wait(asked) {
    const wait = this.#why(asked);
    $("main").classList.add("is-waiting");
    $("label-wait").hidden = false;
    write("label-wait-title", wait.title);
    write("label-wait-detail", wait.detail);
    const bar = $("label-wait-bar");
    bar.hidden = wait.fraction == null;
    bar.value = wait.fraction ?? 0;
    const action = $("label-wait-action");
    action.hidden = !wait.href;
    action.href = wait.href ?? "";
    write("label-wait-action", wait.action ?? "");
    if (wait.title !== this.waitTitle) this.say(`${wait.title}. ${wait.detail}`);
    this.waitTitle = wait.title;
  }

  #why(asked) {
    if (this.cut) return { title: "No more images here for now", detail: "The next ones come as soon as the server is back. What you answered is kept." };
    if (this.pending > 0) return { title: "Saving your last answers", detail: "" };
    return asked ?? { title: "Looking for images", detail: "" };
  }

  stopWaiting() {
    if (this.waitTitle === undefined && $("label-wait").hidden) return;
    $("main").classList.remove("is-waiting");
    $("label-wait").hidden = true;
    this.waitTitle = undefined;
  }
}

// write changes a text only where it differs: an element that stays the same costs
// no layout, and is not read out again.
function write(id, value) {
  const element = $(id);
  const text = String(value);
  if (element.textContent !== text) element.textContent = text;
}
