package web_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

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
