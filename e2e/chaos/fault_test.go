package chaos

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// stallWAL stops the process that writes what asynchronous commits have left behind:
// how much a kill loses is no matter of luck then.
func (s *site) stallWAL() {
	for _, pid := range childrenOf(s.postgres.PID()) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if strings.Contains(string(name), "walwriter") {
			_ = syscall.Kill(pid, syscall.SIGSTOP) // killPostgres ends it all the same
		}
	}
}

// TestChaosSeesLostCommits is the proof that TestChaos can fail: on a Postgres that
// acknowledges commits before they are on disk, a kill loses some, and the audit says
// which.
func TestChaosSeesLostCommits(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	s := newSite(t, "synchronous_commit=off")
	s.stallWAL()
	m := newTeam(t, s, teamPlan{people: 8, items: 2000, overlap: 1, lease: time.Minute, pace: 50 * time.Millisecond, seed: 1})
	ctx := t.Context()
	m.label(ctx, t)
	for m.ledger.count(string(acknowledged)) < 200 {
		time.Sleep(20 * time.Millisecond)
	}
	s.killPostgres()
	s.startPostgres()
	m.stop()
	problems := m.audit(t)
	lost := 0
	for _, p := range problems {
		if strings.Contains(p, "was acknowledged, and is lost") {
			lost++
		}
	}
	if lost == 0 {
		t.Errorf("Postgres lost nothing, or the audit saw nothing: %d problems %q", len(problems), problems)
	}
	t.Logf("the audit found %d of %d acknowledged entries lost", lost, m.ledger.count(string(acknowledged)))
}

// TestAuditSees tells the audit of a round in which one thing is wrong.
func TestAuditSees(t *testing.T) {
	t.Parallel()
	label := func(id, user int64, key string, item int64) event {
		return event{ID: id, User: user, Key: key, Item: item, Kind: "label", Verdict: "unknown", Class: -1}
	}
	undo := func(id, user int64, key string, item, supersedes int64) event {
		return event{ID: id, User: user, Key: key, Item: item, Kind: "undo", Class: -1, Supersedes: supersedes}
	}
	decided := func(user int64, key string, item, id int64, o outcome) *entry {
		return &entry{user: user, key: key, item: item, verdict: "unknown", class: -1, outcome: o, event: id}
	}
	undid := func(user int64, key string, item int64, of string, o outcome) *entry {
		return &entry{user: user, key: key, item: item, undo: true, of: of, outcome: o}
	}
	for name, tc := range map[string]struct {
		overlap int
		entries []*entry
		events  []event
		late    string
		want    []string // what each problem says, in order
	}{
		"nothing": {
			1,
			[]*entry{decided(1, "a", 7, 1, acknowledged), undid(1, "b", 7, "a", acknowledged), decided(2, "c", 7, 3, acknowledged), decided(1, "d", 7, 0, refusedEntry)},
			[]event{label(1, 1, "a", 7), undo(2, 1, "b", 7, 1), label(3, 2, "c", 7)},
			"d", nil,
		},
		"a lost label":           {1, []*entry{decided(1, "a", 7, 1, acknowledged)}, nil, "", []string{"is lost", "it does not"}},
		"another label":          {1, []*entry{decided(1, "a", 7, 1, acknowledged)}, []event{label(1, 1, "a", 8)}, "", []string{"was acknowledged as", "it does not", "on item 8"}},
		"another event":          {1, []*entry{decided(1, "a", 7, 1, acknowledged)}, []event{label(2, 1, "a", 7)}, "", []string{"was acknowledged as"}},
		"a label of nobody":      {1, nil, []event{label(1, 1, "a", 7)}, "", []string{"sent by nobody", "took back or were refused"}},
		"under another name":     {1, []*entry{decided(1, "a", 7, 1, acknowledged)}, []event{label(1, 2, "a", 7)}, "", []string{"sent by nobody", "it does not", "took back or were refused"}},
		"never settled":          {1, []*entry{decided(1, "a", 7, 0, pending)}, nil, "", []string{"never settled"}},
		"refused and counted":    {1, []*entry{decided(1, "a", 7, 0, refusedEntry)}, []event{label(1, 1, "a", 7)}, "a", []string{"and counts", "took back or were refused"}},
		"refused and forgotten":  {1, []*entry{decided(1, "a", 7, 0, refusedEntry)}, nil, "", []string{"not on record"}},
		"an undo that did not":   {1, []*entry{decided(1, "a", 7, 1, acknowledged), undid(1, "b", 7, "a", acknowledged)}, []event{label(1, 1, "a", 7)}, "", []string{"is lost", "took back or were refused"}},
		"an undo never sent":     {1, []*entry{undid(1, "b", 7, "a", withdrawn)}, []event{undo(1, 1, "b", 7, 0)}, "", []string{"was never sent"}},
		"more than the overlap":  {1, []*entry{decided(1, "a", 7, 1, acknowledged), decided(2, "b", 7, 2, acknowledged)}, []event{label(1, 1, "a", 7), label(2, 2, "b", 7)}, "", []string{"for an overlap of 1"}},
		"as many as the overlap": {2, []*entry{decided(1, "a", 7, 1, acknowledged), decided(2, "b", 7, 2, acknowledged)}, []event{label(1, 1, "a", 7), label(2, 2, "b", 7)}, "", nil},
		"the same person, twice": {2, []*entry{decided(1, "a", 7, 1, acknowledged), decided(1, "b", 7, 2, acknowledged)}, []event{label(1, 1, "a", 7), label(2, 1, "b", 7)}, "", []string{"answered twice"}},
		"one key, two decisions": {2, []*entry{decided(1, "a", 7, 1, acknowledged)}, []event{label(1, 1, "a", 7), label(2, 1, "a", 7)}, "", []string{"is there twice", "was acknowledged as", "answered twice"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLedger()
			for _, e := range tc.entries {
				l.pressed(e)
			}
			got := slices.Concat(l.lostOrInvented(tc.events, map[string]bool{tc.late: true}), standsTwice(tc.events, tc.overlap), l.standsOtherwise(tc.events))
			matches := len(got) == len(tc.want)
			for i := 0; matches && i < len(got); i++ {
				matches = strings.Contains(got[i], tc.want[i])
			}
			if !matches {
				t.Errorf("problems %q, want %q", got, tc.want)
			}
		})
	}
}
