// Keys by where they are on the keyboard (event.code), so that digits work on
// layouts that need Shift for them and letters stay under the same fingers.

const COMMANDS = {
  KeyU: "unknown",
  KeyS: "skip",
  KeyX: "unreadable",
  Backspace: "undo",
  KeyH: "help",
  KeyZ: "zoom",
  KeyG: "grid",
  Slash: "filter",
  Escape: "close",
};

// command says what a key press asks for: {name, index} or null. It stays out of
// the way of typing, of key-repeat and of the browser's own shortcuts.
export function command(event) {
  if (event.defaultPrevented || event.isComposing || event.repeat) return null;
  if (event.ctrlKey || event.altKey || event.metaKey) return null;
  if (isField(event.target) && event.code !== "Escape") return null;

  const digit = /^(Digit|Numpad)([0-9])$/.exec(event.code);
  if (digit) {
    if (digit[1] === "Numpad" && !/^[0-9]$/.test(event.key)) return null; // NumLock is off: arrows
    const column = (Number(digit[2]) + 9) % 10; // 1 is first, 0 is tenth
    return { name: "class", index: column + (event.shiftKey ? 10 : 0) };
  }
  const name = COMMANDS[event.code];
  return name ? { name } : null;
}

// isField reports whether keys pressed on the element are typed into it.
export function isField(element) {
  return element instanceof Element && element.closest("input:not([type=checkbox]), textarea, select, [contenteditable]") !== null;
}
