package chaos

import (
	"sync"
	"time"
)

// ledger is what the annotators saw: what they sent, what the server said to it, and
// which items it gave them when. The audit holds the database against it.
type ledger struct {
	mu      sync.Mutex
	entries []*entry // in the order of the key presses
	byKey   map[string]*entry
	grants  []grant
	ends    []end
	kinds   map[string]int // of answers, to show what the run was like
}

func newLedger() *ledger {
	return &ledger{byKey: make(map[string]*entry), kinds: make(map[string]int)}
}

// entry is one key press: a decision or an undo, in the outbox until it is settled.
type entry struct {
	user    int64
	key     string
	undo    bool
	item    int64
	verdict string
	class   int
	of      string // key of the decision that an undo takes back

	// Guarded by the ledger's lock.
	sent    time.Time // first
	settled time.Time // acknowledged or refused
	outcome outcome
	event   int64 // the server's number of the decision
	message string
}

type outcome string

const (
	pending      outcome = ""
	acknowledged outcome = "acknowledged"
	refusedEntry outcome = "refused"
	withdrawn    outcome = "withdrawn" // an undo of what was refused: never sent
)

// grant is a moment between sent and received at which the server said that an item
// is this person's for the time of a lease. Shown says that it is new to them: a
// renewal is not.
type grant struct {
	user, item     int64
	sent, received time.Time
	lease          time.Duration
	shown          bool
}

// end is a release that was sent: from here on the item may be somebody else's.
type end struct {
	user, item int64
	sent       time.Time
}

func (l *ledger) pressed(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	l.byKey[e.key] = e
}

func (l *ledger) sending(e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e.sent.IsZero() {
		e.sent = time.Now()
	}
}

// settle records the server's last word on an entry.
func (l *ledger) settle(e *entry, o outcome, event int64, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.outcome, e.event, e.message, e.settled = o, event, message, time.Now()
	l.kinds[string(o)]++
}

func (l *ledger) granted(g grant, items ...int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, item := range items {
		g.item = item
		l.grants = append(l.grants, g)
	}
}

func (l *ledger) released(user int64, items []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, item := range items {
		l.ends = append(l.ends, end{user, item, time.Now()})
	}
}

// note counts something that happened.
func (l *ledger) note(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kinds[what]++
}

// count is how often something happened.
func (l *ledger) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.kinds[what]
}

// open is how many entries the server has not settled yet.
func (l *ledger) open() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		if e.outcome == pending {
			n++
		}
	}
	return n
}
