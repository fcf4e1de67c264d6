package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

// AnnotatorFigures lists how people label in a project, in the order in which they
// signed up; user narrows it to one person, 0 means everybody who ever answered. The
// median is that of the last 500 answers.
func (s *Store) AnnotatorFigures(ctx context.Context, project winnow.ProjectID, user winnow.UserID, page winnow.Page) ([]winnow.AnnotatorFigures, string, error) {
	w, err := newWindow(page, 0)
	if err != nil {
		return nil, "", err
	}
	figures, err := collect(ctx, s.pool, func(row pgx.CollectableRow) (f winnow.AnnotatorFigures, err error) {
		var active int64
		var median float64
		err = row.Scan(&f.UserID, &f.User, &f.Labels, &active, &median, &f.Shared, &f.Agreed, &f.Gold, &f.GoldRight,
			&f.GoldFalseKnown, &f.GoldFalseUnknown, &f.GoldWrongClass, (*zeronull.Timestamptz)(&f.LastAt), &f.Here)
		f.Active = time.Duration(active) * time.Millisecond
		f.Median = time.Duration(median * float64(time.Millisecond)).Round(time.Millisecond)
		return f, err
	}, `
		SELECT a.user_id, coalesce(nullif(u.name, ''), u.email), a.label_count, a.active_ms,
		       coalesce((SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY g.duration_ms)
		                 FROM (SELECT duration_ms FROM item_answers
		                       WHERE project_id = a.project_id AND user_id = a.user_id AND event_id IS NOT NULL
		                       ORDER BY event_id DESC
		                       LIMIT 500) g), 0),
		       a.shared_count, a.agreed_count, a.gold_count, a.gold_right, a.gold_false_known, a.gold_false_unknown,
		       a.gold_wrong_class, a.last_label_at,
		       coalesce((SELECT true FROM item_answers h
		                 WHERE h.user_id = a.user_id AND h.event_id IS NULL AND h.lease_until > `+leaseClock+`
		                   AND h.round_id = (SELECT id FROM rounds WHERE project_id = @project AND state = 'labeling')
		                 LIMIT 1), false)
		FROM annotators a
		JOIN users u ON u.id = a.user_id
		WHERE a.project_id = @project AND a.user_id > @after AND (@user::bigint = 0 OR a.user_id = @user)
		ORDER BY a.user_id
		LIMIT @limit`,
		pgx.NamedArgs{
			"project": project, "user": user, "after": w.after, "limit": w.limit + 1, "lease_now": s.leaseNow(),
		})
	if err != nil {
		return nil, "", wrap(err, "read figures of annotators of project %d", project)
	}
	figures, next := cut(w, figures, func(f winnow.AnnotatorFigures) int64 { return int64(f.UserID) })
	return figures, next, nil
}
