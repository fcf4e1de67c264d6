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
		SELECT r.id, r.item_count, r.known_count, r.unknown_count, r.skipped_count, r.unreadable_count,
		       r.audit_count, r.audit_known_count, r.audit_unknown_count, r.gold_count
		FROM rounds r
		EXCEPT
		SELECT r.id, count(q.id) FILTER (WHERE slice <> 'gold'), count(q.id) FILTER (WHERE verdict = 'known'),
		       count(q.id) FILTER (WHERE verdict = 'unknown'), count(q.id) FILTER (WHERE verdict = 'skip'),
		       count(q.id) FILTER (WHERE verdict = 'unreadable'), count(q.id) FILTER (WHERE slice = 'audit'),
		       count(q.id) FILTER (WHERE slice = 'audit' AND verdict = 'known'),
		       count(q.id) FILTER (WHERE slice = 'audit' AND verdict = 'unknown'), count(q.id) FILTER (WHERE slice = 'gold')
		FROM rounds r LEFT JOIN query_items q ON q.round_id = r.id GROUP BY r.id`,
	"an item counts its answers, and has a slot for each that it asks for": `
		SELECT q.id, q.answered, CASE WHEN q.slice = 'gold' THEN q.answered ELSE q.slots END FROM query_items q
		EXCEPT
		SELECT q.id, count(a.event_id), CASE WHEN q.slice = 'gold' THEN count(a.event_id) ELSE count(a.item_id) END
		FROM query_items q LEFT JOIN item_answers a ON a.item_id = q.id GROUP BY q.id`,
	"the figures of people are those of their answers": `
		SELECT project_id, user_id, label_count, active_ms, shared_count, agreed_count, gold_count, gold_right, gold_false_known,
		       gold_false_unknown, gold_wrong_class, last_label_at
		FROM annotators
		EXCEPT
		SELECT n.project_id, n.user_id, count(a.event_id),
		       (SELECT sum(least(e.duration_ms, 60000)) FROM label_events e
		        WHERE e.project_id = n.project_id AND e.user_id = n.user_id AND e.kind = 'label'),
		       count(*) FILTER (WHERE NOT a.gold AND q.verdict IS NOT NULL AND q.answered > 1),
		       count(*) FILTER (WHERE NOT a.gold AND q.answered > 1 AND a.verdict = q.verdict AND a.class IS NOT DISTINCT FROM q.class),
		       count(*) FILTER (WHERE a.gold AND a.event_id IS NOT NULL), count(*) FILTER (WHERE a.gold_result = 'right'),
		       count(*) FILTER (WHERE a.gold_result = 'false-known'), count(*) FILTER (WHERE a.gold_result = 'false-unknown'),
		       count(*) FILTER (WHERE a.gold_result = 'wrong-class'),
		       (SELECT max(e.at) FROM label_events e
		        WHERE e.project_id = n.project_id AND e.user_id = n.user_id AND e.kind = 'label')
		FROM annotators n
		LEFT JOIN item_answers a ON a.project_id = n.project_id AND a.user_id = n.user_id AND a.event_id IS NOT NULL
		LEFT JOIN query_items q ON q.id = a.item_id
		GROUP BY 1, 2`,
	"whoever answered has figures": `
		SELECT project_id, user_id FROM item_answers WHERE event_id IS NOT NULL
		EXCEPT
		SELECT project_id, user_id FROM annotators`,
	"an answer that was not undone stands in its slot, and no other does": `
		(SELECT e.id, e.item_id, e.user_id, e.verdict, e.class
		 FROM label_events e
		 WHERE e.kind = 'label' AND NOT EXISTS (SELECT FROM label_events u WHERE u.kind = 'undo' AND u.supersedes = e.id)
		 EXCEPT
		 SELECT a.event_id, a.item_id, a.user_id, a.verdict, a.class FROM item_answers a)
		UNION ALL
		SELECT a.event_id, a.item_id, a.user_id, a.verdict, a.class FROM item_answers a
		JOIN label_events u ON u.kind = 'undo' AND u.supersedes = a.event_id`,
	"an item has the verdict of its event, and so has the image unless a later item or import speaks for it": `
		SELECT q.id FROM query_items q
		JOIN label_events e ON e.id = q.label_event_id
		JOIN images i ON i.id = q.image_id
		WHERE e.verdict <> q.verdict OR e.class IS DISTINCT FROM q.class OR e.image_id <> q.image_id
		   OR e.item_id IS DISTINCT FROM q.id OR i.label_event_id IS DISTINCT FROM q.label_event_id`,
	"an image has the label that its last event says": `
		SELECT i.id, i.label_event_id, i.verdict, i.class
		FROM images i
		LEFT JOIN LATERAL (SELECT e.stands FROM label_events e WHERE e.image_id = i.id ORDER BY e.id DESC LIMIT 1) e ON true
		LEFT JOIN label_events l ON l.id = e.stands
		WHERE l.id IS DISTINCT FROM i.label_event_id OR l.verdict IS DISTINCT FROM i.verdict OR l.class IS DISTINCT FROM i.class`,
	"an item is resolved or in review when all have answered, and not before": `
		SELECT id FROM query_items
		WHERE slice <> 'gold' AND (answered = slots) <> (verdict IS NOT NULL OR review)`,
	"an item counts its open flags": `
		SELECT id, flagged FROM query_items
		EXCEPT
		SELECT q.id, count(f.id) FILTER (WHERE f.resolved_at IS NULL)
		FROM query_items q LEFT JOIN item_flags f ON f.item_id = q.id GROUP BY q.id`,
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
