package winnow_test

import (
	"strings"
	"testing"

	"winnow"
)

func TestDecisionValidate(t *testing.T) {
	t.Parallel()
	const classes = 4
	const day = 24 * 3600 * 1000
	tests := map[string]struct {
		d     winnow.Decision
		field string
	}{
		"first class":          {winnow.Decision{Verdict: winnow.VerdictKnown, Class: 0, ClientKey: "a"}, ""},
		"last class":           {winnow.Decision{Verdict: winnow.VerdictKnown, Class: 3, ClientKey: "a"}, ""},
		"class below":          {winnow.Decision{Verdict: winnow.VerdictKnown, Class: -1, ClientKey: "a"}, "class"},
		"class of unknown":     {winnow.Decision{Verdict: winnow.VerdictKnown, Class: classes, ClientKey: "a"}, "class"},
		"unknown":              {winnow.Decision{Verdict: winnow.VerdictUnknown, Class: -1, ClientKey: "a"}, ""},
		"skip":                 {winnow.Decision{Verdict: winnow.VerdictSkip, ClientKey: "a"}, ""},
		"unreadable":           {winnow.Decision{Verdict: winnow.VerdictUnreadable, ClientKey: "a", DurationMS: day}, ""},
		"no verdict":           {winnow.Decision{ClientKey: "a"}, "verdict"},
		"made-up verdict":      {winnow.Decision{Verdict: winnow.Verdict(strings.Repeat("x", 5000)), ClientKey: "a"}, "verdict"},
		"longest key":          {winnow.Decision{Verdict: winnow.VerdictSkip, ClientKey: strings.Repeat("k", winnow.MaxClientKey)}, ""},
		"no key":               {winnow.Decision{Verdict: winnow.VerdictSkip}, "client_key"},
		"long key":             {winnow.Decision{Verdict: winnow.VerdictSkip, ClientKey: strings.Repeat("k", winnow.MaxClientKey+1)}, "client_key"},
		"key with a zero byte": {winnow.Decision{Verdict: winnow.VerdictSkip, ClientKey: "a\x00"}, "client_key"},
		"key not UTF-8":        {winnow.Decision{Verdict: winnow.VerdictSkip, ClientKey: "a\xff"}, "client_key"},
		"negative duration":    {winnow.Decision{Verdict: winnow.VerdictSkip, ClientKey: "a", DurationMS: -1}, "duration_ms"},
		"more than a day":      {winnow.Decision{Verdict: winnow.VerdictSkip, ClientKey: "a", DurationMS: day + 1}, "duration_ms"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.d.Validate(classes)
			if tt.field == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantInvalid(t, err, tt.field, "")
		})
	}
}
