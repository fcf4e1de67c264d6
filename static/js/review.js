// The review queue at labeling speed: one key = corrected + next image. The server's
// pages work as plain forms; this module fetches what comes next ahead of time, sends
// corrections behind the admin's back, and takes the keys. Each correction has a client
// key of its own, so it may be sent any number of times and counts once.

const AHEAD = 3; // entries that are fetched and decoded before they are asked for
const BACK = 20; // entries that Back can return to
const RETRY_MS = 3_000;

const $ = (id) => document.getElementById(id);

class Review {
  constructor() {
    this.entry = $("review-entry");
    this.ahead = []; // promises of the entries that follow, in their order
    this.past = []; // entries that were answered or left, the latest last
    this.sending = new Set();
  }

  start() {
    this.adopt();
    document.addEventListener("keydown", (event) => this.key(event));
    document.addEventListener("submit", (event) => this.submit(event));
    document.addEventListener("click", (event) => this.click(event));
    document.addEventListener("input", (event) => this.filter(event));
    addEventListener("beforeunload", (event) => {
      if (this.sending.size > 0) event.preventDefault();
    });
    document.documentElement.dataset.review = "ready";
  }

  // adopt makes an entry that has just been shown ready for scripts.
  adopt() {
    const field = this.entry.querySelector(".review-filter");
    if (field) field.hidden = false;
    const back = $("review-back");
    if (back) back.hidden = this.past.length === 0;
    this.fill();
  }

  // fill keeps the next entries under way: each is behind the one before it.
  fill() {
    while (this.ahead.length < AHEAD) {
      const before = this.ahead.at(-1) ?? Promise.resolve(this.entry);
      const entry = before.then(follow);
      entry.catch(() => {}); // next says so, when it is this entry's turn
      this.ahead.push(entry);
    }
  }

  key(event) {
    if (event.defaultPrevented || event.isComposing || event.repeat) return;
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.target.closest?.("input, textarea, select, [contenteditable]")) return this.typed(event);
    const act = this.command(event);
    if (!act) return;
    event.preventDefault();
    act();
  }

  // command goes by where a key is on the keyboard, as the labeling page does.
  command(event) {
    const digit = /^(Digit|Numpad)([0-9])$/.exec(event.code);
    if (digit) {
      if (digit[1] === "Numpad" && !/^[0-9]$/.test(event.key)) return null;
      const index = ((Number(digit[2]) + 9) % 10) + (event.shiftKey ? 10 : 0);
      return () => this.press(`known:${index}`);
    }
    switch (event.code) {
      case "KeyU":
        return () => this.press("unknown");
      case "KeyS":
        return () => this.press("skip");
      case "KeyX":
        return () => this.press("unreadable");
      case "KeyK":
        return () => this.press("keep");
      case "KeyN":
      case "ArrowRight":
        return () => this.next();
      case "Backspace":
      case "ArrowLeft":
        return () => this.back();
      case "KeyM":
        return () => this.scores();
      case "Slash":
        return () => this.entry.querySelector(".review-filter")?.focus();
    }
    return null;
  }

  // typed is a key in the field that finds a class.
  typed(event) {
    const field = event.target;
    if (!field.classList.contains("review-filter")) return;
    if (event.code === "Escape") {
      field.value = "";
      field.blur();
      this.filter({ target: field });
    } else if (event.key === "Enter") {
      event.preventDefault();
      const match = this.entry.querySelector(".choice.is-match");
      if (match) this.press(match.value, true);
    }
  }

  filter(event) {
    const field = event.target;
    if (!field.classList?.contains("review-filter")) return;
    const text = field.value.trim().toLowerCase();
    const choices = [...this.entry.querySelectorAll(".choice")];
    const names = choices.map((c) => c.dataset.name.toLowerCase());
    let match = text === "" ? -1 : names.findIndex((n) => n.startsWith(text));
    if (match < 0 && text !== "") match = names.findIndex((n) => n.includes(text));
    choices.forEach((choice, i) => {
      choice.hidden = text !== "" && !names[i].includes(text);
      choice.classList.toggle("is-match", i === match);
    });
  }

  submit(event) {
    if (!event.target.matches("#review-form") || !event.submitter) return;
    event.preventDefault();
    this.press(event.submitter.value);
  }

  click(event) {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    if (event.target.closest("#review-next")) {
      event.preventDefault();
      this.next();
    } else if (event.target.closest("#review-back")) {
      this.back();
    }
  }

  // press answers the entry on the screen and shows the next one.
  press(value, typing = false) {
    const form = this.entry.querySelector("#review-form");
    const button = form?.querySelector(`button[value="${value}"]`);
    if (!button || this.waiting) return;
    const body = new URLSearchParams(new FormData(form));
    body.set("answer", value);
    const name = value === "keep" ? "Kept" : button.dataset.name;
    this.mark(button);
    this.send(form.action, body, name, Number(this.entry.dataset.image));
    // Answered again after Back, it is another correction.
    form.elements.client_key.value = newKey();
    if (this.entry.dataset.done === undefined) {
      this.entry.dataset.done = "";
      this.count(-1);
    }
    this.say(`${name}.`);
    this.next(typing);
  }

  // mark shows on an entry what was said of it, for when Back returns to it.
  mark(button) {
    for (const choice of this.entry.querySelectorAll(".choice")) choice.classList.toggle("is-said", choice === button);
  }

  async next(typing = false) {
    if (this.waiting || this.entry.dataset.end !== undefined) return;
    this.waiting = true;
    this.entry.setAttribute("aria-busy", "true");
    try {
      const promise = this.ahead.shift() ?? follow(this.entry);
      let entry = await promise;
      if (entry.dataset.end !== undefined) entry = await this.end();
      this.past.push(this.entry);
      if (this.past.length > BACK) this.past.shift();
      this.show(entry);
      if (typing) entry.querySelector(".review-filter")?.focus();
    } catch {
      this.ahead = [];
      this.notice("The next image does not come: the server does not answer. Press N to try again; nothing you decided is lost.");
    } finally {
      this.waiting = false;
      this.entry.removeAttribute("aria-busy");
    }
  }

  // end fetches the end of the list anew: what was fetched ahead counted as waiting what
  // has been decided since.
  async end() {
    await Promise.race([Promise.allSettled(this.sending), new Promise((resolve) => setTimeout(resolve, RETRY_MS))]);
    this.ahead = [];
    return load(`${location.pathname}?end=1`);
  }

  back() {
    if (this.waiting || this.past.length === 0) return;
    this.ahead.unshift(Promise.resolve(this.entry));
    this.show(this.past.pop());
    this.say("Back. Answer again to change it.");
  }

  show(entry) {
    this.entry.replaceWith(entry);
    this.entry = entry;
    $("review-notice").replaceChildren();
    this.adopt();
  }

  scores() {
    const details = this.entry.querySelector(".review-scores");
    if (details) details.open = !details.open;
  }

  // send delivers a correction, again and again until the server has an opinion.
  async send(url, body, name, image) {
    const sent = this.deliver(url, body);
    this.sending.add(sent);
    this.link("");
    const refusal = await sent;
    this.sending.delete(sent);
    this.link("");
    if (refusal) this.refused(image, name, refusal);
  }

  async deliver(url, body) {
    for (;;) {
      const answer = await post(url, body);
      if (answer.kind !== "retry") return answer.message;
      this.link(answer.message);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  // link says what is not saved yet, and why.
  link(message) {
    const line = $("review-link");
    const n = this.sending.size;
    document.documentElement.dataset.pending = String(n);
    line.hidden = n === 0 || (message === "" && n < 3);
    line.textContent = message === "" ? `${n} being saved` : `${message} ${n} kept here; trying again.`;
  }

  refused(image, name, message) {
    const notice = document.createElement("div");
    notice.className = "notice bad";
    notice.setAttribute("role", "alert");
    const p = document.createElement("p");
    const to = document.createElement("a");
    to.href = location.pathname.replace(/review$/, `images/${image}`);
    to.textContent = `image ${image}`;
    p.append(`“${name}” was not taken for `, to, `: ${message}`);
    notice.append(p);
    $("review-notice").replaceChildren(notice);
    this.count(+1);
  }

  notice(message) {
    const p = document.createElement("p");
    p.textContent = message;
    const notice = document.createElement("div");
    notice.className = "notice warn";
    notice.setAttribute("role", "alert");
    notice.append(p);
    $("review-notice").replaceChildren(notice);
  }

  // count changes the figures of what waits, where they are exact.
  count(by) {
    for (const figure of [$("review-left"), document.querySelector(".tabs .count")?.firstChild]) {
      const n = Number(figure?.textContent);
      if (figure && Number.isInteger(n)) figure.textContent = String(Math.max(0, n + by));
    }
  }

  say(text) {
    $("review-say").textContent = text;
  }
}

// follow fetches the entry behind another, with its image decoded.
async function follow(entry) {
  const link = entry.querySelector("#review-next");
  return link ? load(link.href) : entry; // the end is behind itself
}

async function load(url) {
  const response = await fetch(url, { credentials: "same-origin" });
  const page = new DOMParser().parseFromString(await response.text(), "text/html");
  const next = page.getElementById("review-entry");
  if (!response.ok || response.redirected || !next) throw new Error(`status ${response.status}`);
  const adopted = document.importNode(next, true);
  const image = adopted.querySelector("img");
  await image?.decode().catch(() => {}); // a picture that does not load shows as such
  return adopted;
}

// post sends a form: "ok", "refused" for good, or "retry".
async function post(url, body) {
  let response;
  try {
    response = await fetch(url, {
      method: "POST", body, credentials: "same-origin", keepalive: true, headers: { Accept: "application/json" },
    });
  } catch {
    return { kind: "retry", message: "The server does not answer." };
  }
  const answer = await response.json().catch(() => null);
  if (response.ok && answer && !response.redirected) return { kind: "ok" };
  if (response.status === 401 || response.redirected) return { kind: "retry", message: "You are signed out: sign in in another tab." };
  if (response.status >= 500 || response.status === 429 || !answer) return { kind: "retry", message: "The server has a problem." };
  return { kind: "refused", message: answer.detail };
}

function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

new Review().start();
