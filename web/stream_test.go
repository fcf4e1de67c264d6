package web_test

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"winnow"
)

// stream opens an event stream. next returns the name and data of its next event,
// "" at its end; streams that stay silent are ended by the test's deadline.
func (c *client) stream(path string) (next func() (name, data string)) {
	c.t.Helper()
	res, err := c.Do(c.request(http.MethodGet, path, nil))
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		c.t.Fatalf("%s: status %d, %s", path, res.StatusCode, res.Header.Get("Content-Type"))
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<20)
	return func() (name, data string) {
		for lines.Scan() {
			switch line := lines.Text(); {
			case strings.HasPrefix(line, "event: "):
				name = strings.TrimPrefix(line, "event: ")
			case strings.HasPrefix(line, "data:"):
				data += strings.TrimPrefix(strings.TrimPrefix(line, "data:"), " ") + "\n"
			case line == "" && name != "":
				return name, data
			}
		}
		return "", ""
	}
}

// serve runs the world's server as it runs in earnest, and returns a client of it
// and what ends it.
func (w *world) serve(t *testing.T, role string) (c *client, stop func() error) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	ended := make(chan error, 1)
	go func() { ended <- w.server.Serve(ctx, l) }()
	c = w.role(t, role)
	c.base = "http://" + l.Addr().String()
	return c, func() error { cancel(); return <-ended }
}

func TestStreamFollowsTheRound(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, stop := w.serve(t, "viewer")
	next := c.stream(fmt.Sprintf("/projects/%d/rounds/0/events?state=labeling", w.project.ID))
	if name, data := next(); name != "fragment" || !strings.Contains(data, "0 of 5 labeled") {
		t.Fatalf("first event %q: %s", name, data)
	}
	annotator := w.people["annotator"].ID
	_, items, err := w.store.Claim(t.Context(), w.project.ID, annotator, 1)
	if err != nil {
		t.Fatal(err)
	}
	decide := func(item winnow.ItemID) {
		t.Helper()
		if _, err := w.store.Decide(t.Context(), w.project.ID, annotator, winnow.Decision{ItemID: item, Verdict: winnow.VerdictUnknown, ClientKey: fmt.Sprint(item)}); err != nil {
			t.Fatal(err)
		}
	}
	decide(items[0].ID)
	if name, data := next(); name != "fragment" || !strings.Contains(data, "1 of 5 labeled") {
		t.Fatalf("after a label: event %q: %s", name, data)
	}
	if _, err := w.store.CloseRound(t.Context(), w.site.ID, w.project.ID, 0); err != nil {
		t.Fatal(err)
	}
	if name, _ := next(); name != "reload" {
		t.Errorf("after closing: event %q, want reload", name)
	}
	if name, _ := next(); name != "" {
		t.Errorf("the stream goes on with %q", name)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestStreamEndsAtShutdown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, stop := w.serve(t, "viewer")
	next := c.stream(fmt.Sprintf("/projects/%d/rounds/0/events?state=labeling", w.project.ID))
	if name, _ := next(); name != "fragment" {
		t.Fatalf("first event %q", name)
	}
	began := time.Now()
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	// Not the grace period: the stream ended by itself. The bound is far above what
	// it takes, and far below that.
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("shutting down took %v: it waited for the stream", took)
	}
	if name, _ := next(); name != "" {
		t.Errorf("event %q after the shutdown", name)
	}
}

func TestStreamEndsWithTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, stop := w.serve(t, "viewer")
	next := c.stream(fmt.Sprintf("/projects/%d/rounds/0/events?state=labeling", w.project.ID))
	if name, _ := next(); name != "fragment" {
		t.Fatalf("first event %q", name)
	}
	if err := w.store.SetPassword(t.Context(), w.people["viewer"].ID, ""); err != nil {
		t.Fatal(err)
	}
	_, items, err := w.store.Claim(t.Context(), w.project.ID, w.people["annotator"].ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Decide(t.Context(), w.project.ID, w.people["annotator"].ID, winnow.Decision{ItemID: items[0].ID, Verdict: winnow.VerdictSkip, ClientKey: "k"}); err != nil {
		t.Fatal(err)
	}
	if name, data := next(); name != "reload" {
		t.Errorf("event %q, want reload: %s", name, data)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestStreamEndsForRemovedMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, stop := w.serve(t, "victim")
	next := c.stream(fmt.Sprintf("/projects/%d/rounds/0/events?state=labeling", w.project.ID))
	if name, _ := next(); name != "fragment" {
		t.Fatalf("first event %q", name)
	}
	if err := w.store.RemoveMember(t.Context(), w.site.ID, w.project.ID, w.people["victim"].ID); err != nil {
		t.Fatal(err)
	}
	_, items, err := w.store.Claim(t.Context(), w.project.ID, w.people["annotator"].ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Decide(t.Context(), w.project.ID, w.people["annotator"].ID, winnow.Decision{ItemID: items[0].ID, Verdict: winnow.VerdictSkip, ClientKey: "k"}); err != nil {
		t.Fatal(err)
	}
	if name, data := next(); name != "reload" {
		t.Errorf("event %q, want reload: %s", name, data)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
