package handlers

import (
	"net/http/httptest"
	"strings"
	"testing"

	"winnow"
)

// FuzzDecision reads what a labeling page might send: a decision, or an error that is
// the sender's.
func FuzzDecision(f *testing.F) {
	for _, body := range []string{
		`{"user": 1, "item": 2, "verdict": "known", "class": 3, "client_key": "k", "duration_ms": 700}`,
		`{"item": 9223372036854775808}`, `{"item": 1e3}`, `{"client_key": "\ud800"}`, `{"verdict": "\u0000"}`,
		`{"item": 1}{"item": 2}`, `[]`, `null`, `"x"`, ``, `{`, "\xff", strings.Repeat("[", 20_000),
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r = withScope(r, &Scope{User: winnow.User{ID: 1}, Project: &winnow.Project{ID: 1}})
		d, _, err := decodeDecision(httptest.NewRecorder(), r)
		if status := Status(bodyError(err)); err != nil && (status < 400 || status >= 500) {
			t.Fatalf("status %d: %v", status, err)
		}
		if err != nil || d.Validate(5) != nil {
			return
		}
		if d.ClientKey == "" || len(d.ClientKey) > winnow.MaxClientKey || strings.ContainsAny(d.ClientKey, "\x00\r\n") ||
			d.DurationMS < 0 || d.Verdict == winnow.VerdictKnown && (d.Class < 0 || d.Class >= 5) {
			t.Errorf("%+v passed", d)
		}
	})
}
