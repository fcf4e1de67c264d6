package web_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"winnow"
)

// A person's keys come from a plain form, with all fields, or from the labeling page,
// as JSON.
func TestKeysOfAnAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	user := w.people["annotator"]
	c := w.role(t, "annotator")
	keys := func(want winnow.Keys) {
		t.Helper()
		if got, err := w.store.Keys(t.Context(), user.ID); err != nil || !maps.Equal(got, want) {
			t.Errorf("keys %v, %v; want %v", got, err, want)
		}
	}
	for name, tt := range map[string]struct {
		form   url.Values
		status int
		says   string
		want   winnow.Keys
	}{
		"one":         {url.Values{"skip": {"q"}}, 303, "", winnow.Keys{"skip": "KeyQ"}},
		"swapped":     {url.Values{"skip": {"U"}, "unknown": {"s"}}, 303, "", winnow.Keys{"skip": "KeyU", "unknown": "KeyS"}},
		"with Shift":  {url.Values{"undo": {"Shift + z"}}, 303, "", winnow.Keys{"undo": "Shift+KeyZ"}},
		"taken":       {url.Values{"skip": {"u"}}, 422, "it is the key of Unknown class", nil},
		"the browser": {url.Values{"skip": {"Tab"}}, 422, "Skip cannot have this key", nil},
		"markup":      {url.Values{"skip": {`"><b>`}}, 422, "Skip cannot have this key", nil},
	} {
		if err := w.store.SetKeys(t.Context(), user.ID, nil); err != nil {
			t.Fatal(err)
		}
		got := c.post("/account/keys", tt.form)
		if got.status != tt.status || !strings.Contains(got.body, tt.says) || strings.Contains(got.body, "<b>") {
			t.Errorf("%s: status %d\n%s", name, got.status, got.body)
		}
		if tt.want == nil {
			tt.want = winnow.Keys{}
		}
		keys(tt.want)
	}

	send := func(v any) answer {
		t.Helper()
		body, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.base+"/account/keys", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		return c.do(req)
	}
	if got := send(map[string]any{"user": user.ID, "keys": winnow.Keys{"skip": "KeyQ", "help": "KeyH"}}); got.status != 200 {
		t.Errorf("as JSON: status %d\n%s", got.status, got.body)
	}
	keys(winnow.Keys{"skip": "KeyQ"})
	for name, tt := range map[string]struct {
		body   any
		status int
	}{
		"taken":                {map[string]any{"keys": winnow.Keys{"skip": "KeyU"}}, 422},
		"no such action":       {map[string]any{"keys": winnow.Keys{"dance": "KeyD"}}, 422},
		"somebody else's":      {map[string]any{"user": user.ID + 1, "keys": winnow.Keys{}}, 401},
		"not what is expected": {"KeyU", 422},
	} {
		if got := send(tt.body); got.status != tt.status {
			t.Errorf("%s: status %d, want %d\n%s", name, got.status, tt.status, got.body)
		}
	}
	keys(winnow.Keys{"skip": "KeyQ"})
}

// The labeling page is dark, or light where this browser was told so, and nothing else.
func TestThemeOfTheLabelingPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.role(t, "annotator")
	label := fmt.Sprintf("/projects/%d/label", w.project.ID)
	for _, tt := range [][2]string{{"", "dark"}, {"light", "light"}, {`"><b>`, "dark"}, {"light", "light"}, {"dark", "dark"}} {
		if tt[0] != "" {
			if got := c.post(label+"/theme", url.Values{"theme": {tt[0]}}); got.status != 303 || got.location != label {
				t.Errorf("%s: status %d to %q", tt[0], got.status, got.location)
			}
		}
		if body := c.get(label).body; !strings.Contains(body, `data-theme="`+tt[1]+`"`) {
			t.Errorf("after %q it is not %s", tt[0], tt[1])
		}
	}
}
