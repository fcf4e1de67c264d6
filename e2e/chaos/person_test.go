package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// person is an annotator with a browser: one or two tabs on the labeling page, and
// the outbox that these share.
type person struct {
	email   string
	user    int64
	project int64
	classes int
	lease   time.Duration
	pace    time.Duration // from one key to the next, on average
	tabs    int           // at a time
	seed    uint64
	web     *browser
	link    *link
	ledger  *ledger
	outbox  *outbox
	hurry   *atomic.Bool // label what is left: no thinking, no undo

	keys   atomic.Int64
	signin sync.Mutex

	mu   sync.Mutex
	open []*tab
}

func (p *person) path(verb string) string {
	return fmt.Sprintf("/projects/%d/label/%s", p.project, verb)
}

func (p *person) newRand(stream uint64) *rand.Rand {
	return newRand(p.seed, uint64(p.user)<<32|stream)
}

func (p *person) newKey() string { return fmt.Sprintf("%d-%d-%x", p.user, p.keys.Add(1), p.seed) }

func (p *person) undoes() bool { return !p.hurry.Load() }

// think is how long the person looks at an image.
func (p *person) think(r *rand.Rand) time.Duration {
	if p.hurry.Load() {
		return 5 * time.Millisecond
	}
	return p.pace/2 + time.Duration(r.Int64N(int64(p.pace)))
}

// opinion is what the person says of an item. People agree, but for one item in fifty.
func (p *person) opinion(item int64) (verdict string, class int) {
	r := rand.New(rand.NewPCG(p.seed, uint64(item)))
	if own := rand.New(rand.NewPCG(uint64(p.user), uint64(item))); own.IntN(50) == 0 {
		r = own
	}
	switch n := r.IntN(100); {
	case n < 55:
		return "known", r.IntN(p.classes)
	case n < 90:
		return "unknown", -1
	case n < 96:
		return "skip", -1
	default:
		return "unreadable", -1
	}
}

// signInAgain makes a session if there is none: when two tabs notice at once, one does it.
func (p *person) signInAgain(ctx context.Context) error {
	p.signin.Lock()
	defer p.signin.Unlock()
	if r := p.web.send(ctx, "GET", p.path("state"), "", nil, nil); r.kind != signedOut {
		return ctx.Err()
	}
	return p.web.signIn(ctx, p.email)
}

// otherTabs lists the items that other tabs of this browser show.
func (p *person) otherTabs(id int) (items []int64) {
	p.mu.Lock()
	tabs := append([]*tab(nil), p.open...)
	p.mu.Unlock()
	for _, t := range tabs {
		if t.id != id {
			items = append(items, t.ids()...)
			items = append(items, p.outbox.items(t.id)...)
		}
	}
	return items
}

// labels runs the person until ctx ends: tabs are opened, reloaded, closed, and
// crash; the session is lost now and then.
func (p *person) labels(ctx context.Context) {
	var (
		r      = p.newRand(1 << 20)
		nextID = p.tabs
	)
	for id := range p.tabs {
		p.openTab(ctx, id, -1)
	}
	defer func() {
		for _, t := range p.open {
			t.crash()
		}
	}()
	for sleep(ctx, 8*time.Second+time.Duration(r.Int64N(int64(16*time.Second)))) {
		if p.hurry.Load() {
			continue
		}
		switch old := p.open[r.IntN(len(p.open))]; r.IntN(4) {
		case 0:
			p.web.forget()
		case 1:
			old.crash()
			p.closed(old)
			p.openTab(ctx, nextID, old.id)
		default:
			old.close(ctx)
			p.closed(old)
			p.openTab(ctx, nextID, old.id)
		}
		nextID++
	}
}

// openTab opens a tab, which takes over what another has left in the outbox.
func (p *person) openTab(ctx context.Context, id, after int) {
	t := newTab(p, id, p.outbox.adopt(after, id))
	p.mu.Lock()
	p.open = append(p.open, t)
	p.mu.Unlock()
	t.start(ctx)
}

func (p *person) closed(old *tab) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, t := range p.open {
		if t == old {
			p.open = append(p.open[:i], p.open[i+1:]...)
			return
		}
	}
}
