package db

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// ClaimAlike leases up to n items that the model takes for one class, for a page that
// shows them together: those that the person holds for such a page already first, then
// free ones, of the class with the most of them. Only clear items are given out: those
// whose scores say so (Scores.Clear), and all of a class whose predictions in this round
// were right in at least four of five. It returns the class, -1 when there are none, and
// the project's newest round, nil before the first.
func (s *Store) ClaimAlike(ctx context.Context, project winnow.ProjectID, user winnow.UserID, n int) (*winnow.Round, int, []winnow.Item, error) {
	round, class, items, err := s.claimAlike(ctx, project, user, n)
	if violates(err, "item_answers_once") {
		// Another claim of the same person was quicker: what it took is theirs now.
		round, class, items, err = s.claimAlike(ctx, project, user, n)
	}
	return round, class, items, wrap(err, "claim like items of project %d for user %d", project, user)
}

func (s *Store) claimAlike(ctx context.Context, project winnow.ProjectID, user winnow.UserID, n int) (*winnow.Round, int, []winnow.Item, error) {
	round, err := latestRound(ctx, s.pool, project)
	if err != nil || round == nil || round.State != winnow.RoundLabeling {
		return round, -1, nil, err
	}
	n = min(max(n, 0), maxClaim)
	args := s.leaseArgs(round, user)
	group, err := one(ctx, s.pool, pgx.RowToStructByPos[alike], alikeSQL, args)
	if errors.Is(err, pgx.ErrNoRows) {
		return round, -1, nil, s.askedOf(ctx, s.pool, round, user)
	}
	if err != nil {
		return nil, -1, nil, err
	}
	args["grid"], args["class"], args["trusted"] = true, group.Class, group.Trusted
	items, err := collect(ctx, s.pool, scanItem, leaseSQL(ownAlikeSQL, n), args)
	if err != nil {
		return nil, -1, nil, err
	}
	if len(items) < n {
		free, err := collect(ctx, s.pool, scanItem, leaseSQL(freeAlikeSQL, n-len(items)), args)
		if err != nil {
			return nil, -1, nil, err
		}
		items = append(items, free...)
	}
	return round, group.Class, items, s.askedOf(ctx, s.pool, round, user)
}

// alike is a class whose items are shown together. Trusted says that the model was
// right about it so far.
type alike struct {
	Class   int
	Trusted bool
}

// alikeSQL finds the class that the person holds items of for a page of like images, or
// else the one with the most clear items that are free for them. A class is trusted
// once ten of its predictions were decided.
const alikeSQL = `
	WITH trusted AS (
		SELECT predicted FROM query_items
		WHERE round_id = @round AND predicted IS NOT NULL AND verdict IN ('known', 'unknown')
		GROUP BY predicted
		HAVING count(*) >= 10 AND count(*) FILTER (WHERE class = predicted) >= 0.8 * count(*)
	), held AS (
		SELECT q.predicted FROM item_answers s
		JOIN query_items q ON q.id = s.item_id
		WHERE s.user_id = @user AND s.round_id = @round AND s.event_id IS NULL AND s.grid
		ORDER BY s.rank
		LIMIT 1
	), most AS (
		SELECT q.predicted FROM item_answers s
		JOIN query_items q ON q.id = s.item_id
		WHERE s.round_id = @round AND NOT s.gold AND ` + slotIsFree + `
		  AND q.predicted IS NOT NULL
		  AND (q.clean >= 0.5 AND q.info < 0.5 OR q.predicted IN (SELECT predicted FROM trusted))
		  AND NOT EXISTS (SELECT FROM item_answers o WHERE o.item_id = s.item_id AND o.user_id = @user)
		GROUP BY q.predicted
		ORDER BY count(DISTINCT s.item_id) DESC, q.predicted
		LIMIT 1
	)
	SELECT c.predicted, c.predicted IN (SELECT predicted FROM trusted)
	FROM (SELECT predicted FROM held UNION ALL SELECT predicted FROM most WHERE NOT EXISTS (SELECT FROM held)) c`

const ownAlikeSQL = `
	SELECT s.item_id, s.slot FROM item_answers s
	JOIN query_items q ON q.id = s.item_id
	WHERE s.user_id = @user AND s.round_id = @round AND s.event_id IS NULL AND s.grid AND q.predicted = @class
	ORDER BY s.rank, s.item_id`

const freeAlikeSQL = `
	SELECT s.item_id, s.slot FROM item_answers s
	JOIN query_items q ON q.id = s.item_id
	WHERE s.round_id = @round AND NOT s.gold AND ` + slotIsFree + `
	  AND q.predicted = @class AND (@trusted OR q.clean >= 0.5 AND q.info < 0.5)
	  AND NOT EXISTS (SELECT FROM item_answers o WHERE o.item_id = s.item_id AND o.user_id = @user)
	  AND NOT EXISTS (SELECT FROM item_answers l WHERE l.item_id = s.item_id AND l.slot < s.slot AND ` + lowerIsFree + `)
	ORDER BY s.rank, s.slot`
