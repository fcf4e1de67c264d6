package db

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

// Decide records a person's decision on an item, in one transaction with everything
// that hangs on it; the decision on the last item closes the round.
//
// The same client key again is the same event (Replayed), or CodeConflict if it says
// something else. An item that nobody holds any more is decided all the same.
// CodeConflict if somebody else holds or has decided the item (what was sent is kept
// on record, and does not count) or the round is not being labeled; CodeNotFound if
// the item is not the project's; CodeInvalid for a class that there is not.
func (s *Store) Decide(ctx context.Context, project winnow.ProjectID, user winnow.UserID, d winnow.Decision) (winnow.DecideResult, error) {
	result, err := s.decide(ctx, project, user, d)
	if violates(err, "label_events_client_key") {
		// The same request twice at once: the other one has committed.
		result, err = s.decide(ctx, project, user, d)
	}
	return result, wrap(err, "decide item %d", d.ItemID)
}

func (s *Store) decide(ctx context.Context, project winnow.ProjectID, user winnow.UserID, d winnow.Decision) (result winnow.DecideResult, err error) {
	var late error
	err = s.tx(ctx, func(tx pgx.Tx) error {
		t, err := lockItem(ctx, tx, project, d.ItemID)
		if err != nil {
			return err
		}
		if err := d.Validate(t.classes); err != nil {
			return err
		}
		result.Event, err = replayed(ctx, tx, user, d)
		if err != nil {
			return err
		}
		if result.Event != 0 {
			result.Replayed = true
			round, err := s.roundByID(ctx, tx, t.item.RoundID)
			if err != nil {
				return err
			}
			result.Round = *round
			return nil
		}
		if late = s.tooLate(t, user); late != nil {
			return s.recordLate(ctx, tx, user, d)
		}
		if result.Event, err = s.insertLabel(ctx, tx, t, user, d); err != nil {
			return err
		}
		round, err := s.countDecision(ctx, tx, t, user, d.Verdict)
		if err != nil {
			return err
		}
		if round.Counts.Left() == 0 {
			if err := s.close(ctx, tx, user, round); err != nil {
				return err
			}
		}
		result.Round = *round
		return notify(ctx, tx, winnow.Notice{Project: project, Round: round.ID})
	})
	if err == nil {
		err = late
	}
	return result, err
}

// target is an item that is being decided or undone, locked together with its image.
type target struct {
	item       winnow.Item
	event      winnow.EventID // that decided the item, 0 while it is open
	decider    string         // who did
	roundState winnow.RoundState
	number     int // of the round
	leaseFor   time.Duration
	pool       bool           // the image counts in the pool
	verdict    winnow.Verdict // of the image: an import may have labeled it while the item was open
	classes    int            // of the project
}

func lockItem(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, id winnow.ItemID) (*target, error) {
	t, err := one(ctx, tx, func(row pgx.CollectableRow) (*target, error) {
		t := &target{item: winnow.Item{ID: id, ProjectID: project}}
		var seconds int
		err := row.Scan(&t.item.RoundID, &t.item.ImageID, (*zeronull.Text)(&t.item.Verdict),
			(*zeronull.Int8)(&t.item.DecidedBy), (*zeronull.Int8)(&t.item.LeasedBy),
			(*zeronull.Timestamptz)(&t.item.LeaseUntil), (*zeronull.Int8)(&t.event), &t.decider,
			&t.roundState, &t.number, &seconds, &t.pool, (*zeronull.Text)(&t.verdict), &t.classes)
		t.leaseFor = time.Duration(seconds) * time.Second
		return t, err
	}, `
		SELECT q.round_id, q.image_id, q.verdict, q.decided_by, q.leased_by, q.lease_until, q.label_event_id,
		       coalesce(nullif(u.name, ''), u.email, ''), r.state, r.number, (r.settings ->> 'lease_seconds')::int,
		       i.split = 'pool', i.verdict, (SELECT count(*) FROM classes c WHERE c.project_id = q.project_id)
		FROM query_items q
		JOIN rounds r ON r.id = q.round_id
		JOIN images i ON i.id = q.image_id
		LEFT JOIN users u ON u.id = q.decided_by
		WHERE q.id = @id AND q.project_id = @project
		FOR NO KEY UPDATE OF q, i`,
		pgx.NamedArgs{"id": id, "project": project})
	return t, missing(err, "There is no such item in this project.")
}

// replayed returns the event that this very decision made when it arrived before, 0
// if it did not. CodeConflict if its client key stands for something else.
func replayed(ctx context.Context, tx pgx.Tx, user winnow.UserID, d winnow.Decision) (winnow.EventID, error) {
	type event struct {
		ID   winnow.EventID
		Same bool
	}
	e, err := one(ctx, tx, pgx.RowToStructByPos[event], `
		SELECT id, coalesce(kind = 'label' AND item_id = @item AND verdict = @verdict
		                    AND (verdict <> 'known' OR class = @class), false)
		FROM label_events
		WHERE user_id = @user AND client_key = @key`,
		pgx.NamedArgs{"user": user, "key": d.ClientKey, "item": d.ItemID, "verdict": d.Verdict, "class": d.Class})
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, err
	case !e.Same:
		return 0, &winnow.Error{
			Code: winnow.CodeConflict, Field: "client_key",
			Message: "This client key belongs to another decision, which is kept. Send the new one under a key of its own.",
		}
	}
	return e.ID, nil
}

// tooLate says why a decision on the item cannot count; nil if it can.
func (s *Store) tooLate(t *target, user winnow.UserID) error {
	switch {
	case t.item.Verdict != "" && t.item.DecidedBy == user:
		return winnow.Errorf(winnow.CodeConflict, "You have decided this image already (%s), and that is kept. Undo it to change your mind.", t.item.Verdict)
	case t.item.Verdict != "":
		return winnow.Errorf(winnow.CodeConflict, "%s has decided this image already (%s), and that is kept.", t.decider, t.item.Verdict)
	case t.roundState != winnow.RoundLabeling:
		return errNotLabeling(t)
	case t.item.LeasedBy != 0 && t.item.LeasedBy != user && t.item.LeaseUntil.After(s.now()):
		return winnow.Errorf(winnow.CodeConflict, "Your lease on this image ran out, and somebody else has it now.")
	}
	return nil
}

func errNotLabeling(t *target) error {
	return winnow.Errorf(winnow.CodeConflict, "Round %d is %s, so its images take no labels now. What was saved is kept.", t.number, t.roundState)
}

// recordLate keeps a decision that does not count.
func (s *Store) recordLate(ctx context.Context, tx pgx.Tx, user winnow.UserID, d winnow.Decision) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO late_decisions (user_id, client_key, item_id, verdict, class, duration_ms, at)
		VALUES (@user, @key, @item, @verdict, @class, @duration, @now)
		ON CONFLICT (user_id, client_key) DO NOTHING`,
		pgx.NamedArgs{
			"user": user, "key": d.ClientKey, "item": d.ItemID, "verdict": d.Verdict, "class": classOf(d),
			"duration": d.DurationMS, "now": s.now(),
		})
	return err
}

// classOf is the class of a decision as it is stored: null unless known.
func classOf(d winnow.Decision) *int {
	if d.Verdict != winnow.VerdictKnown {
		return nil
	}
	return &d.Class
}

// insertLabel appends the event and makes it the label of the item and its image.
func (s *Store) insertLabel(ctx context.Context, tx pgx.Tx, t *target, user winnow.UserID, d winnow.Decision) (winnow.EventID, error) {
	return value[winnow.EventID](ctx, tx, `
		WITH event AS (
			INSERT INTO label_events (project_id, image_id, round_id, item_id, user_id, kind, verdict, class,
			                          client_key, duration_ms, supersedes, class_version, at)
			SELECT p.id, i.id, @round::bigint, @item::bigint, @user::bigint, 'label', @verdict::text, @class::int,
			       @key::text, @duration::bigint, i.label_event_id, p.class_version, @now::timestamptz
			FROM images i
			JOIN projects p ON p.id = i.project_id
			WHERE i.id = @image
			RETURNING id
		), item AS (
			UPDATE query_items
			SET verdict = @verdict, class = @class, decided_by = @user, decided_at = @now, label_event_id = event.id,
			    leased_by = NULL, lease_until = NULL
			FROM event
			WHERE query_items.id = @item
		), image AS (
			UPDATE images SET verdict = @verdict, class = @class, label_event_id = event.id
			FROM event
			WHERE images.id = @image
		)
		SELECT id FROM event`,
		pgx.NamedArgs{
			"image": t.item.ImageID, "round": t.item.RoundID, "item": t.item.ID, "user": user, "verdict": d.Verdict,
			"class": classOf(d), "key": d.ClientKey, "duration": d.DurationMS, "now": s.now(),
		})
}

// countDecision adds a new decision to the counts of the round, pool and member, and
// returns the round, locked from here on.
func (s *Store) countDecision(ctx context.Context, tx pgx.Tx, t *target, user winnow.UserID, verdict winnow.Verdict) (*winnow.Round, error) {
	var item, pool counts
	item.add(verdict, +1)
	if t.pool {
		pool = item
		pool.add(t.verdict, -1)
	}
	return s.count(ctx, tx, t, user, item, pool, `
		UPDATE members SET label_count = label_count + 1, last_label_at = @now
		WHERE project_id = @project AND user_id = @user`)
}

// count changes the counts of the item's round, of the pool and of the member, in
// one round trip: everybody who labels waits for these rows. The round must be
// labeling: it may have been closed since the item was read.
func (s *Store) count(ctx context.Context, tx pgx.Tx, t *target, user winnow.UserID, item, pool counts, memberSQL string) (*winnow.Round, error) {
	var (
		round *winnow.Round
		batch pgx.Batch
	)
	args := item.args()
	args["round"] = t.item.RoundID
	batch.Queue(`
		UPDATE rounds r
		SET known_count = known_count + @known, unknown_count = unknown_count + @unknown,
		    skipped_count = skipped_count + @skipped, unreadable_count = unreadable_count + @unreadable
		WHERE id = @round AND state = 'labeling'
		RETURNING `+roundColumns, args).Query(func(rows pgx.Rows) (err error) {
		round, err = pgx.CollectExactlyOneRow(rows, scanRound)
		if errors.Is(err, pgx.ErrNoRows) {
			return winnow.Errorf(winnow.CodeConflict, "Round %d has just been closed. What was saved before is kept.", t.number)
		}
		return err
	})
	if pool != (counts{}) {
		batch.Queue(addToPoolSQL, pool.ofProject(t.item.ProjectID))
	}
	batch.Queue(memberSQL, pgx.NamedArgs{"project": t.item.ProjectID, "user": user, "now": s.now()})
	err := tx.SendBatch(ctx, &batch).Close()
	return round, err
}
