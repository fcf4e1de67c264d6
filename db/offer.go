package db

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// Alike says what ClaimAlike would lease to a person next, and leases nothing: the
// class, -1 for none, and how many items there are, counted up to n.
func (s *Store) Alike(ctx context.Context, project winnow.ProjectID, user winnow.UserID, n int) (class, count int, err error) {
	round, err := latestRound(ctx, s.pool, project)
	if err != nil || round == nil || round.State != winnow.RoundLabeling {
		return -1, 0, wrap(err, "look for like items of project %d", project)
	}
	args := s.leaseArgs(round, user)
	group, err := one(ctx, s.pool, pgx.RowToStructByPos[alike], alikeSQL, args)
	if errors.Is(err, pgx.ErrNoRows) {
		return -1, 0, nil
	}
	if err == nil {
		args["limit"], args["class"], args["trusted"] = min(max(n, 0), maxClaim), group.Class, group.Trusted
		count, err = value[int](ctx, s.pool, `SELECT count(*) FROM ((`+ownAlikeSQL+`) UNION ALL (`+freeAlikeSQL+` LIMIT @limit)) s`, args)
		count = min(count, n)
	}
	return group.Class, count, wrap(err, "look for like items of project %d", project)
}
