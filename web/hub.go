package web

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"winnow"
)

// hub fans the database's notices out to the event streams that are open. Nobody
// waits for a slow stream: a notice that was not yet taken stands for all since.
type hub struct {
	mu     sync.Mutex
	closed bool
	subs   map[*subscription]struct{}
}

type subscription struct {
	project winnow.ProjectID
	moved   chan struct{}
}

func newHub() *hub { return &hub{subs: map[*subscription]struct{}{}} }

// Subscribe implements handlers.Events.
func (h *hub) Subscribe(project winnow.ProjectID) (<-chan struct{}, func()) {
	s := &subscription{project: project, moved: make(chan struct{}, 1)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(s.moved)
		return s.moved, func() {}
	}
	h.subs[s] = struct{}{}
	return s.moved, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.subs, s)
	}
}

// publish wakes the streams of the notice's project, or all of them when it names
// none.
func (h *hub) publish(n winnow.Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	for s := range h.subs {
		if n.Project != 0 && n.Project != s.project {
			continue
		}
		select {
		case s.moved <- struct{}{}:
		default:
		}
	}
}

// close ends every stream, now and from now on.
func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.closed = true
	for s := range h.subs {
		close(s.moved)
	}
	h.subs = nil
}

// listen feeds the hub until ctx ends. A lost connection is made again. Every stream
// is woken whenever listening begins, because notices may have passed unheard.
func (h *hub) listen(ctx context.Context, log *slog.Logger, listen func(context.Context, func(winnow.Notice)) error) {
	for wait := 250 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		began := time.Now()
		err := listen(ctx, h.publish)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > time.Minute {
			wait = 250 * time.Millisecond
		}
		log.WarnContext(ctx, "listening for notices ended; starting again", "error", err, "wait", wait)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}
