// The outbox: decisions, undos and flags on their way to the server, in order. It is
// kept in IndexedDB, so that a reload, a crash, a dropped network or an expired
// session loses nothing; each entry has a client key, so that sending it twice
// counts once.

const DATABASE = "winnow";
const STORE = "outbox";

// openOutbox returns the outbox of one user in one project, with what earlier
// pages left behind. Where IndexedDB is not to be had (some private windows) it
// lives in memory, and `durable` is false.
export async function openOutbox(scope, tab) {
  let database = null;
  try {
    database = await openDatabase();
  } catch {
    // Labeling goes on without it.
  }
  const outbox = new Outbox(database, scope, tab);
  if (database) await outbox.adopt();
  return outbox;
}

class Outbox {
  entries = [];

  constructor(database, scope, tab) {
    this.database = database;
    this.scope = scope;
    this.tab = tab;
  }

  get durable() {
    return this.database !== null;
  }

  // adopt takes over entries of pages that are no more. A page that still runs
  // holds the lock of its name and sends its own.
  async adopt() {
    const alive = await liveTabs();
    const all = await request(this.#store("readonly").getAll());
    const orphans = all.filter((e) => e.scope === this.scope && !alive.has(e.tab));
    orphans.sort((a, b) => a.at - b.at);
    this.entries.push(...orphans);
  }

  // add keeps an entry. It is in memory at once; the promise resolves when it is
  // on disk.
  add(entry) {
    entry.scope = this.scope;
    entry.tab = this.tab;
    entry.at = Date.now() + (performance.now() % 1); // ordered within a millisecond
    this.entries.push(entry);
    return this.#write((store) => store.put(entry));
  }

  remove(key) {
    this.entries = this.entries.filter((e) => e.key !== key);
    return this.#write((store) => store.delete(key));
  }

  has(item) {
    return this.entries.some((e) => e.item === item);
  }

  async #write(change) {
    if (!this.database) return;
    try {
      await request(change(this.#store("readwrite")));
    } catch {
      this.database = null; // quota or a wiped profile: go on in memory
    }
  }

  #store(mode) {
    return this.database.transaction(STORE, mode).objectStore(STORE);
  }
}

// Sender empties the outbox in order, one entry at a time or those of one batch
// together: an undo must not overtake the decision it takes back. It reports
// `state`: idle, sending, retrying or signedout.
export class Sender {
  #timer = 0;
  #failures = 0;
  #busy = false;

  constructor(outbox, api, { onSaved, onRefused, onState }) {
    this.outbox = outbox;
    this.api = api;
    this.onSaved = onSaved;
    this.onRefused = onRefused;
    this.onState = onState;
    addEventListener("online", () => this.kick());
    addEventListener("focus", () => this.kick());
  }

  // kick sends what waits, now.
  kick() {
    clearTimeout(this.#timer);
    if (!this.#busy) this.#run();
  }

  async #run() {
    this.#busy = true;
    try {
      while (this.outbox.entries.length > 0) {
        const entries = together(this.outbox.entries);
        const answer = await this.#send(entries);
        if (answer.kind === "retry" || answer.kind === "signedout") {
          this.#later(answer);
          return;
        }
        this.#failures = 0;
        // What it counts as pending turns into what is saved in one task: no figure
        // on the page is ever between the two.
        const removed = Promise.all(entries.map((e) => this.outbox.remove(e.key)));
        for (const [i, entry] of entries.entries()) {
          const own = answer.each?.[i] ?? answer;
          if (own.kind === "ok") this.onSaved(entry, own.body);
          else this.onRefused(entry, own.message);
        }
        await removed;
      }
      this.onState("idle", "");
    } finally {
      this.#busy = false;
    }
  }

  #send(entries) {
    const [first] = entries;
    if (first.batch) return first.kind === "undo" ? this.api.undoAll(entries) : this.api.decideAll(entries);
    return { undo: () => this.api.undo(first), flag: () => this.api.flag(first), decide: () => this.api.decide(first) }[first.kind]();
  }

  #later(answer) {
    this.#failures++;
    const ceiling = Math.min(15_000, 400 * 2 ** this.#failures);
    this.#timer = setTimeout(() => this.kick(), ceiling * (0.5 + Math.random() / 2));
    this.onState(answer.kind === "signedout" ? "signedout" : "retrying", answer.message);
  }
}

// together is what goes out at once: the first entry, with those after it that
// were made in the same batch.
function together(entries) {
  const [first] = entries;
  if (!first.batch) return [first];
  const end = entries.findIndex((e) => e.batch !== first.batch || e.kind !== first.kind);
  return entries.slice(0, end < 0 ? entries.length : end);
}

// newKey makes a client key. randomUUID exists only in secure contexts, and a
// server on a local network is often plain HTTP.
export function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

// holdTab takes the lock that says this page is alive, for as long as it is.
export function holdTab(tab) {
  navigator.locks?.request(lockName(tab), () => new Promise(() => {}));
}

async function liveTabs() {
  if (!navigator.locks) return new Set();
  const { held } = await navigator.locks.query();
  return new Set(held.filter((l) => l.name.startsWith(lockName(""))).map((l) => l.name.slice(lockName("").length)));
}

function lockName(tab) {
  return `winnow-tab-${tab}`;
}

function openDatabase() {
  const opening = indexedDB.open(DATABASE, 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore(STORE, { keyPath: "key" });
  return request(opening);
}

function request(req) {
  return new Promise((resolve, reject) => {
    req.onsuccess = () => resolve(req.result);
    req.onerror = () => reject(req.error);
  });
}
