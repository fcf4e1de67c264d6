package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// What AnnotatorDays looks at, at most: it is drawn and listed, not added up.
const (
	daysBack    = 30
	daysAnswers = 30_000
)

// AnnotatorDays returns what a person did on each of the last days on which they did
// something, newest first: up to 30 days back, and as far as their newest 30,000
// answers reach. A day that these do not cover wholly is left out.
func (s *Store) AnnotatorDays(ctx context.Context, project winnow.ProjectID, user winnow.UserID) ([]winnow.AnnotatorDay, error) {
	since := s.now().Truncate(24*time.Hour).AddDate(0, 0, 1-daysBack)
	total := 0
	days, err := collect(ctx, s.pool, func(row pgx.CollectableRow) (d winnow.AnnotatorDay, err error) {
		var ms int64
		err = row.Scan(&d.Day, &d.Labels, &ms, &d.Shared, &d.Agreed, &d.Gold, &d.GoldRight)
		d.Active = time.Duration(ms) * time.Millisecond
		total += d.Labels
		return d, err
	}, `
		SELECT (answered_at AT TIME ZONE 'UTC')::date AS day, count(*), sum(least(a.duration_ms, @idle)),
		       count(*) FILTER (WHERE q.answered > 1 AND q.verdict IS NOT NULL AND NOT a.gold),
		       count(*) FILTER (WHERE q.answered > 1 AND q.verdict IS NOT NULL AND NOT a.gold AND NOT `+differs+`),
		       count(*) FILTER (WHERE a.gold), count(*) FILTER (WHERE a.gold_result = 'right')
		FROM (SELECT * FROM item_answers
		      WHERE project_id = @project AND user_id = @user AND event_id IS NOT NULL
		      ORDER BY event_id DESC
		      LIMIT @answers) a
		JOIN query_items q ON q.id = a.item_id
		WHERE a.answered_at >= @since
		GROUP BY day
		ORDER BY day DESC`,
		pgx.NamedArgs{
			"project": project, "user": user, "since": since, "answers": daysAnswers, "idle": winnow.IdleLimit.Milliseconds(),
		})
	if err != nil {
		return nil, wrap(err, "read days of user %d in project %d", user, project)
	}
	if total == daysAnswers {
		days = days[:len(days)-1]
	}
	return days, nil
}
