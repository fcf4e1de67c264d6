package handlers

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/a-h/templ"

	"winnow"
)

// Times of an event stream. A stream looks at the store at most once in
// streamPause, however much moves.
const (
	streamPause     = 400 * time.Millisecond
	streamHeartbeat = 15 * time.Second
)

// An event of a stream: "fragment" replaces the live part of the page, "reload"
// asks for the page anew and ends the stream, "done" ends it.
type event string

const (
	eventFragment event = "fragment"
	eventReload   event = "reload"
	eventDone     event = "done"
)

// stream sends what look shows, now and whenever something of the project moves,
// until look says that it is over, the reader goes, or the server shuts down.
// Whoever loses the right to look is told to reload, and sees why there; while the
// store is away the stream ends, and the page opens it again.
func (b *Base) stream(w http.ResponseWriter, r *http.Request, look func(ctx context.Context) (event, templ.Component, error)) error {
	s, ctx := scopeOf(r.Context()), r.Context()
	moved, stop := b.Events.Subscribe(s.Project.ID)
	defer stop()

	out := &eventWriter{w: w, rc: http.NewResponseController(w)}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	// A stream stays open for longer than other answers may take.
	if err := out.rc.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}

	heartbeat := time.NewTicker(streamHeartbeat)
	defer heartbeat.Stop()
	for {
		kind, fragment, err := look(ctx)
		if err == nil {
			err = b.denied(ctx)
		}
		if winnow.ErrorCode(err) == winnow.CodeUnavailable {
			return nil // the page stays as it is, and asks again
		}
		if err != nil {
			kind, fragment = eventReload, nil
		}
		if out.send(ctx, kind, fragment) != nil || kind != eventFragment {
			return nil // the answer has begun: an error could not be told any more
		}
		if !b.waitForMove(ctx, moved, heartbeat.C, out) {
			return nil
		}
	}
}

// denied says whether the reader's session or membership has ended since the stream
// began.
func (b *Base) denied(ctx context.Context) error {
	user, err := b.signedIn(ctx)
	if err != nil {
		return err
	}
	_, err = b.Access.Role(ctx, scopeOf(ctx).Project.ID, user)
	return err
}

// waitForMove waits for the next notice, and reports false when the stream is over.
func (b *Base) waitForMove(ctx context.Context, moved <-chan struct{}, heartbeat <-chan time.Time, out *eventWriter) bool {
	pause := time.NewTimer(streamPause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
		return false
	}
	for {
		select {
		case <-ctx.Done():
			return false
		case _, open := <-moved:
			return open
		case <-heartbeat:
			if out.comment("still here") != nil {
				return false
			}
		}
	}
}

type eventWriter struct {
	w    http.ResponseWriter
	rc   *http.ResponseController
	last []byte // the fragment sent last: the same again is not sent
}

func (o *eventWriter) send(ctx context.Context, kind event, c templ.Component) error {
	var buf bytes.Buffer
	if c != nil {
		if err := c.Render(ctx, &buf); err != nil {
			return err
		}
	}
	if kind == eventFragment && bytes.Equal(buf.Bytes(), o.last) {
		return nil
	}
	o.last = buf.Bytes()
	fmt.Fprintf(o.w, "event: %s\n", kind)
	for line := range bytes.Lines(buf.Bytes()) {
		fmt.Fprintf(o.w, "data: %s\n", bytes.TrimRight(line, "\r\n"))
	}
	if buf.Len() == 0 {
		fmt.Fprint(o.w, "data:\n")
	}
	fmt.Fprint(o.w, "\n")
	return o.rc.Flush()
}

func (o *eventWriter) comment(s string) error {
	fmt.Fprintf(o.w, ": %s\n\n", s)
	return o.rc.Flush()
}

// freshProject reads the project anew: a stream outlives what its request saw.
func (b *Base) freshProject(ctx context.Context) (*winnow.Project, error) {
	return b.Access.Project(ctx, scopeOf(ctx).Project.ID)
}
