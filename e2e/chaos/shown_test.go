package chaos

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// span is a time during which something certainly held.
type span struct{ from, to time.Time }

func (s span) covers(from, to time.Time) bool { return !s.from.After(from) && !s.to.Before(to) }

// occupancy is the time during which a person certainly had a place on an item: as
// its holder, or by an answer that stands.
type occupancy map[place][]span

type place struct{ item, user int64 }

var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// occupied works out from the ledger who certainly had a place on what when. A
// request takes effect at some moment between its sending and its answer, which is
// all that a client knows: where two requests are under way at once nothing is certain.
func (l *ledger) occupied() (held, answered occupancy) {
	ending := make(map[place][]span) // requests that may end a hold, from sent to settled
	answered, held = make(occupancy), make(occupancy)
	undone := make(map[string]time.Time) // by key of the decision: when its undo was first sent
	for _, e := range l.entries {
		if e.undo && !e.sent.IsZero() {
			undone[e.of] = e.sent
		}
	}
	for _, e := range l.entries {
		if e.undo || e.sent.IsZero() {
			continue
		}
		at := place{e.item, e.user}
		settled := e.settled
		if e.outcome == pending {
			settled = endOfTime
		}
		ending[at] = append(ending[at], span{e.sent, settled})
		if e.outcome != acknowledged {
			continue
		}
		until, ok := undone[e.key]
		if !ok {
			until = endOfTime
		}
		answered[at] = append(answered[at], span{e.settled, until})
	}
	for _, e := range l.ends {
		at := place{e.item, e.user}
		ending[at] = append(ending[at], span{e.sent, e.sent})
	}
	for _, g := range l.grants {
		at := place{g.item, g.user}
		hold := span{g.received, g.sent.Add(g.lease)}
		for _, e := range ending[at] {
			switch {
			case e.to.Before(g.sent) || e.from.After(hold.to):
			case e.from.Before(g.received): // both under way: which was first?
				hold.to = hold.from
			default:
				hold.to = e.from
			}
		}
		if hold.from.Before(hold.to) {
			held[at] = append(held[at], hold)
		}
	}
	return held, answered
}

// shownTwice lists the items that somebody was shown while as many others as an item
// has places had theirs, or although they had answered it themselves.
func (l *ledger) shownTwice(overlap int) (problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held, answered := l.occupied()
	users := make(map[int64][]int64) // by item: who ever had a place
	for _, o := range []occupancy{held, answered} {
		for at := range o {
			if !slices.Contains(users[at.item], at.user) {
				users[at.item] = append(users[at.item], at.user)
			}
		}
	}
	covers := func(o occupancy, at place, g grant) bool {
		return slices.ContainsFunc(o[at], func(s span) bool { return s.covers(g.sent, g.received) })
	}
	for _, g := range l.grants {
		if !g.shown {
			continue
		}
		if covers(answered, place{g.item, g.user}, g) {
			problems = append(problems, fmt.Sprintf("item %d was shown to user %d again, who had answered it", g.item, g.user))
		}
		var others []int64
		for _, u := range users[g.item] {
			if at := (place{g.item, u}); u != g.user && (covers(held, at, g) || covers(answered, at, g)) {
				others = append(others, u)
			}
		}
		if len(others) >= overlap {
			problems = append(problems, fmt.Sprintf("item %d, for %d, was shown to user %d while it was with %v", g.item, overlap, g.user, others))
		}
	}
	return problems
}

// TestShownTwice feeds the check with stories in seconds.
func TestShownTwice(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return start.Add(time.Duration(s * float64(time.Second))) }
	claim := func(user int64, from, to float64) func(*ledger) {
		return func(l *ledger) {
			l.granted(grant{user: user, sent: at(from), received: at(to), lease: 30 * time.Second, shown: true}, 1)
		}
	}
	decide := func(user int64, key string, from, to float64, o outcome) func(*ledger) {
		return func(l *ledger) {
			l.pressed(&entry{user: user, key: key, item: 1, sent: at(from), settled: at(to), outcome: o})
		}
	}
	undo := func(user int64, of string, from, to float64) func(*ledger) {
		return func(l *ledger) {
			l.pressed(&entry{user: user, key: of + "u", undo: true, of: of, item: 1, sent: at(from), settled: at(to), outcome: acknowledged})
			l.granted(grant{user: user, sent: at(from), received: at(to), lease: 30 * time.Second, shown: true}, 1)
		}
	}
	release := func(user int64, when float64) func(*ledger) {
		return func(l *ledger) { l.ends = append(l.ends, end{user, 1, at(when)}) }
	}
	type story []func(*ledger)
	for name, tc := range map[string]struct {
		overlap int
		story   story
		wrong   int
	}{
		"one holder":                          {1, story{claim(1, 0, 1), claim(1, 5, 6)}, 0},
		"two holders":                         {1, story{claim(1, 0, 1), claim(2, 5, 6)}, 1},
		"two holders of two places":           {2, story{claim(1, 0, 1), claim(2, 5, 6)}, 0},
		"three holders of two places":         {2, story{claim(1, 0, 1), claim(2, 5, 6), claim(3, 7, 8)}, 1},
		"after the lease":                     {1, story{claim(1, 0, 1), claim(2, 31, 32)}, 0},
		"while the lease may run out":         {1, story{claim(1, 0, 1), claim(2, 29, 31)}, 0},
		"at once":                             {1, story{claim(1, 0, 10), claim(2, 5, 6)}, 0},
		"after a release":                     {1, story{claim(1, 0, 1), release(1, 2), claim(2, 5, 6)}, 0},
		"before a release":                    {1, story{claim(1, 0, 1), claim(2, 5, 6), release(1, 7)}, 1},
		"after an answer":                     {1, story{claim(1, 0, 1), decide(1, "a", 2, 3, acknowledged), claim(2, 5, 6)}, 1},
		"to the one who answered":             {2, story{claim(1, 0, 1), decide(1, "a", 2, 3, acknowledged), claim(1, 5, 6)}, 1},
		"after an answer, with a place left":  {2, story{claim(1, 0, 1), decide(1, "a", 2, 3, acknowledged), claim(2, 5, 6)}, 0},
		"while an answer is on its way":       {1, story{claim(1, 0, 1), decide(1, "a", 2, 9, acknowledged), claim(2, 5, 6)}, 0},
		"after an undo":                       {1, story{claim(1, 0, 1), decide(1, "a", 2, 3, acknowledged), undo(1, "a", 5, 6), claim(2, 7, 8)}, 1},
		"after an undo and its lease":         {1, story{claim(1, 0, 1), decide(1, "a", 2, 3, acknowledged), undo(1, "a", 5, 6), claim(2, 37, 38)}, 0},
		"after an answer that was refused":    {1, story{claim(1, 0, 1), decide(1, "a", 2, 3, refusedEntry), claim(2, 5, 6)}, 0},
		"a claim beside an answer on its way": {1, story{claim(1, 0, 1), decide(1, "a", 2, 6, acknowledged), claim(1, 3, 4), claim(2, 4.5, 5)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger()
			for _, tell := range tc.story {
				tell(l)
			}
			if got := l.shownTwice(tc.overlap); len(got) != tc.wrong {
				t.Errorf("%d problems, want %d: %q", len(got), tc.wrong, got)
			}
		})
	}
}
