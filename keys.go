package winnow

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Keys are a person's own keys on the labeling page, by action, where they differ
// from the defaults. A key is named by its place, as browsers name it in
// KeyboardEvent.code, with "Shift+" before it if Shift is held: "KeyU",
// "Shift+Digit1".
type Keys map[string]string

// KeyAction is something that a key asks for on the labeling page.
type KeyAction struct {
	Action  string // "class:0" is the first class
	Name    string
	Default string
}

// keyedClasses is how many classes have a key.
const keyedClasses = 20

// KeyActions lists what has a key, classes first.
func KeyActions() []KeyAction {
	actions := make([]KeyAction, 0, keyedClasses+9)
	for i := range keyedClasses {
		code := fmt.Sprintf("Digit%d", (i+1)%10)
		if i >= 10 {
			code = "Shift+" + code
		}
		actions = append(actions, KeyAction{fmt.Sprintf("class:%d", i), fmt.Sprintf("Class %d", i+1), code})
	}
	return append(actions,
		KeyAction{"unknown", "Unknown class", "KeyU"},
		KeyAction{"skip", "Skip", "KeyS"},
		KeyAction{"unreadable", "Unreadable", "KeyX"},
		KeyAction{"undo", "Undo", "Backspace"},
		KeyAction{"flag", "Flag", "KeyF"},
		KeyAction{"zoom", "Zoom", "KeyZ"},
		KeyAction{"help", "Instructions", "KeyH"},
		KeyAction{"grid", "Grid", "KeyG"},
		KeyAction{"filter", "Find a class", "Slash"},
	)
}

// keyNames are the keys that may be chosen besides letters and digits, with what is
// printed on them where the keyboard is a US one. Those that move, scroll or press
// what has the focus stay the browser's.
var keyNames = map[string]string{
	"Backquote": "`", "Minus": "-", "Equal": "=", "BracketLeft": "[", "BracketRight": "]", "Backslash": `\`,
	"IntlBackslash": "<", "Semicolon": ";", "Quote": "'", "Comma": ",", "Period": ".", "Slash": "/",
	"Backspace": "⌫", "Delete": "Del", "NumpadAdd": "Num +", "NumpadSubtract": "Num -", "NumpadMultiply": "Num *",
	"NumpadDivide": "Num /", "NumpadDecimal": "Num .",
}

const shift = "Shift+"

// keyName returns what is printed on a key, "" if it may not be chosen.
func keyName(code string) string {
	for _, prefix := range []string{"Key", "Digit"} {
		rest, ok := strings.CutPrefix(code, prefix)
		if ok && len(rest) == 1 && (rest[0] >= 'A' && rest[0] <= 'Z') == (prefix == "Key") && (rest[0] >= '0' && rest[0] <= '9') == (prefix == "Digit") {
			return rest
		}
	}
	return keyNames[code]
}

// KeyLabel returns what a button shows of a key: "U", "⇧1".
func KeyLabel(key string) string {
	if code, ok := strings.CutPrefix(key, shift); ok {
		return "⇧" + keyName(code)
	}
	return keyName(key)
}

// ParseKey reads a key as a person writes it: "u", "Shift+1", "⇧1", "Backspace", "/".
func ParseKey(s string) (string, error) {
	name, held := strings.TrimSpace(s), ""
	if rest, ok := strings.CutPrefix(name, "⇧"); ok {
		name, held = strings.TrimSpace(rest), shift
	} else if first, rest, ok := strings.Cut(name, "+"); ok && strings.EqualFold(strings.TrimSpace(first), "Shift") {
		name, held = strings.TrimSpace(rest), shift
	}
	if len(name) == 1 {
		upper := strings.ToUpper(name)
		if code := "Key" + upper; keyName(code) != "" {
			return held + code, nil
		}
		if code := "Digit" + upper; keyName(code) != "" {
			return held + code, nil
		}
	}
	for code, printed := range keyNames {
		if strings.EqualFold(name, printed) || strings.EqualFold(name, code) {
			return held + code, nil
		}
	}
	return "", fmt.Errorf("%q is not a key that can be chosen", clip(s, 20))
}

// Of returns the key of every action: the person's own, or the default.
func (k Keys) Of() map[string]string {
	all := map[string]string{}
	for _, a := range KeyActions() {
		all[a.Action] = a.Default
	}
	maps.Copy(all, k)
	return all
}

// Own returns k without what is a default anyway.
func (k Keys) Own() Keys {
	own := maps.Clone(k)
	for _, a := range KeyActions() {
		if own[a.Action] == a.Default {
			delete(own, a.Action)
		}
	}
	return own
}

// Validate reports the first action without a usable key of its own. The error's
// field is the action.
func (k Keys) Validate() error {
	actions := KeyActions()
	for _, action := range slices.Sorted(maps.Keys(k)) {
		if !slices.ContainsFunc(actions, func(a KeyAction) bool { return a.Action == action }) {
			return Invalid("keys", "There is no action %q.", clip(action, 40))
		}
	}
	of := k.Of()
	holder := map[string]KeyAction{}
	for _, a := range actions {
		key := of[a.Action]
		if KeyLabel(key) == "" || KeyLabel(key) == "⇧" {
			return Invalid(a.Action, "%s cannot have this key: it is the browser's, or no key at all.", a.Name)
		}
		if other, taken := holder[key]; taken {
			// The default that stands in the way is not what was typed.
			if _, own := k[a.Action]; !own {
				a, other = other, a
			}
			return Invalid(a.Action, "%s cannot have %s: it is the key of %s.", a.Name, KeyLabel(key), other.Name)
		}
		holder[key] = a
	}
	return nil
}
