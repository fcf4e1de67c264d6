// Talks to the server. Every answer is one of four kinds, so that callers decide
// by kind and never by status:
//   ok        the server did it; `body` is its JSON
//   refused   it will never do it; `message` says why
//   signedout nobody (or somebody else) is signed in: keep everything, ask again later
//   retry     the network or the server failed: keep everything, ask again soon

const TIMEOUT_MS = 15_000;

export class Api {
  constructor(base, user) {
    this.base = base;
    this.user = user;
  }

  claim(n) {
    return this.#send("POST", "claim", { n });
  }

  decide(entry) {
    return this.#send("POST", "decide", decisionOf(entry));
  }

  undo(entry) {
    return this.#send("POST", "undo", { item: entry.item, client_key: entry.key });
  }

  // decideAll sends decisions that were made at once. Each has an answer of its
  // own, in `each`.
  async decideAll(entries) {
    const decisions = entries.map(decisionOf);
    const answer = await this.#send("POST", "decide-all", { decisions });
    if (answer.kind !== "ok") return answer;
    const { outcomes, round } = answer.body;
    const each = outcomes.map((o) => (o.error ? { kind: "refused", message: o.error } : { kind: "ok", body: { ...o, round } }));
    return { ...answer, each };
  }

  // undoAll takes decisions back that were made at once: all of them, or none.
  undoAll(entries) {
    return this.#send("POST", "undo-all", { undos: entries.map((e) => ({ item: e.item, client_key: e.key })) });
  }

  // offer asks whether there is a group of like items.
  offer() {
    return this.#send("GET", "alike");
  }

  // alike claims up to n items that the model gives one class.
  alike(n) {
    return this.#send("POST", "alike", { n });
  }

  flag(entry) {
    return this.#send("POST", "flag", { item: entry.item, note: entry.note });
  }

  // saveKeys keeps the person's own keys, for all projects.
  saveKeys(keys) {
    return this.#send("POST", "/account/keys", { keys });
  }

  renew(items) {
    return this.#send("POST", "renew", { items });
  }

  state() {
    return this.#send("GET", "state");
  }

  // giveBack ends leases, and answers when they have ended.
  giveBack(items, asOf) {
    return this.#send("POST", "release", { items, as_of: asOf });
  }

  // release runs while the page goes away, so it neither waits nor reports.
  release(items, asOf) {
    const body = JSON.stringify({ user: this.user, items, as_of: asOf });
    const blob = new Blob([body], { type: "application/json" });
    navigator.sendBeacon(`${this.base}/release`, blob);
  }

  async #send(method, path, body) {
    const options = {
      method,
      credentials: "same-origin",
      headers: { Accept: "application/json" },
      signal: AbortSignal.timeout(TIMEOUT_MS),
    };
    if (body) {
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify({ user: this.user, ...body });
    }
    let response;
    try {
      response = await fetch(path.startsWith("/") ? path : `${this.base}/${path}`, options);
    } catch {
      return { kind: "retry", message: "The server does not answer." };
    }
    return classify(response);
  }
}

// decisionOf is an outbox entry as the server reads it.
function decisionOf(entry) {
  return {
    item: entry.item,
    verdict: entry.verdict,
    class: entry.class,
    client_key: entry.key,
    duration_ms: entry.duration,
  };
}

async function classify(response) {
  const isJSON = (response.headers.get("Content-Type") ?? "").includes("json");
  let body = null;
  if (isJSON) {
    try {
      body = await response.json();
    } catch {
      return { kind: "retry", message: "The answer was cut off." };
    }
  }
  if (response.ok && isJSON && !response.redirected) return { kind: "ok", body };
  // A redirect or a page instead of JSON means that a sign-in form came back.
  if (response.status === 401 || response.redirected || (response.ok && !isJSON)) {
    return { kind: "signedout", message: body?.detail ?? "You are signed out." };
  }
  if (response.status >= 500 || response.status === 408 || response.status === 429 || !isJSON) {
    return { kind: "retry", message: body?.detail ?? "The server has a problem." };
  }
  return { kind: "refused", message: body?.detail ?? "The server refused." };
}
