package db

import (
	"context"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// ReviewCounts counts what waits for a project's admins, as far as MaxCounted: every
// page of an admin shows it.
func (s *Store) ReviewCounts(ctx context.Context, project winnow.ProjectID) (winnow.ReviewCounts, error) {
	n, err := one(ctx, s.pool, pgx.RowToStructByPos[winnow.ReviewCounts], `
		SELECT count(*), count(*) FILTER (WHERE review), count(*) FILTER (WHERE flagged > 0)
		FROM (SELECT q.review AND r.state = 'labeling' AS review, q.flagged
		      FROM query_items q
		      JOIN rounds r ON r.id = q.round_id
		      WHERE q.project_id = @project AND (q.review OR q.flagged > 0) AND (r.state = 'labeling' OR q.flagged > 0)
		      LIMIT @limit) AS waiting`,
		pgx.NamedArgs{"project": project, "limit": winnow.MaxCounted})
	return n, wrap(err, "count what waits for review in project %d", project)
}
