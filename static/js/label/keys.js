// Keys by where they are on the keyboard (event.code), so that digits work on
// layouts that need Shift for them and letters stay under the same fingers. A key
// is written as the server keeps it: "KeyU", "Shift+Digit1".

const DEFAULTS = {
  unknown: "KeyU",
  skip: "KeyS",
  unreadable: "KeyX",
  undo: "Backspace",
  flag: "KeyF",
  zoom: "KeyZ",
  help: "KeyH",
  grid: "KeyG",
  filter: "Slash",
};
for (let i = 0; i < 20; i++) DEFAULTS[`class:${i}`] = `${i < 10 ? "" : "Shift+"}Digit${(i + 1) % 10}`;

// What is printed on a US keyboard on the keys that may be chosen, besides letters
// and digits. All others move, scroll or press what has the focus: the browser's.
const PRINTED = {
  Backquote: "`",
  Minus: "-",
  Equal: "=",
  BracketLeft: "[",
  BracketRight: "]",
  Backslash: "\\",
  IntlBackslash: "<",
  Semicolon: ";",
  Quote: "'",
  Comma: ",",
  Period: ".",
  Slash: "/",
  Backspace: "⌫",
  Delete: "Del",
  NumpadAdd: "Num +",
  NumpadSubtract: "Num -",
  NumpadMultiply: "Num *",
  NumpadDivide: "Num /",
  NumpadDecimal: "Num .",
};

const SHIFT = "Shift+";

// Keymap says which key asks for what: the defaults, but for the person's own.
export class Keymap {
  #layout = null; // what is printed on the keys of this keyboard, where the browser tells
  #actions = new Map();

  constructor(own = {}) {
    this.use(own);
  }

  use(own) {
    this.keys = { ...DEFAULTS, ...own };
    this.#actions = new Map(Object.entries(this.keys).map(([action, key]) => [key, action]));
  }

  // learnLayout asks the browser what is printed on the keys; few tell.
  async learnLayout() {
    try {
      this.#layout = (await navigator.keyboard?.getLayoutMap()) ?? null;
    } catch {
      // The labels of a US keyboard stay.
    }
  }

  // command says what a key press asks for, {name, index} or null. It stays out of
  // the way of typing, of key-repeat and of the browser's own shortcuts.
  command(event) {
    if (event.defaultPrevented || event.isComposing || event.repeat || held(event)) return null;
    if (event.code === "Escape") return { name: "close" };
    if (isField(event.target)) return null;
    const action = this.action(keyOf(event)) ?? this.action(numpadDigit(event));
    if (!action) return null;
    const [name, index] = action.split(":");
    return index === undefined ? { name } : { name, index: Number(index) };
  }

  action(key) {
    return this.#actions.get(key) ?? null;
  }

  // label is what is printed on the key of an action: "U", "⇧1".
  label(action) {
    const key = this.keys[action] ?? "";
    return (key.startsWith(SHIFT) ? "⇧" : "") + this.#printed(key);
  }

  // shortcut is the same in the words of aria-keyshortcuts.
  shortcut(action) {
    const key = this.keys[action] ?? "";
    const code = bare(key);
    return (key.startsWith(SHIFT) ? SHIFT : "") + (code === "Backspace" || code === "Delete" ? code : this.#printed(key));
  }

  #printed(key) {
    const code = bare(key);
    const digit = /^Digit(\d)$/.exec(code); // a digit is a digit, also where it needs Shift
    if (digit) return digit[1];
    const known = this.#layout?.get(code);
    if (known) return known.toUpperCase();
    return /^Key(.)$/.exec(code)?.[1] ?? PRINTED[code] ?? "";
  }
}

const usual = new Keymap();

// command goes by the default keys.
export function command(event) {
  return usual.command(event);
}

// keyOf writes the key of an event as the keymap does.
export function keyOf(event) {
  return (event.shiftKey ? SHIFT : "") + event.code;
}

// choosable reports whether a key may be chosen for an action.
export function choosable(event) {
  return !held(event) && (/^(Key[A-Z]|Digit[0-9])$/.test(event.code) || event.code in PRINTED);
}

// isField reports whether keys pressed on the element are typed into it.
export function isField(element) {
  return element instanceof Element && element.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null;
}

function held(event) {
  return event.ctrlKey || event.altKey || event.metaKey;
}

function bare(key) {
  return key.startsWith(SHIFT) ? key.slice(SHIFT.length) : key;
}

// numpadDigit is the digit that the number pad stands for while NumLock is on.
function numpadDigit(event) {
  const digit = /^Numpad([0-9])$/.exec(event.code);
  return digit && digit[1] === event.key ? `${event.shiftKey ? SHIFT : ""}Digit${digit[1]}` : "";
}
