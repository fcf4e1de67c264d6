package db

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// Undo takes back the person's standing decision on an item, or their last one when
// item is 0, in the newest round that was labeled, and leases the item to them again.
// A closed round reopens, if no other has started since (CodeConflict otherwise, and
// when there is nothing to undo). The same client key again undoes nothing more.
func (s *Store) Undo(ctx context.Context, project winnow.ProjectID, user winnow.UserID, item winnow.ItemID, clientKey string) (*winnow.Item, error) {
	if err := winnow.ValidateClientKey(clientKey); err != nil {
		return nil, err
	}
	reopened, err := s.undo(ctx, project, user, item, clientKey)
	if violates(err, "label_events_client_key") {
		// The same request twice at once: the other one has committed.
		reopened, err = s.undo(ctx, project, user, item, clientKey)
	}
	return reopened, wrap(err, "undo decision of user %d in project %d", user, project)
}

func (s *Store) undo(ctx context.Context, project winnow.ProjectID, user winnow.UserID, item winnow.ItemID, clientKey string) (*winnow.Item, error) {
	var reopened winnow.Item
	err := s.tx(ctx, func(tx pgx.Tx) error {
		id, err := undone(ctx, tx, project, user, clientKey)
		if err != nil {
			return err
		}
		if id == 0 {
			id, err = s.undoStanding(ctx, tx, project, user, item, clientKey)
			if err != nil {
				return err
			}
		}
		reopened, err = one(ctx, tx, scanItem, `
			SELECT `+itemColumns+`
			FROM query_items q
			JOIN images i ON i.id = q.image_id
			WHERE q.id = @id`, pgx.NamedArgs{"id": id})
		return err
	})
	if err != nil {
		return nil, err
	}
	return &reopened, nil
}

// undone returns the item of the undo that this client key stands for, 0 if none.
func undone(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, user winnow.UserID, clientKey string) (winnow.ItemID, error) {
	type event struct {
		Item winnow.ItemID
		Undo bool
	}
	e, err := one(ctx, tx, pgx.RowToStructByPos[event], `
		SELECT coalesce(item_id, 0), kind = 'undo' AND project_id = @project
		FROM label_events
		WHERE user_id = @user AND client_key = @key`,
		pgx.NamedArgs{"project": project, "user": user, "key": clientKey})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, err
	case !e.Undo:
		return 0, winnow.Invalid("client_key", "This client key belongs to a decision.")
	}
	return e.Item, nil
}

func (s *Store) undoStanding(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, user winnow.UserID, item winnow.ItemID, clientKey string) (winnow.ItemID, error) {
	id, err := value[winnow.ItemID](ctx, tx, `
		SELECT id FROM query_items
		WHERE round_id = (SELECT id FROM rounds WHERE project_id = @project AND labeling_at IS NOT NULL ORDER BY number DESC LIMIT 1)
		  AND decided_by = @user AND verdict IS NOT NULL AND (@item::bigint = 0 OR id = @item)
		ORDER BY label_event_id DESC
		LIMIT 1`,
		pgx.NamedArgs{"project": project, "user": user, "item": item})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, winnow.Errorf(winnow.CodeConflict, "You have no decision left to undo in this round.")
	}
	if err != nil {
		return 0, err
	}
	t, err := lockItem(ctx, tx, project, id)
	if err != nil {
		return 0, err
	}
	if t.item.DecidedBy != user {
		return 0, winnow.Errorf(winnow.CodeConflict, "This decision was undone a moment ago.")
	}
	round, err := lockRound(ctx, tx, project, t.number)
	if err != nil {
		return 0, err
	}
	if round.State != winnow.RoundLabeling {
		if err := s.reopen(ctx, tx, round); err != nil {
			return 0, err
		}
	}
	before, err := s.insertUndo(ctx, tx, t, user, clientKey)
	if err != nil {
		return 0, err
	}
	if err := s.uncountDecision(ctx, tx, t, user, before); err != nil {
		return 0, err
	}
	return id, notify(ctx, tx, winnow.Notice{Project: project, Round: round.ID})
}

// insertUndo appends the undo, opens the item again under the person's lease, and
// gives the image the label back that it had before, which it returns: empty, or
// that of an import.
func (s *Store) insertUndo(ctx context.Context, tx pgx.Tx, t *target, user winnow.UserID, clientKey string) (winnow.Verdict, error) {
	return value[winnow.Verdict](ctx, tx, `
		WITH undone AS (
			SELECT e.id, before.id AS before, before.verdict, before.class
			FROM label_events e
			LEFT JOIN label_events before ON before.id = e.supersedes
			WHERE e.id = @event
		), event AS (
			INSERT INTO label_events (project_id, image_id, round_id, item_id, user_id, kind, client_key, supersedes, class_version, at)
			SELECT p.id, @image::bigint, @round::bigint, @item::bigint, @user::bigint, 'undo', @key::text, undone.id,
			       p.class_version, @now::timestamptz
			FROM undone, projects p
			WHERE p.id = @project
		), item AS (
			UPDATE query_items
			SET verdict = NULL, class = NULL, decided_by = NULL, decided_at = NULL, label_event_id = NULL,
			    leased_by = @user, lease_until = @until
			WHERE id = @item
		), image AS (
			UPDATE images SET verdict = undone.verdict, class = undone.class, label_event_id = undone.before
			FROM undone
			WHERE images.id = @image
		)
		SELECT coalesce(verdict, '') FROM undone`,
		pgx.NamedArgs{
			"event": t.event, "image": t.item.ImageID, "round": t.item.RoundID, "item": t.item.ID, "user": user,
			"project": t.item.ProjectID, "key": clientKey, "now": s.now(), "until": s.now().Add(t.leaseFor),
		})
}

// uncountDecision takes a decision out of the counts of the round, pool and member.
func (s *Store) uncountDecision(ctx context.Context, tx pgx.Tx, t *target, user winnow.UserID, before winnow.Verdict) error {
	var item, pool counts
	item.add(t.item.Verdict, -1)
	if t.pool {
		pool = item
		pool.add(before, +1)
	}
	// A person may have been removed and invited again, with a count that starts anew.
	_, err := s.count(ctx, tx, t, user, item, pool, `
		UPDATE members SET label_count = greatest(label_count - 1, 0)
		WHERE project_id = @project AND user_id = @user`)
	return err
}
