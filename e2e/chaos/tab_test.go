package chaos

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// What the labeling page does, in static/js/label.js and below.
const (
	hold  = 10 // leased items that a tab holds
	low   = 6  // it asks for more below this many
	most  = 100
	tries = 5 * time.Second // the longest pause between two attempts
)

// tab is one labeling page: a hand that presses keys, a sender that empties the
// outbox one entry at a time and in order, and a keeper that claims and renews.
type tab struct {
	*person
	id     int
	hands  *rand.Rand
	kick   chan struct{} // something waits in the outbox
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex
	feed     []int64 // items to show, the one on the screen first
	answered map[int64]bool
	strip    []*entry // decisions that may be undone, newest last
	asOf     string   // the server's time of the newest lease
}

func newTab(p *person, id int, answered map[int64]bool) *tab {
	return &tab{person: p, id: id, hands: p.newRand(uint64(id)), kick: make(chan struct{}, 1), answered: answered}
}

func (t *tab) start(ctx context.Context) {
	ctx, t.cancel = context.WithCancel(ctx)
	for _, part := range []func(context.Context){t.label, t.sendAll, t.keepFed} {
		t.done.Go(func() { part(ctx) })
	}
}

// crash ends the tab where it stands: no release, requests cut off.
func (t *tab) crash() {
	t.cancel()
	t.done.Wait()
}

// close ends the tab as a browser does: what was leased and not answered is given
// back, without waiting for whether it arrives.
func (t *tab) close(ctx context.Context) {
	t.crash()
	waiting := t.outbox.items(t.id)
	items := slices.DeleteFunc(t.ids(), func(item int64) bool { return slices.Contains(waiting, item) })
	if len(items) == 0 {
		return
	}
	t.ledger.released(t.user, items)
	t.web.post(ctx, t.path("release"), map[string]any{"items": items, "as_of": t.asOf}, nil)
}

func (t *tab) ids() []int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.feed)
}

// label presses keys at the person's pace.
func (t *tab) label(ctx context.Context) {
	for sleep(ctx, t.think(t.hands)) {
		if t.undoes() && t.hands.IntN(100) < 4 && t.undo() {
			continue
		}
		// In a hurry nobody runs ahead of the server: there would be no end to the queue.
		if !t.hurry.Load() || len(t.outbox.items(t.id)) < hold/2 {
			t.press()
		}
	}
}

// press answers the item on the screen.
func (t *tab) press() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.feed) == 0 {
		return
	}
	item := t.feed[0]
	t.feed = t.feed[1:]
	e := &entry{user: t.user, key: t.newKey(), item: item}
	e.verdict, e.class = t.opinion(item)
	t.answered[item] = true
	t.strip = append(t.strip, e)
	t.put(e)
}

// undo takes the last decision back and shows its image again.
func (t *tab) undo() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.strip) == 0 {
		return false
	}
	last := t.strip[len(t.strip)-1]
	t.strip = t.strip[:len(t.strip)-1]
	delete(t.answered, last.item)
	t.feed = append([]int64{last.item}, without(t.feed, last.item)...)
	t.put(&entry{user: t.user, key: t.newKey(), undo: true, item: last.item, of: last.key})
	return true
}

func (t *tab) put(e *entry) {
	t.ledger.pressed(e)
	t.outbox.add(e, t.id)
	wake(t.kick)
}

// sendAll empties the outbox whenever there is something in it.
func (t *tab) sendAll(ctx context.Context) {
	failures := 0
	for {
		e := t.outbox.first(t.id)
		if e == nil {
			select {
			case <-ctx.Done():
				return
			case <-t.kick:
			}
			continue
		}
		switch t.sendOne(ctx, e) {
		case retry:
			failures++
			ceiling := min(tries, 400*time.Millisecond<<min(failures, 10))
			if !sleep(ctx, ceiling/2+rand.N(ceiling/2)) {
				return
			}
		case signedOut:
			t.ledger.note("signed out")
			if t.signInAgain(ctx) != nil {
				return
			}
		default:
			failures = 0
		}
	}
}

// sendOne sends an entry, and takes it out of the outbox when the server has settled it.
func (t *tab) sendOne(ctx context.Context, e *entry) kind {
	var answer struct{ Event int64 }
	path, in := t.path("decide"), map[string]any{"item": e.item, "client_key": e.key}
	if e.undo {
		path = t.path("undo")
	} else {
		in["verdict"], in["class"], in["duration_ms"] = e.verdict, e.class, 700
	}
	t.ledger.sending(e)
	r := t.web.post(ctx, path, in, &answer)
	switch r.kind {
	case ok:
		if e.undo {
			// It may have been done by any attempt.
			t.ledger.granted(grant{user: t.user, sent: e.sent, received: r.received, lease: t.lease, shown: true}, e.item)
		}
		t.ledger.settle(e, acknowledged, answer.Event, "")
		t.outbox.remove(e)
	case refused:
		t.ledger.settle(e, refusedEntry, 0, r.message)
		t.outbox.remove(e)
		t.takeBack(e)
	default:
		t.ledger.note("attempt failed")
	}
	return r.kind
}

// takeBack undoes on the page what was built on an entry that the server refused.
func (t *tab) takeBack(e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.strip = slices.DeleteFunc(t.strip, func(s *entry) bool { return s.key == e.key })
	delete(t.answered, e.item)
	undo := t.outbox.undoOf(e.key)
	if undo != nil {
		t.ledger.settle(undo, withdrawn, 0, "")
		t.outbox.remove(undo)
	}
	if undo != nil || e.undo {
		t.feed = without(t.feed, e.item)
	}
}

// keepFed claims items when few are left, and renews the leases of those that are
// there.
func (t *tab) keepFed(ctx context.Context) {
	renewAt := time.Now().Add(t.lease / 3)
	for pause := time.Duration(0); sleep(ctx, pause); {
		pause = 50 * time.Millisecond
		if time.Now().After(renewAt) {
			renewAt = time.Now().Add(t.lease / 3)
			t.renew(ctx)
		}
		if len(t.ids()) >= low {
			continue
		}
		switch fresh, kind := t.claim(ctx); {
		case kind == signedOut:
			_ = t.signInAgain(ctx) // or the next turn does
		case kind != ok:
			pause = 500 * time.Millisecond
		case fresh == 0:
			pause = 300 * time.Millisecond // the last ones are with others
		}
	}
}

// claim asks for items and returns how many of them are new here.
func (t *tab) claim(ctx context.Context) (fresh int, k kind) {
	var answer struct {
		Items []struct{ ID int64 }
		AsOf  string `json:"as_of"`
	}
	n := min(most, hold+len(t.outbox.items(t.id))+len(t.otherTabs(t.id)))
	r := t.web.post(ctx, t.path("claim"), map[string]any{"n": n}, &answer)
	if r.kind != ok {
		return 0, r.kind
	}
	others := t.otherTabs(t.id)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asOf = answer.AsOf
	g := grant{user: t.user, sent: r.sent, received: r.received, lease: t.lease, shown: true}
	for _, item := range answer.Items {
		t.ledger.granted(g, item.ID)
		if t.answered[item.ID] || slices.Contains(others, item.ID) || slices.Contains(t.feed, item.ID) {
			continue
		}
		t.feed = append(t.feed, item.ID)
		fresh++
	}
	return fresh, ok
}

// renew prolongs the leases of what is in the feed, and drops what is somebody
// else's by now.
func (t *tab) renew(ctx context.Context) {
	items := t.ids()
	if len(items) == 0 {
		return
	}
	var answer struct {
		Kept []int64
		AsOf string `json:"as_of"`
	}
	r := t.web.post(ctx, t.path("renew"), map[string]any{"items": items}, &answer)
	if r.kind != ok {
		return
	}
	t.ledger.granted(grant{user: t.user, sent: r.sent, received: r.received, lease: t.lease}, answer.Kept...)
	// What an undo on its way has put back is ours as well.
	keep := append(answer.Kept, t.outbox.items(t.id)...)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asOf = answer.AsOf
	t.feed = slices.DeleteFunc(t.feed, func(item int64) bool {
		return slices.Contains(items, item) && !slices.Contains(keep, item)
	})
}

// wake sets a signal that may be set already.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func without(items []int64, item int64) []int64 {
	return slices.DeleteFunc(items, func(i int64) bool { return i == item })
}
