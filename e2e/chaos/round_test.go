package chaos

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"winnow"
	"winnow/db/dbtest"
	"winnow/password"
)

// secret is every annotator's password.
const secret = "correct horse battery"

// team is a project with an open round and the people who label it.
type team struct {
	site    *site
	project *winnow.Project
	round   *winnow.Round
	overlap int
	people  []*person
	ledger  *ledger
	hurry   atomic.Bool
}

// teamPlan says what a team is like.
type teamPlan struct {
	people  int
	items   int // of the round, in a pool twice as large
	overlap int
	lease   time.Duration
	pace    time.Duration
	seed    uint64
}

// newTeam makes a project, opens its round, and gives each annotator an account, a
// link to the server and a browser.
func newTeam(t testing.TB, s *site, plan teamPlan) *team {
	t.Helper()
	m := &team{site: s, ledger: newLedger(), overlap: plan.overlap}
	hash, err := password.Hash(secret)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("overlap%d", plan.overlap)
	admin := dbtest.User(t, s.store, name+"-admin")
	settings := dbtest.Settings()
	settings.Budget, settings.LeaseSeconds = plan.items, int(plan.lease.Seconds())
	m.project = dbtest.Project(t, s.store, admin.ID, settings, 4, 0)
	addImages(t, s.store, m.project.ID, 2*plan.items)
	m.round = dbtest.OpenRound(t, s.store, admin.ID, m.project.ID)
	for i := range plan.people {
		u := winnow.User{Email: fmt.Sprintf("%s-%d@example.org", name, i), Name: fmt.Sprint("Annotator ", i)}
		if u.ID, err = s.store.CreateUser(t.Context(), u, hash); err != nil {
			t.Fatal(err)
		}
		dbtest.Join(t, s.store, admin.ID, m.project.ID, u, winnow.RoleAnnotator)
		k := newLink(t, s.address())
		m.people = append(m.people, &person{
			email: u.Email, user: int64(u.ID), project: int64(m.project.ID), classes: len(m.project.Classes),
			lease: plan.lease, pace: plan.pace, tabs: 1 + i%2, seed: plan.seed,
			web: newBrowser(k.base(), fmt.Sprintf("10.%d.0.%d", plan.overlap, i), int64(u.ID)), link: k,
			ledger: m.ledger, outbox: &outbox{}, hurry: &m.hurry,
		})
	}
	return m
}

// label lets everybody sign in, and then label until stop is called, which waits for
// them to end.
func (m *team) label(ctx context.Context, t testing.TB) (stop func()) {
	t.Helper()
	var all sync.WaitGroup
	for _, p := range m.people {
		all.Go(func() {
			if err := p.web.signIn(ctx, p.email); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	ctx, cancel := context.WithCancel(ctx)
	for _, p := range m.people {
		all.Go(func() { p.labels(ctx) })
	}
	return func() { cancel(); all.Wait() }
}

// finish lets everybody hurry until the round is closed and every outbox is empty,
// and reports false when that takes too long.
func (m *team) finish(ctx context.Context) bool {
	m.hurry.Store(true)
	for sleep(ctx, 100*time.Millisecond) {
		round, err := m.site.store.RoundByID(ctx, m.round.ID)
		if err == nil && round.State == winnow.RoundClosed && m.ledger.open() == 0 {
			return true
		}
	}
	return false
}
