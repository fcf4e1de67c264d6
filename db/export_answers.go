package db

import (
	"context"
	"encoding/hex"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

// ExportAnswers calls fn for each answer that stands and that the filter asks for, by
// round, image and the order in which people were asked, as they stood at one moment.
// The filter's statuses are those of the answers. Memory stays flat, and the first call
// comes at once. An error of fn ends it and is returned.
func (s *Store) ExportAnswers(ctx context.Context, project winnow.ProjectID, f winnow.LabelFilter, fn func(winnow.AnswerRecord) error) error {
	sql, args, err := answersQuery(project, f)
	if err != nil {
		return err
	}
	snapshot := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	err = pgx.BeginTxFunc(ctx, s.pool, snapshot, func(tx pgx.Tx) error {
		for {
			answers, err := collect(ctx, tx, scanAnswerRecord, sql, args)
			if err != nil {
				return err
			}
			for _, a := range answers {
				if err := fn(a.AnswerRecord); err != nil {
					return err
				}
			}
			if len(answers) < exportChunk {
				return nil
			}
			last := answers[len(answers)-1]
			args["after_round"], args["after_image"], args["after_slot"] = last.round, last.ImageID, last.slot
		}
	})
	return wrap(err, "export answers of project %d", project)
}

func answersQuery(project winnow.ProjectID, f winnow.LabelFilter) (string, pgx.NamedArgs, error) {
	if err := validImageFilter(winnow.ImageFilter{Split: f.Split}); err != nil {
		return "", nil, err
	}
	for _, status := range f.Statuses {
		if !slices.Contains(verdicts, winnow.Verdict(status)) {
			return "", nil, winnow.Invalid("status", "The status of an answer is known, unknown, skip or unreadable.")
		}
	}
	where := ""
	if f.Round != nil {
		where += " AND q.round_id = (SELECT id FROM rounds WHERE project_id = @project AND number = @round)"
	}
	if f.Split != "" {
		where += " AND i.split = @split"
	}
	if len(f.Statuses) > 0 {
		where += " AND a.verdict = ANY(@statuses::text[])"
	}
	// The first condition on the key walks the index, the second is exact.
	return `
		SELECT q.round_id, a.slot, i.id, i.sha256, i.source_path, i.split, r.number, q.slice, a.rank, u.email,
		       a.verdict, c.name, a.class, e.class_version,
		       CASE WHEN a.gold THEN i.verdict ELSE q.verdict END, d.name, a.gold_result, a.answered_at, a.duration_ms
		FROM query_items q
		JOIN item_answers a ON a.item_id = q.id AND a.event_id IS NOT NULL
		JOIN images i ON i.id = q.image_id
		JOIN rounds r ON r.id = q.round_id
		JOIN users u ON u.id = a.user_id
		JOIN label_events e ON e.id = a.event_id
		LEFT JOIN classes c ON c.project_id = q.project_id AND c.position = a.class
		LEFT JOIN classes d ON d.project_id = q.project_id AND d.position = CASE WHEN a.gold THEN i.class ELSE q.class END
		WHERE q.project_id = @project AND (q.round_id, q.image_id) >= (@after_round::bigint, @after_image::bigint)
		  AND (q.round_id, q.image_id, a.slot) > (@after_round::bigint, @after_image::bigint, @after_slot::int)` + where + `
		ORDER BY q.round_id, q.image_id, a.slot
		LIMIT @limit`,
		pgx.NamedArgs{
			"project": project, "limit": exportChunk, "round": f.Round, "split": f.Split, "statuses": f.Statuses,
			"after_round": winnow.RoundID(0), "after_image": winnow.ImageID(0), "after_slot": 0,
		}, nil
}

// keyedAnswer is an answer with what is left of its place in the order.
type keyedAnswer struct {
	winnow.AnswerRecord
	round winnow.RoundID
	slot  int
}

func scanAnswerRecord(row pgx.CollectableRow) (keyedAnswer, error) {
	var (
		a   keyedAnswer
		sha []byte
	)
	err := row.Scan(&a.round, &a.slot, &a.ImageID, &sha, &a.SourcePath, &a.Split, &a.Round, &a.Slice, &a.Rank, &a.Annotator,
		&a.Status, (*zeronull.Text)(&a.Class), &a.ClassIndex, &a.ClassVersion,
		(*zeronull.Text)(&a.Decided), (*zeronull.Text)(&a.DecidedClass), (*zeronull.Text)(&a.Gold), &a.AnsweredAt, &a.DurationMS)
	a.SHA256 = hex.EncodeToString(sha)
	return a, err
}
