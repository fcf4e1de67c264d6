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
	stop    func() // ends the labeling, and waits for it
	admin   winnow.User
}

// teamPlan says what a team is like.
type teamPlan struct {
	people  int
	items   int // of the round
	pool    int // 0 for twice the items
	overlap int
	lease   time.Duration
	pace    time.Duration
	seed    uint64
}

// newTeam makes a project, opens its round, and gives each annotator an account, a
// link to the server and a browser.
func newTeam(t testing.TB, s *site, plan teamPlan) *team {
	t.Helper()
	m := &team{site: s, ledger: newLedger(), overlap: plan.overlap, stop: func() {}}
	hash, err := password.Hash(secret)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("overlap%d", plan.overlap)
	m.admin = dbtest.User(t, s.store, name+"-admin")
	settings := dbtest.Settings()
	settings.Budget, settings.LeaseSeconds = plan.items, int(plan.lease.Seconds())
	// Gold items are for several people at once, by design.
	settings.Overlap, settings.GoldEvery = plan.overlap, 0
	m.project = dbtest.Project(t, s.store, m.admin.ID, settings, 4, 0)
	if plan.pool == 0 {
		plan.pool = 2 * plan.items
	}
	addImages(t, s.store, m.project.ID, plan.pool)
	m.round = dbtest.OpenRound(t, s.store, m.admin.ID, m.project.ID)
	for i := range plan.people {
		u := winnow.User{Email: fmt.Sprintf("%s-%d@example.org", name, i), Name: fmt.Sprint("Annotator ", i)}
		if u.ID, err = s.store.CreateUser(t.Context(), u, hash); err != nil {
			t.Fatal(err)
		}
		dbtest.Join(t, s.store, m.admin.ID, m.project.ID, u, winnow.RoleAnnotator)
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

// signIn gives everybody a session.
func (m *team) signIn(ctx context.Context, t testing.TB) {
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
}

// label lets everybody sign in, and then label until stop is called.
func (m *team) label(ctx context.Context, t testing.TB) {
	t.Helper()
	m.signIn(ctx, t)
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	for _, p := range m.people {
		all.Go(func() { p.labels(ctx) })
	}
	m.stop = func() { cancel(); all.Wait() }
}

// finish lets everybody hurry until all is answered and every outbox is empty, while
// the admin decides what people disagree on, until the round is closed.
func (m *team) finish(ctx context.Context, t *testing.T) {
	t.Helper()
	m.hurry.Store(true)
	for sleep(ctx, 100*time.Millisecond) {
		m.review(ctx, t)
		round, err := m.site.store.RoundByID(ctx, m.round.ID)
		if err == nil && round.State == winnow.RoundClosed && m.ledger.open() == 0 {
			return
		}
	}
	round, err := m.site.store.RoundByID(context.WithoutCancel(ctx), m.round.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Fatalf("overlap %d: the round does not close: it is %s, %+v; %d entries wait", m.overlap, round.State, round.Counts, m.ledger.open())
}

// review corrects what waits for an admin.
func (m *team) review(ctx context.Context, t *testing.T) {
	t.Helper()
	items, _, err := m.site.store.ReviewQueue(ctx, m.project.ID, winnow.Page{})
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	for _, item := range items {
		key := fmt.Sprintf("review-%d", item.ID)
		_, err := m.site.store.Correct(ctx, m.project.ID, m.admin.ID, item.ImageID, winnow.VerdictUnknown, -1, key)
		if err != nil && ctx.Err() == nil {
			t.Fatal(err)
		}
		m.ledger.note("corrected")
	}
}
