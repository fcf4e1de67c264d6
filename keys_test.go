package winnow

import (
	"strings"
	"testing"
)

func TestKeysValidate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		keys  Keys
		field string // "" for valid
		says  string
	}{
		"none":             {nil, "", ""},
		"a free letter":    {Keys{"unknown": "KeyN"}, "", ""},
		"swapped":          {Keys{"unknown": "KeyS", "skip": "KeyU"}, "", ""},
		"with Shift":       {Keys{"skip": "Shift+KeyU"}, "", ""},
		"a class":          {Keys{"class:0": "KeyQ"}, "", ""},
		"taken":            {Keys{"unknown": "KeyS"}, "unknown", "it is the key of Skip"},
		"taken, later":     {Keys{"undo": "KeyU"}, "undo", "it is the key of Unknown class"},
		"taken by a class": {Keys{"skip": "Digit3"}, "skip", "it is the key of Class 3"},
		"given twice":      {Keys{"skip": "KeyQ", "unknown": "KeyQ"}, "skip", "it is the key of Unknown class"},
		"Tab":              {Keys{"skip": "Tab"}, "skip", "the browser's"},
		"F5":               {Keys{"skip": "F5"}, "skip", "the browser's"},
		"Enter":            {Keys{"skip": "Enter"}, "skip", "the browser's"},
		"Space":            {Keys{"skip": "Space"}, "skip", "the browser's"},
		"Escape":           {Keys{"skip": "Escape"}, "skip", "the browser's"},
		"an arrow":         {Keys{"skip": "ArrowLeft"}, "skip", "the browser's"},
		"with Control":     {Keys{"skip": "Control+KeyR"}, "skip", "the browser's"},
		"Shift alone":      {Keys{"skip": "Shift+"}, "skip", "no key"},
		"nothing":          {Keys{"skip": ""}, "skip", "no key"},
		"a letter's digit": {Keys{"skip": "Key1"}, "skip", "no key"},
		"no such action":   {Keys{"dance": "KeyD"}, "keys", `"dance"`},
	} {
		err := tt.keys.Validate()
		if tt.field == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		e, ok := err.(*Error)
		if !ok || e.Field != tt.field || !strings.Contains(e.Message, tt.says) {
			t.Errorf("%s: %#v; want field %q and %q", name, err, tt.field, tt.says)
		}
	}
}

// What a button shows of a key, people can write.
func TestKeyLabelsParse(t *testing.T) {
	t.Parallel()
	for _, a := range KeyActions() {
		for _, s := range []string{KeyLabel(a.Default), strings.ToLower(KeyLabel(a.Default)), strings.Replace(KeyLabel(a.Default), "⇧", "shift + ", 1)} {
			if got, err := ParseKey(s); err != nil || got != a.Default {
				t.Errorf("ParseKey(%q) = %q, %v; want %q", s, got, err, a.Default)
			}
		}
	}
	for code := range keyNames {
		if got, err := ParseKey(KeyLabel(code)); err != nil || got != code {
			t.Errorf("ParseKey(%q) = %q, %v; want %q", KeyLabel(code), got, err, code)
		}
	}
	for _, s := range []string{"", " ", "⇧", "Shift+", "F5", "ab", "ü", "Ctrl+R", "Enter"} {
		if got, err := ParseKey(s); err == nil {
			t.Errorf("ParseKey(%q) = %q", s, got)
		}
	}
}

// The keys of classes are those that the classes themselves carry.
func TestDefaultKeysAreThoseOfClasses(t *testing.T) {
	t.Parallel()
	if err := (Keys{}).Validate(); err != nil {
		t.Fatal(err)
	}
	for i := range keyedClasses {
		if got := KeyLabel(KeyActions()[i].Default); got != ClassKey(i) {
			t.Errorf("class %d: %q and %q", i, got, ClassKey(i))
		}
	}
	own := Keys{"unknown": "KeyU", "skip": "KeyQ"}.Own()
	if len(own) != 1 || own["skip"] != "KeyQ" {
		t.Errorf("own keys: %v", own)
	}
}
