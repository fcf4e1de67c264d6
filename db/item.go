package db

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

const itemColumns = `q.id, q.round_id, q.project_id, q.image_id, q.rank, q.slice,
	q.eu_l, q.eu_d, q.au, q.clean, q.info, coalesce(q.predicted, -1),
	q.verdict, coalesce(q.class, -1), q.decided_by, q.decided_at, q.leased_by, q.lease_until,
	i.width, i.height, i.media_type`

func scanItem(row pgx.CollectableRow) (winnow.Item, error) {
	var (
		q     winnow.Item
		eul   *float64
		score = &q.Scores
	)
	err := row.Scan(&q.ID, &q.RoundID, &q.ProjectID, &q.ImageID, &q.Rank, &q.Slice,
		&eul, (*zeronull.Float8)(&score.EUD), (*zeronull.Float8)(&score.AU), (*zeronull.Float8)(&score.Clean),
		(*zeronull.Float8)(&score.Info), &score.Predicted,
		(*zeronull.Text)(&q.Verdict), &q.Class, (*zeronull.Int8)(&q.DecidedBy), (*zeronull.Timestamptz)(&q.DecidedAt),
		(*zeronull.Int8)(&q.LeasedBy), (*zeronull.Timestamptz)(&q.LeaseUntil),
		&q.Width, &q.Height, &q.MediaType)
	if eul != nil {
		score.HasScores, score.EUL = true, *eul
	}
	return q, err
}

// Items lists the items of a round by rank.
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
	items, err := collect(ctx, s.pool, scanItem, `
		SELECT `+itemColumns+`
		FROM query_items q
		JOIN images i ON i.id = q.image_id
		WHERE q.round_id = @round AND q.rank > @after`+where+`
		ORDER BY q.rank
		LIMIT @limit`,
		pgx.NamedArgs{"round": round, "after": w.after, "limit": w.limit + 1, "verdict": f.Verdict, "class": f.Class})
	if err != nil {
		return nil, "", wrap(err, "list items of round %d", round)
	}
	items, next := cut(w, items, func(q winnow.Item) int64 { return int64(q.Rank) })
	return items, next, nil
}
