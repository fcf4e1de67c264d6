package db_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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
		Now:     b.clock.Now,
		Enqueue: b.jobs.enqueue,
		NextK:   func(_ winnow.Settings, k, precision float64, _ int64) float64 { return k + precision },
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

// invariants are queries that find no row in a database that is as it should be.
var invariants = map[string]string{
	"the counts of a pool are those of its images": `
		SELECT p.id, p.pool_count, p.test_count, p.known_count, p.unknown_count, p.skipped_count, p.unreadable_count
		FROM projects p
		EXCEPT
		SELECT p.id, count(i.id) FILTER (WHERE split = 'pool'), count(i.id) FILTER (WHERE split = 'test'),
		       count(i.id) FILTER (WHERE split = 'pool' AND verdict = 'known'),
		       count(i.id) FILTER (WHERE split = 'pool' AND verdict = 'unknown'),
		       count(i.id) FILTER (WHERE split = 'pool' AND verdict = 'skip'),
		       count(i.id) FILTER (WHERE split = 'pool' AND verdict = 'unreadable')
		FROM projects p LEFT JOIN images i ON i.project_id = p.id GROUP BY p.id`,
	"the counts of a round are those of its items": `
		SELECT r.id, r.item_count, r.known_count, r.unknown_count, r.skipped_count, r.unreadable_count FROM rounds r
		EXCEPT
		SELECT r.id, count(q.id), count(q.id) FILTER (WHERE verdict = 'known'),
		       count(q.id) FILTER (WHERE verdict = 'unknown'), count(q.id) FILTER (WHERE verdict = 'skip'),
		       count(q.id) FILTER (WHERE verdict = 'unreadable')
		FROM rounds r LEFT JOIN query_items q ON q.round_id = r.id GROUP BY r.id`,
	"a member's count is that of their labels that stand": `
		SELECT m.project_id, m.user_id, m.label_count FROM members m
		EXCEPT
		SELECT m.project_id, m.user_id, count(q.id)
		FROM members m LEFT JOIN query_items q ON q.project_id = m.project_id AND q.decided_by = m.user_id
		GROUP BY 1, 2`,
	"a label that was not undone stands on its item and its image, and no other does": `
		SELECT e.id, e.item_id, e.image_id, e.user_id, e.verdict, e.class
		FROM label_events e
		WHERE e.kind = 'label' AND NOT EXISTS (SELECT FROM label_events u WHERE u.kind = 'undo' AND u.supersedes = e.id)
		EXCEPT
		SELECT q.label_event_id, q.id, i.id, q.decided_by, q.verdict, q.class
		FROM query_items q JOIN images i ON i.label_event_id = q.label_event_id AND i.verdict = q.verdict
		     AND i.class IS NOT DISTINCT FROM q.class`,
	"an item's label was not undone": `
		SELECT q.id FROM query_items q
		JOIN label_events u ON u.kind = 'undo' AND u.supersedes = q.label_event_id`,
	"a round is closed when all is decided": `
		SELECT id FROM rounds
		WHERE state = 'labeling' AND known_count + unknown_count + skipped_count + unreadable_count = item_count`,
}

func (b *bench) checkInvariants() {
	b.t.Helper()
	for name, sql := range invariants {
		rows, err := b.Pool().Query(context.Background(), sql)
		if err != nil {
			b.t.Fatal(err)
		}
		broken, err := pgx.CollectRows(rows, pgx.RowToMap)
		if err != nil {
			b.t.Fatal(err)
		}
		if diff := cmp.Diff([]map[string]any{}, broken); diff != "" {
			b.t.Errorf("it does not hold that %s: %s", name, diff)
		}
	}
}
