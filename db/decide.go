package db

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// maxBatch is how many decisions, or undos, one call takes.
const maxBatch = 200

// Decide records a person's answer to an item, in one transaction with everything
// that hangs on it. The answer that completes an item resolves it; the item that
// resolves last closes the round.
//
// The same client key again is the same event (Replayed), or CodeConflict if it says
// something else. An answer counts as long as the item has a slot that nobody else
// holds, lease or not. CodeConflict if it has none, was answered by this person or
// decided, or the round is not being labeled (what was sent is kept on record, and
// does not count); CodeNotFound if the item is not the project's; CodeInvalid for a
// class that there is not.
func (s *Store) Decide(ctx context.Context, project winnow.ProjectID, user winnow.UserID, d winnow.Decision) (winnow.DecideResult, error) {
	outcomes, round, err := s.DecideAll(ctx, project, user, []winnow.Decision{d})
	if err != nil {
		return winnow.DecideResult{}, err
	}
	result := winnow.DecideResult{Event: outcomes[0].Event, Replayed: outcomes[0].Replayed}
	if round != nil {
		result.Round = *round
	}
	return result, wrap(outcomes[0].Err, "decide item %d", d.ItemID)
}

// DecideAll records several answers of a person in one transaction; each has its own
// client key, and what becomes of it is as with Decide. The round is that of the answers
// which were taken, nil when none was.
func (s *Store) DecideAll(ctx context.Context, project winnow.ProjectID, user winnow.UserID, ds []winnow.Decision) ([]winnow.DecideOutcome, *winnow.Round, error) {
	if len(ds) > maxBatch {
		return nil, nil, winnow.Invalid("decisions", "At most %d answers are taken at once.", maxBatch)
	}
	outcomes, round, err := s.decideAll(ctx, project, user, ds)
	if violates(err, "label_events_client_key") || errors.Is(err, errMoved) {
		// The same request twice at once, or the round was closed at this moment: the other
		// transaction has committed, and a second look says what that means.
		outcomes, round, err = s.decideAll(ctx, project, user, ds)
	}
	return outcomes, round, wrap(err, "decide %d items for user %d", len(ds), user)
}

func (s *Store) decideAll(ctx context.Context, project winnow.ProjectID, user winnow.UserID, ds []winnow.Decision) (outcomes []winnow.DecideOutcome, round *winnow.Round, err error) {
	items, keys := make([]winnow.ItemID, len(ds)), make([]string, len(ds))
	for i, d := range ds {
		items[i], keys[i] = d.ItemID, d.ClientKey
		if err := winnow.ValidateClientKey(d.ClientKey); err != nil {
			keys[i] = "" // no event's; Validate refuses it, once the item is known to exist
		}
	}
	err = s.tx(ctx, func(tx pgx.Tx) error {
		l, err := s.lockItems(ctx, tx, project, user, items, keys)
		if err != nil {
			return err
		}
		c := &change{project: project, now: s.now()}
		outcomes = make([]winnow.DecideOutcome, len(ds))
		var in winnow.RoundID
		for i, d := range ds {
			outcomes[i] = s.decide(c, l, user, d)
			if t := l.targets[d.ItemID]; t != nil && outcomes[i].Err == nil {
				in = max(in, t.item.RoundID)
			}
		}
		if round, err = s.write(ctx, tx, user, c); err != nil {
			return err
		}
		if round == nil && in != 0 { // all were replayed, or gold
			if round, err = s.roundByID(ctx, tx, in); err != nil {
				return err
			}
		}
		return s.askedOf(ctx, tx, round, user)
	})
	return outcomes, round, err
}

// decide takes one answer, or says why not.
func (s *Store) decide(c *change, l *locked, user winnow.UserID, d winnow.Decision) winnow.DecideOutcome {
	t := l.targets[d.ItemID]
	if t == nil {
		return winnow.DecideOutcome{Err: winnow.Errorf(winnow.CodeNotFound, "There is no such item in this project.")}
	}
	if err := d.Validate(l.classes); err != nil {
		return winnow.DecideOutcome{Err: err}
	}
	if d.Verdict != winnow.VerdictKnown {
		d.Class = -1
	}
	if e, ok := l.keys[d.ClientKey]; ok {
		if e.Kind == winnow.EventLabel && e.ItemID == d.ItemID && e.Verdict == d.Verdict && e.Class == d.Class {
			return winnow.DecideOutcome{Event: e.ID, Replayed: true}
		}
		return winnow.DecideOutcome{Err: &winnow.Error{
			Code: winnow.CodeConflict, Field: "client_key",
			Message: "This client key belongs to another decision, which is kept. Send the new one under a key of its own.",
		}}
	}
	slot, late := t.place(user, l.now)
	if late != nil {
		c.recordLate(user, d)
		return winnow.DecideOutcome{Err: late}
	}
	id := l.draw()
	slot.user, slot.until, slot.event, slot.verdict, slot.class = user, time.Time{}, id, d.Verdict, d.Class
	t.item.Answers++
	resolved := c.answer(t, slot, d)
	event := winnow.LabelEvent{
		ID: id, ProjectID: c.project, ImageID: t.item.ImageID, ItemID: t.item.ID, RoundID: t.item.RoundID, UserID: user,
		Kind: winnow.EventLabel, Verdict: d.Verdict, Class: d.Class, ClientKey: d.ClientKey, DurationMS: d.DurationMS,
		ClassVersion: l.classVersion, At: c.now,
	}
	before := t.label
	if resolved != nil {
		event.Supersedes = before
	}
	stands := before
	if resolved != nil {
		stands = resolved.event
	}
	c.insertEvent(event, stands)
	c.writes.Queue(`
		UPDATE item_answers
		SET user_id = @user, lease_until = NULL, grid = false, event_id = @event, verdict = @verdict, class = @class,
		    duration_ms = @duration, answered_at = @now, gold_result = nullif(@gold, '')
		WHERE item_id = @item AND slot = @slot`,
		pgx.NamedArgs{
			"item": t.item.ID, "slot": slot.number, "user": user, "event": id, "verdict": d.Verdict,
			"class": classOf(d.Verdict, d.Class), "duration": d.DurationMS, "now": c.now, "gold": slot.gold,
		})
	c.saveItem(t)
	if resolved != nil {
		c.label(t, resolved.event, resolved.verdict, resolved.class)
	}
	l.keys[d.ClientKey] = event
	return winnow.DecideOutcome{Event: id}
}

// answer counts an answer that was put into its slot, and returns the one that the item
// resolves to, nil if it does not.
func (c *change) answer(t *target, given *slot, d winnow.Decision) *slot {
	of := c.tally(given.user)
	of.labels++
	of.activeMS += min(d.DurationMS, winnow.IdleLimit.Milliseconds())
	of.answered = true
	if t.gold() {
		given.gold = compareGold(t.verdict, t.class, given)
		of.addGold(given.gold, +1)
		return nil
	}
	of.sinceGold++
	c.round = t.item.RoundID
	if t.item.Answers < t.item.Slots {
		return nil
	}
	winner := resolve(t.slots)
	if winner == nil {
		t.item.Review = true
		return nil
	}
	t.event, t.item.Verdict, t.item.Class, t.item.DecidedBy, t.item.DecidedAt = winner.event, winner.verdict, winner.class, winner.user, c.now
	c.count(t, winner.verdict, +1)
	c.agreement(t, +1)
	return winner
}

// place finds the slot that an answer goes into: the person's own, or else the first
// that nobody holds. Without one it says why the answer cannot count.
func (t *target) place(user winnow.UserID, now time.Time) (*slot, error) {
	own := t.own(user)
	open := t.roundState == winnow.RoundLabeling
	if t.gold() {
		// The last item of a round closes it while a gold item may still be on somebody's
		// screen: that is answered all the same, so that it looks like any other.
		open = open || t.roundState == winnow.RoundClosed && t.newest
	}
	switch {
	case own != nil && own.event != 0:
		return nil, winnow.Errorf(winnow.CodeConflict, "You have decided this image already (%s), and that is kept. Undo it to change your mind.", own.verdict)
	case t.item.Verdict != "" && t.item.Answers > 1:
		return nil, winnow.Errorf(winnow.CodeConflict, "Others have decided this image already (%s), and that is kept.", t.item.Verdict)
	case t.item.Verdict != "":
		return nil, winnow.Errorf(winnow.CodeConflict, "%s has decided this image already (%s), and that is kept.", t.decider, t.item.Verdict)
	case !open:
		return nil, errNotLabeling(t)
	case own != nil:
		return own, nil
	}
	if i := slices.IndexFunc(t.slots, func(s slot) bool { return s.free(now) }); i >= 0 && !t.gold() {
		return &t.slots[i], nil
	}
	if t.item.Answers == t.item.Slots && !t.gold() {
		return nil, winnow.Errorf(winnow.CodeConflict, "Others have answered this image by now, as many as were asked.")
	}
	return nil, winnow.Errorf(winnow.CodeConflict, "Your lease on this image ran out, and somebody else has it now.")
}

func errNotLabeling(t *target) error {
	return winnow.Errorf(winnow.CodeConflict, "Round %d is %s, so its images take no labels now. What was saved is kept.", t.number, t.roundState)
}

// recordLate keeps an answer that does not count.
func (c *change) recordLate(user winnow.UserID, d winnow.Decision) {
	c.writes.Queue(`
		INSERT INTO late_decisions (user_id, client_key, item_id, verdict, class, duration_ms, at)
		VALUES (@user, @key, @item, @verdict, @class, @duration, @now)
		ON CONFLICT (user_id, client_key) DO NOTHING`,
		pgx.NamedArgs{
			"user": user, "key": d.ClientKey, "item": d.ItemID, "verdict": d.Verdict, "class": classOf(d.Verdict, d.Class),
			"duration": d.DurationMS, "now": c.now,
		})
}

// insertEvent appends an event, after which the image's label is what the event stands says.
func (c *change) insertEvent(e winnow.LabelEvent, stands winnow.EventID) {
	c.writes.Queue(`
		INSERT INTO label_events (id, project_id, image_id, round_id, item_id, user_id, kind, verdict, class, client_key,
		                          duration_ms, supersedes, stands, class_version, at)
		OVERRIDING SYSTEM VALUE
		VALUES (@id, @project, @image, nullif(@round::bigint, 0), nullif(@item::bigint, 0), @user, @kind, nullif(@verdict::text, ''),
		        @class, @key, @duration, nullif(@supersedes::bigint, 0), nullif(@stands::bigint, 0), @version, @now)`,
		pgx.NamedArgs{
			"id": e.ID, "project": e.ProjectID, "image": e.ImageID, "round": e.RoundID, "item": e.ItemID, "user": e.UserID,
			"kind": e.Kind, "verdict": e.Verdict, "class": classOf(e.Verdict, e.Class), "key": e.ClientKey,
			"duration": e.DurationMS, "supersedes": e.Supersedes, "stands": stands, "version": e.ClassVersion, "now": e.At,
		})
}

// write sends a change, closes the round when nothing is left of it, and returns the
// round, nil for a change that is of none. errMoved if the round is not being labeled
// any more, and the change needs that.
func (s *Store) write(ctx context.Context, tx pgx.Tx, by winnow.UserID, c *change) (*winnow.Round, error) {
	var round *winnow.Round
	if c.round != 0 {
		read := func(rows pgx.Rows) (err error) {
			round, err = pgx.CollectExactlyOneRow(rows, scanRound)
			if errors.Is(err, pgx.ErrNoRows) {
				return errMoved
			}
			return err
		}
		if c.items == (counts{}) && c.audit == (counts{}) {
			c.writes.Queue(`
				SELECT `+roundColumns+` FROM rounds r
				WHERE r.id = @round AND (r.state = 'labeling' OR @any_state)
				FOR SHARE`, c.ofRound()).Query(read)
		} else {
			c.writes.Queue(addToRoundSQL+` AND (state = 'labeling' OR @any_state) RETURNING `+roundColumns, c.ofRound()).Query(read)
		}
	}
	if c.pool != (counts{}) {
		c.writes.Queue(addToPoolSQL, c.pool.ofProject(c.project))
	}
	c.queueTallies()
	if c.round != 0 {
		queueNotice(&c.writes, winnow.Notice{Project: c.project, Round: c.round})
	}
	if c.writes.Len() > 0 {
		if err := tx.SendBatch(ctx, &c.writes).Close(); err != nil {
			return nil, err
		}
	}
	switch {
	case round == nil:
		return nil, nil
	case round.State != winnow.RoundLabeling:
		return round, s.savePrecision(ctx, tx, round)
	case round.Counts.Left() == 0:
		return round, s.close(ctx, tx, by, round)
	}
	return round, nil
}

// savePrecision brings the precision of a closed round to its counts. The k that came
// of it stays: a later round may have used it.
func (s *Store) savePrecision(ctx context.Context, tx pgx.Tx, r *winnow.Round) error {
	r.Metrics.Precision = nil
	if precision, ok := r.Counts.Precision(); ok {
		r.Metrics.Precision = &precision
	}
	_, err := tx.Exec(ctx, `UPDATE rounds SET metrics = @metrics WHERE id = @id`, pgx.NamedArgs{"id": r.ID, "metrics": r.Metrics})
	return err
}
