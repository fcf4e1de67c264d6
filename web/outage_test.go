package web_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"winnow"
	"winnow/handlers"
	"winnow/web"
)

// brokenSessions is a store of sessions whose database is away.
type brokenSessions struct{}

var errAway = errors.New("connection refused")

func (brokenSessions) Find(string) ([]byte, bool, error)      { return nil, false, errAway }
func (brokenSessions) Commit(string, []byte, time.Time) error { return errAway }
func (brokenSessions) Delete(string) error                    { return errAway }

// Without the database nobody is signed out: people are told to wait, and the
// labeling page's script, which keeps its answers until then, in its own language.
func TestSessionsCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, func(_ *web.Config, d *web.Deps) { d.Sessions = brokenSessions{} })
	for accept, mediaType := range map[string]string{"text/html": "text/plain; charset=utf-8", "application/json": "application/problem+json"} {
		c := w.anonymous(t)
		req := c.request(http.MethodGet, fmt.Sprintf("/projects/%d/label/state", w.project.ID), nil)
		req.Header.Set("Accept", accept)
		req.AddCookie(&http.Cookie{Name: "winnow_session", Value: "x"})
		got := c.do(req)
		if got.status != 503 || got.header.Get("Content-Type") != mediaType || got.header.Get("Retry-After") == "" || !strings.Contains(got.body, "Nothing you saved is lost") {
			t.Errorf("%s: status %d, %s: %s", accept, got.status, got.header.Get("Content-Type"), got.body)
		}
	}
}

// awayRounds is a store of rounds that can go away.
type awayRounds struct {
	handlers.RoundStore
	away atomic.Bool
}

func (s *awayRounds) Round(ctx context.Context, project winnow.ProjectID, number int) (*winnow.Round, error) {
	if s.away.Load() {
		return nil, &winnow.Error{Code: winnow.CodeUnavailable, Message: "The database does not answer.", Err: errAway}
	}
	return s.RoundStore.Round(ctx, project, number)
}

// A live page is not replaced by an error while the database is away: its stream ends
// without a word, so that the browser opens it again.
func TestStreamEndsWithoutAWordInAnOutage(t *testing.T) {
	t.Parallel()
	rounds := &awayRounds{}
	w := newWorldWith(t, func(_ *web.Config, d *web.Deps) {
		rounds.RoundStore = d.Rounds
		d.Rounds = rounds
	})
	c, stop := w.serve(t, "viewer")
	next := c.stream(fmt.Sprintf("/projects/%d/rounds/0/events?state=labeling", w.project.ID))
	if name, _ := next(); name != "fragment" {
		t.Fatalf("first event %q", name)
	}
	rounds.away.Store(true)
	annotator := w.people["annotator"].ID
	_, items, err := w.store.Claim(t.Context(), w.project.ID, annotator, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Decide(t.Context(), w.project.ID, annotator, winnow.Decision{ItemID: items[0].ID, Verdict: winnow.VerdictSkip, ClientKey: "k"}); err != nil {
		t.Fatal(err)
	}
	if name, data := next(); name != "" {
		t.Errorf("event %q in the outage: %s", name, data)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
