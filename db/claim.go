package db

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// maxClaim is how many items one person may hold at once.
const maxClaim = 100

// Claim leases up to n items to a person, those that they hold already first, so
// that a reload shows the same images, then free ones by rank. It returns the
// project's newest round, nil before the first; there are items only while that is
// being labeled.
func (s *Store) Claim(ctx context.Context, project winnow.ProjectID, user winnow.UserID, n int) (*winnow.Round, []winnow.Item, error) {
	round, err := latestRound(ctx, s.pool, project)
	if err != nil {
		return nil, nil, wrap(err, "claim: read round of project %d", project)
	}
	if round == nil || round.State != winnow.RoundLabeling {
		return round, nil, nil
	}
	now := s.now()
	args := pgx.NamedArgs{
		"round": round.ID, "user": user, "now": now, "limit": min(max(n, 0), maxClaim),
		"until": now.Add(time.Duration(round.Settings.LeaseSeconds) * time.Second),
	}
	items, err := collect(ctx, s.pool, scanItem, lease(`
		SELECT id FROM query_items
		WHERE round_id = @round AND leased_by = @user AND verdict IS NULL
		ORDER BY rank`), args)
	if err != nil {
		return nil, nil, wrap(err, "claim: renew leases of user %d", user)
	}
	if len(items) < n {
		args["limit"] = args["limit"].(int) - len(items)
		free, err := collect(ctx, s.pool, scanItem, lease(`
			SELECT id FROM query_items
			WHERE round_id = @round AND verdict IS NULL AND (leased_by IS NULL OR (lease_until <= @now AND leased_by <> @user))
			ORDER BY rank`), args)
		if err != nil {
			return nil, nil, wrap(err, "claim: lease items of round %d", round.ID)
		}
		items = append(items, free...)
	}
	return round, items, nil
}

// lease is the statement that leases the first @limit items of a selection to @user
// until @until, passing over those that somebody else is taking at this moment.
func lease(selection string) string {
	return `
		WITH picked AS MATERIALIZED (` + selection + `
			LIMIT @limit
			FOR UPDATE SKIP LOCKED
		), q AS (
			UPDATE query_items SET leased_by = @user, lease_until = @until
			WHERE id IN (SELECT id FROM picked)
			RETURNING *
		)
		SELECT ` + itemColumns + `
		FROM q
		JOIN images i ON i.id = q.image_id
		ORDER BY q.rank`
}

// Renew prolongs a person's leases on items and returns those that they still hold:
// a lease that ran out is renewed as long as nobody else took the item.
func (s *Store) Renew(ctx context.Context, project winnow.ProjectID, user winnow.UserID, items []winnow.ItemID) ([]winnow.ItemID, error) {
	kept, err := collect(ctx, s.pool, pgx.RowTo[winnow.ItemID], `
		UPDATE query_items q
		SET lease_until = @now::timestamptz + make_interval(secs => (r.settings ->> 'lease_seconds')::int)
		FROM rounds r
		WHERE q.id = ANY(@items) AND q.project_id = @project AND q.leased_by = @user AND q.verdict IS NULL
		  AND r.id = q.round_id AND r.state = 'labeling'
		RETURNING q.id`,
		pgx.NamedArgs{"project": project, "user": user, "items": items, "now": s.now()})
	return kept, wrap(err, "renew leases of user %d", user)
}

// Release gives items back that a person will not decide now. A page sends this
// while it closes, so it may come after the page that follows has claimed the same
// items: leases taken or renewed after asOf stay.
func (s *Store) Release(ctx context.Context, project winnow.ProjectID, user winnow.UserID, items []winnow.ItemID, asOf time.Time) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE query_items q
		SET leased_by = NULL, lease_until = NULL
		FROM rounds r
		WHERE q.id = ANY(@items) AND q.project_id = @project AND q.leased_by = @user AND r.id = q.round_id
		  AND q.lease_until <= @as_of::timestamptz + make_interval(secs => (r.settings ->> 'lease_seconds')::int)`,
		pgx.NamedArgs{"project": project, "user": user, "items": items, "as_of": asOf})
	return wrap(err, "release items of user %d", user)
}

// Recent lists a person's last n standing decisions in the project's newest round,
// newest first.
func (s *Store) Recent(ctx context.Context, project winnow.ProjectID, user winnow.UserID, n int) ([]winnow.Item, error) {
	items, err := collect(ctx, s.pool, scanItem, `
		SELECT `+itemColumns+`
		FROM query_items q
		JOIN images i ON i.id = q.image_id
		WHERE q.round_id = (SELECT id FROM rounds WHERE project_id = @project AND labeling_at IS NOT NULL ORDER BY number DESC LIMIT 1)
		  AND q.decided_by = @user AND q.verdict IS NOT NULL
		ORDER BY q.label_event_id DESC
		LIMIT @limit`,
		pgx.NamedArgs{"project": project, "user": user, "limit": min(max(n, 0), maxPage)})
	return items, wrap(err, "list recent decisions of user %d", user)
}
