package db_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
)

// bench is what most tests work on: a project with an admin, on a clock that the
// test moves.
type bench struct {
	*db.Store
	t       *testing.T
	clock   *dbtest.Clock
	jobs    *jobs
	admin   winnow.User
	project winnow.ProjectID
}

// jobs are the jobs that the store has inserted, as "round/attempt". They are
// recorded when they are inserted, so a rollback does not take them back.
type jobs struct {
	mu   sync.Mutex
	list []string
}

func (j *jobs) enqueue(_ context.Context, _ pgx.Tx, round winnow.RoundID, attempt int) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.list = append(j.list, fmt.Sprintf("%d/%d", round, attempt))
	return nil
}

// newBench makes a project with 3 classes and n images in its pool.
func newBench(t *testing.T, n int, change func(*winnow.Settings)) *bench {
	t.Helper()
	b := &bench{t: t, clock: dbtest.NewClock(), jobs: new(jobs)}
	b.Store = dbtest.New(t, db.Options{
		Now:      b.clock.Now,
		LeaseNow: b.clock.Now,
		Enqueue:  b.jobs.enqueue,
		NextK:    func(_ winnow.Settings, k, precision float64, _ int64) float64 { return k + precision },
	})
	settings := dbtest.Settings()
	if change != nil {
		change(&settings)
	}
	b.admin = dbtest.User(t, b.Store, "admin")
	b.project = dbtest.Project(t, b.Store, b.admin.ID, settings, 3, n).ID
	return b
}

func (b *bench) annotator(name string) winnow.UserID {
	b.t.Helper()
	return dbtest.Member(b.t, b.Store, b.admin.ID, b.project, name, winnow.RoleAnnotator).ID
}

// open starts a round and opens it to the annotators.
func (b *bench) open() *winnow.Round {
	b.t.Helper()
	return dbtest.OpenRound(b.t, b.Store, b.admin.ID, b.project)
}

func (b *bench) claim(user winnow.UserID, n int) []winnow.Item {
	b.t.Helper()
	_, items, err := b.Claim(b.t.Context(), b.project, user, n)
	if err != nil {
		b.t.Fatal(err)
	}
	return items
}

func (b *bench) decide(user winnow.UserID, d winnow.Decision) winnow.DecideResult {
	b.t.Helper()
	res, err := b.Decide(b.t.Context(), b.project, user, d)
	if err != nil {
		b.t.Fatal(err)
	}
	return res
}

// drain decides all items of the open round.
func (b *bench) drain(user winnow.UserID, decide func(i int) winnow.Verdict) winnow.Round {
	b.t.Helper()
	var round winnow.Round
	for i := 0; ; i++ {
		items := b.claim(user, 1)
		if len(items) == 0 {
			return round
		}
		round = b.decide(user, decision(items[0].ID, decide(i), 0, rand.Text())).Round
	}
}

// silence makes every heartbeat as old as if nothing had been heard for d. The
// database's clock, which judges them, cannot be moved.
func (b *bench) silence(d time.Duration) {
	b.t.Helper()
	for _, table := range []string{"rounds", "imports"} {
		if _, err := b.Pool().Exec(b.t.Context(), `UPDATE `+table+` SET heartbeat_at = heartbeat_at - $1::interval`, d); err != nil {
			b.t.Fatal(err)
		}
	}
}

func always(v winnow.Verdict) func(int) winnow.Verdict {
	return func(int) winnow.Verdict { return v }
}

func decision(item winnow.ItemID, v winnow.Verdict, class int, key string) winnow.Decision {
	return winnow.Decision{ItemID: item, Verdict: v, Class: class, ClientKey: key, DurationMS: 700}
}

func ranks(items []winnow.Item) []int {
	ranks := make([]int, len(items))
	for i, item := range items {
		ranks[i] = item.Rank
	}
	return ranks
}

func wantCode(t *testing.T, err error, code winnow.Code) {
	t.Helper()
	if got := winnow.ErrorCode(err); got != code {
		t.Errorf("got %q (%v), want %q", got, err, code)
	}
}

func (b *bench) checkInvariants() {
	b.t.Helper()
	for _, broken := range dbtest.Broken(b.t, b.Store) {
		b.t.Error(broken)
	}
}
