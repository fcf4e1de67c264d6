package db

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

// itemColumns are an item, q, as the lists of its round show it: with what it resolved to.
const itemColumns = itemBasics + `, q.rank, q.verdict, coalesce(q.class, -1), q.decided_by, q.decided_at,
	NULL::bigint, NULL::timestamptz`

// ownItemColumns are an item as the person sees it whose slot a is: with their own
// answer or lease.
const ownItemColumns = itemBasics + `, coalesce(a.rank, q.rank), a.verdict, coalesce(a.class, -1),
	CASE WHEN a.event_id IS NOT NULL THEN a.user_id END, a.answered_at,
	CASE WHEN a.event_id IS NULL THEN a.user_id END, a.lease_until`

const itemBasics = `q.id, q.round_id, q.project_id, q.image_id, q.slice,
	q.eu_l, q.eu_d, q.au, q.clean, q.info, coalesce(q.predicted, -1), q.slots, q.answered, q.review,
	i.width, i.height, i.media_type`

func scanItem(row pgx.CollectableRow) (winnow.Item, error) {
	var q winnow.Item
	return q, row.Scan(itemFields(&q)...)
}

func itemFields(q *winnow.Item) []any {
	score := &q.Scores
	return []any{
		&q.ID, &q.RoundID, &q.ProjectID, &q.ImageID, &q.Slice,
		(*firstScore)(score), (*zeronull.Float8)(&score.EUD), (*zeronull.Float8)(&score.AU), (*zeronull.Float8)(&score.Clean),
		(*zeronull.Float8)(&score.Info), &score.Predicted, &q.Slots, &q.Answers, &q.Review,
		&q.Width, &q.Height, &q.MediaType,
		&q.Rank, (*zeronull.Text)(&q.Verdict), &q.Class, (*zeronull.Int8)(&q.DecidedBy), (*zeronull.Timestamptz)(&q.DecidedAt),
		(*zeronull.Int8)(&q.LeasedBy), (*zeronull.Timestamptz)(&q.LeaseUntil),
	}
}

// firstScore reads the first score of an item, which tells whether there are any.
type firstScore winnow.Scores

// ScanFloat64 is a pgtype.Float64Scanner.
func (s *firstScore) ScanFloat64(v pgtype.Float8) error {
	s.HasScores, s.EUL = v.Valid, v.Float64
	return nil
}

// Items lists the items of a round by rank, gold items only if they are asked for.
func (s *Store) Items(ctx context.Context, round winnow.RoundID, f winnow.ItemFilter, page winnow.Page) ([]winnow.Item, string, error) {
	if err := validVerdictFilter(f.Verdict); err != nil {
		return nil, "", err
	}
	w, err := newWindow(page, 0)
	if err != nil {
		return nil, "", err
	}
	where := ""
	switch f.Verdict {
	case "":
	case winnow.Unlabeled:
		where += " AND q.verdict IS NULL"
	default:
		where += " AND q.verdict = @verdict"
	}
	if f.Class != nil {
		where += " AND q.class = @class"
	}
	switch f.Slice {
	case "":
		where += " AND q.slice <> 'gold'"
	case winnow.SliceQuery, winnow.SliceAudit, winnow.SliceGold:
		where += " AND q.slice = @slice"
	default:
		return nil, "", winnow.Invalid("slice", "A slice is query, audit or gold.")
	}
	items, err := collect(ctx, s.pool, scanItem, `
		SELECT `+itemColumns+`
		FROM query_items q
		JOIN images i ON i.id = q.image_id
		WHERE q.round_id = @round AND q.rank > @after`+where+`
		ORDER BY q.rank
		LIMIT @limit`,
		pgx.NamedArgs{"round": round, "after": w.after, "limit": w.limit + 1, "verdict": f.Verdict, "class": f.Class, "slice": f.Slice})
	if err != nil {
		return nil, "", wrap(err, "list items of round %d", round)
	}
	items, next := cut(w, items, func(q winnow.Item) int64 { return int64(q.Rank) })
	return items, next, nil
}
