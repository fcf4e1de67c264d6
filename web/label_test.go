package web_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"winnow"
)

// While the next round learns from the answers, they stand: the page says so before
// anybody tries to take one back.
func TestUndoIsOffWhileTheNextRoundTrains(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, annotator := t.Context(), w.people["annotator"].ID
	_, items, err := w.store.Claim(ctx, w.project.ID, annotator, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Decide(ctx, w.project.ID, annotator, winnow.Decision{ItemID: items[0].ID, Verdict: winnow.VerdictSkip, ClientKey: "k"}); err != nil {
		t.Fatal(err)
	}
	c := w.role(t, "annotator")
	label := fmt.Sprintf("/projects/%d/label", w.project.ID)
	fixed := func() string {
		t.Helper()
		var state struct{ Round struct{ Fixed string } }
		if err := json.Unmarshal([]byte(c.get(label+"/state").body), &state); err != nil {
			t.Fatal(err)
		}
		_, button, _ := strings.Cut(c.get(label).body, `<button id="label-undo"`)
		button, _, _ = strings.Cut(button, ">")
		if off := strings.Contains(button, "disabled"); off != (state.Round.Fixed != "") || off && !strings.Contains(button, state.Round.Fixed) {
			t.Errorf("the state says %q, the button is%s", state.Round.Fixed, button)
		}
		return state.Round.Fixed
	}
	if got := fixed(); got != "" {
		t.Errorf("while the round is labeled: %q", got)
	}
	if _, err := w.store.CloseRound(ctx, w.site.ID, w.project.ID, 0); err != nil {
		t.Fatal(err)
	}
	if rounds, _, err := w.store.Rounds(ctx, w.project.ID, winnow.Page{Limit: 1}); err != nil || rounds[0].Number == 0 {
		if got := fixed(); got != "" {
			t.Errorf("after the round, which an undo would open again: %q", got)
		}
		if _, err := w.store.StartRound(ctx, w.site.ID, w.project.ID); err != nil {
			t.Fatal(err)
		}
	}
	if got := fixed(); got != "Round 1 has started, so earlier answers stand." {
		t.Errorf("while round 1 waits: %q", got)
	}
	if got := c.post(label+"/undo", map[string][]string{"client_key": {"u"}}); got.status != 409 {
		t.Errorf("the server allows it: status %d", got.status)
	}
}
