package web_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"winnow/web"
)

// syncBuffer takes what several requests log.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// A link that lets somebody in must not be in the log, least of all one that was not
// used up because its request was refused.
func TestSecretsOfLinksAreNotLogged(t *testing.T) {
	t.Parallel()
	var log syncBuffer
	w := newWorldWith(t, func(c *web.Config, d *web.Deps) {
		c.SignInAttempts = 1
		d.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	token, err := w.store.CreateSignInLink(t.Context(), w.site.ID, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c := w.anonymous(t)
	c.post("/signin/link/spoiled", nil)
	if got := c.post("/signin/link/"+token, nil); got.status != 429 {
		t.Fatalf("status %d, want a refusal", got.status)
	}
	if said := log.String(); strings.Contains(said, token) || !strings.Contains(said, "/signin/link/{token}") {
		t.Errorf("the log holds the secret, or does not name the route:\n%s", said)
	}
}
