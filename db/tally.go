package db

import (
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// tally is what a transaction adds to the figures of one annotator.
type tally struct {
	labels, shared, agreed                            int
	activeMS                                          int64
	gold, right, falseKnown, falseUnknown, wrongClass int
	sinceGold                                         int
	answered                                          bool // gave an answer now
}

func (c *change) tally(user winnow.UserID) *tally {
	if c.annotators == nil {
		c.annotators = make(map[winnow.UserID]*tally)
	}
	if c.annotators[user] == nil {
		c.annotators[user] = new(tally)
	}
	return c.annotators[user]
}

// What an answer to a gold item says beside the image's label.
const (
	goldRight        = "right"
	goldFalseKnown   = "false-known"
	goldFalseUnknown = "false-unknown"
	goldWrongClass   = "wrong-class"
	goldNone         = "none" // one of the two is neither known nor unknown
)

// compareGold says how an answer compares with the label of a gold item.
func compareGold(truth winnow.Verdict, class int, s *slot) string {
	switch {
	case !decisive(s.verdict) || !decisive(truth): // an admin may have corrected a gold image's label
		return goldNone
	case s.says(truth, class):
		return goldRight
	case s.verdict == winnow.VerdictUnknown:
		return goldFalseUnknown
	case truth == winnow.VerdictKnown:
		return goldWrongClass
	default:
		return goldFalseKnown
	}
}

func decisive(v winnow.Verdict) bool { return v == winnow.VerdictKnown || v == winnow.VerdictUnknown }

// addGold counts n answers to gold items that compared so.
func (t *tally) addGold(result string, n int) {
	t.gold += n
	switch result {
	case goldRight:
		t.right += n
	case goldFalseKnown:
		t.falseKnown += n
	case goldFalseUnknown:
		t.falseUnknown += n
	case goldWrongClass:
		t.wrongClass += n
	}
}

// queueTallies adds the tallies to the annotators' rows, which it locks in the order of
// their ids.
func (c *change) queueTallies() {
	users := slices.Sorted(maps.Keys(c.annotators))
	if len(users) == 0 {
		return
	}
	columns := make([][]int64, 11)
	for _, user := range users {
		t := c.annotators[user]
		var answered int64
		if t.answered {
			answered = 1
		}
		for i, v := range []int64{
			int64(t.labels), t.activeMS, int64(t.shared), int64(t.agreed), int64(t.gold), int64(t.right),
			int64(t.falseKnown), int64(t.falseUnknown), int64(t.wrongClass), int64(t.sinceGold), answered,
		} {
			columns[i] = append(columns[i], v)
		}
	}
	c.writes.Queue(`
		INSERT INTO annotators AS a (project_id, user_id, label_count, active_ms, shared_count, agreed_count, gold_count,
		                             gold_right, gold_false_known, gold_false_unknown, gold_wrong_class, since_gold, last_label_at)
		SELECT @project, n.user_id, n.labels, n.active, n.shared, n.agreed, n.gold, n.gold_right, n.false_known, n.false_unknown,
		       n.wrong_class, n.since, CASE WHEN n.answered > 0 THEN @now::timestamptz END
		FROM unnest(@users::bigint[], @labels::bigint[], @active::bigint[], @shared::bigint[], @agreed::bigint[], @gold::bigint[],
		            @right::bigint[], @false_known::bigint[], @false_unknown::bigint[], @wrong_class::bigint[], @since::bigint[],
		            @answered::bigint[])
		     AS n (user_id, labels, active, shared, agreed, gold, gold_right, false_known, false_unknown, wrong_class, since, answered)
		ORDER BY n.user_id
		ON CONFLICT (project_id, user_id) DO UPDATE
		SET label_count = a.label_count + excluded.label_count, active_ms = a.active_ms + excluded.active_ms,
		    shared_count = a.shared_count + excluded.shared_count, agreed_count = a.agreed_count + excluded.agreed_count,
		    gold_count = a.gold_count + excluded.gold_count, gold_right = a.gold_right + excluded.gold_right,
		    gold_false_known = a.gold_false_known + excluded.gold_false_known,
		    gold_false_unknown = a.gold_false_unknown + excluded.gold_false_unknown,
		    gold_wrong_class = a.gold_wrong_class + excluded.gold_wrong_class,
		    since_gold = a.since_gold + excluded.since_gold,
		    last_label_at = greatest(a.last_label_at, excluded.last_label_at)`,
		pgx.NamedArgs{
			"project": c.project, "now": c.now, "users": users, "labels": columns[0], "active": columns[1], "shared": columns[2],
			"agreed": columns[3], "gold": columns[4], "right": columns[5], "false_known": columns[6], "false_unknown": columns[7],
			"wrong_class": columns[8], "since": columns[9], "answered": columns[10],
		})
}
