package dbtest

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"winnow/db"
)

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

// Broken says what does not hold in the store that always should: what is kept twice
// agrees, whatever happened before.
func Broken(t testing.TB, s *db.Store) (broken []string) {
	t.Helper()
	for name, sql := range invariants {
		// A test's context may have ended when it looks at what is left.
		rows, err := s.Pool().Query(context.WithoutCancel(t.Context()), sql)
		if err != nil {
			t.Fatalf("dbtest: %s: %v", name, err)
		}
		found, err := pgx.CollectRows(rows, pgx.RowToMap)
		if err != nil {
			t.Fatalf("dbtest: %s: %v", name, err)
		}
		if len(found) > 0 {
			broken = append(broken, fmt.Sprintf("it does not hold that %s: %d rows, such as %v", name, len(found), found[0]))
		}
	}
	return broken
}
