package db

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// answersWindow is how many answers a page of AnsweredImages looks through for those
// that it is asked for. When they are rare, a page may be short or empty and still have
// one that follows; it never takes long.
const answersWindow = 5000

// AnsweredImages lists answers with their images, newest first: those of f.By, or those
// of anybody that are beside the decision as f.Answers says.
func (s *Store) AnsweredImages(ctx context.Context, project winnow.ProjectID, f winnow.ImageFilter, page winnow.Page) ([]winnow.AnsweredImage, string, error) {
	if err := validImageFilter(f); err != nil {
		return nil, "", err
	}
	if f.Answers != "" && !slices.Contains(winnow.AnswerFilters, f.Answers) {
		return nil, "", winnow.Invalid("answers", "There is no such filter of answers.")
	}
	w, err := newWindow(page, lastKey)
	if err != nil {
		return nil, "", err
	}
	window, key := answersOfSQL(f), `a.event_id`
	if f.By == 0 && f.Answers == winnow.AnswersDiffer {
		window, key = sharedItemsSQL, `a.item_id`
	}
	args := pgx.NamedArgs{
		"project": project, "after": w.after, "limit": w.limit + 1, "window": answersWindow, "by": f.By,
		"split": f.Split, "verdict": f.Verdict, "class": f.Class, "round": f.Round, "gold": f.Answers,
	}
	var last int64
	answered, err := collect(ctx, s.pool, func(row pgx.CollectableRow) (winnow.AnsweredImage, error) {
		var (
			i   winnow.AnsweredImage
			sha []byte
			a   = &i.Said
		)
		err := row.Scan(append(imageFields(&i.Image, &sha),
			&a.ItemID, &a.Event, &a.UserID, &a.User, &a.Verdict, &a.Class, &a.DurationMS, &a.At, &i.Round)...)
		copy(i.SHA256[:], sha)
		return i, err
	}, `
		SELECT `+imageColumns+`,
		       a.item_id, a.event_id, a.user_id, coalesce(nullif(u.name, ''), u.email), a.verdict, coalesce(a.class, -1),
		       a.duration_ms, a.answered_at, r.number
		FROM (`+window+`) a
		JOIN query_items q ON q.id = a.item_id
		JOIN images i ON i.id = q.image_id
		JOIN rounds r ON r.id = a.round_id
		JOIN users u ON u.id = a.user_id
		WHERE true`+answerConditions(f)+`
		ORDER BY `+key+` DESC
		LIMIT @limit`, args)
	if err != nil {
		return nil, "", wrap(err, "list answered images of project %d", project)
	}
	of := func(i winnow.AnsweredImage) int64 {
		if key == `a.item_id` {
			return int64(i.Said.ItemID)
		}
		return int64(i.Said.Event)
	}
	if len(answered) > w.limit {
		answered, next := cut(w, answered, of)
		return answered, next, nil
	}
	// The window may have ended before the answers did.
	full, err := one(ctx, s.pool, func(row pgx.CollectableRow) (full bool, err error) {
		return full, row.Scan(&full, &last)
	}, `SELECT count(*) = @window, coalesce(min(`+key+`), 0) FROM (`+window+`) a`, args)
	if err != nil {
		return nil, "", wrap(err, "list answered images of project %d", project)
	}
	if !full {
		return answered, "", nil
	}
	return answered, cursor(last), nil
}

// answersOfSQL selects the newest answers that stand, of one person or of everybody.
func answersOfSQL(f winnow.ImageFilter) string {
	where := ""
	if f.By != 0 {
		where += " AND user_id = @by"
	}
	if f.HideGold {
		where += " AND NOT gold"
	}
	switch f.Answers {
	case "", winnow.AnswersDiffer:
	case winnow.AnswersGoldWrong:
		where += " AND gold_result IN ('false-known', 'false-unknown', 'wrong-class')"
	default:
		// The first condition is the index's, the second asks for a part of it.
		where += " AND gold_result IN ('false-known', 'false-unknown', 'wrong-class') AND gold_result = @gold"
	}
	return `
		SELECT * FROM item_answers
		WHERE project_id = @project AND event_id IS NOT NULL AND event_id < @after` + where + `
		ORDER BY event_id DESC
		LIMIT @window`
}

// sharedItemsSQL selects the newest items that several people answer, each with the
// first answer that is not what the item was decided to be, if any.
const sharedItemsSQL = `
	SELECT q.id AS item_id, q.round_id, a.slot, a.user_id, a.event_id, a.verdict, a.class, a.duration_ms, a.answered_at
	FROM (SELECT * FROM query_items
	      WHERE project_id = @project AND slots > 1 AND id < @after
	      ORDER BY id DESC
	      LIMIT @window) q
	LEFT JOIN LATERAL (
		SELECT * FROM item_answers a
		WHERE a.item_id = q.id AND a.event_id IS NOT NULL AND q.verdict IS NOT NULL AND ` + differs + `
		ORDER BY a.slot
		LIMIT 1) a ON true`

// differs is that an answer, a, is not what its item, q, was decided to be.
const differs = `(a.verdict <> q.verdict OR a.class IS DISTINCT FROM q.class)`

func answerConditions(f winnow.ImageFilter) string {
	where := ""
	if f.Answers == winnow.AnswersDiffer {
		where += " AND q.verdict IS NOT NULL AND q.answered > 1 AND " + differs
	}
	if f.Split != "" {
		where += " AND i.split = @split"
	}
	switch f.Verdict {
	case "":
	case winnow.Unlabeled:
		where += " AND i.verdict IS NULL"
	default:
		where += " AND i.verdict = @verdict"
	}
	if f.Class != nil {
		where += " AND i.class = @class"
	}
	if f.Round != nil {
		where += " AND r.number = @round"
	}
	if f.Gold {
		where += " AND EXISTS (SELECT FROM gold_images g WHERE g.image_id = i.id)"
	}
	return where
}
