package db

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

// Undo takes back the person's standing answer to an item, or their last one when
// item is 0, in the newest round that was labeled, and leases the item to them again.
// An item that had been resolved is open again, and its image has the label that it had
// before. A closed round reopens, if no other has started since (CodeConflict otherwise,
// when there is nothing to undo, and when an admin has corrected the label). The same
// client key again undoes nothing more.
func (s *Store) Undo(ctx context.Context, project winnow.ProjectID, user winnow.UserID, item winnow.ItemID, clientKey string) (*winnow.Item, error) {
	items, err := s.UndoAll(ctx, project, user, []winnow.UndoRequest{{ItemID: item, ClientKey: clientKey}})
	if err != nil {
		return nil, err
	}
	return &items[0], nil
}

// UndoAll takes several answers back in one transaction, all or none; each has its own
// client key. Errors as Undo.
func (s *Store) UndoAll(ctx context.Context, project winnow.ProjectID, user winnow.UserID, undos []winnow.UndoRequest) ([]winnow.Item, error) {
	if len(undos) > maxBatch {
		return nil, winnow.Invalid("undos", "At most %d answers are taken back at once.", maxBatch)
	}
	for _, u := range undos {
		if err := winnow.ValidateClientKey(u.ClientKey); err != nil {
			return nil, err
		}
	}
	items, err := s.undoAll(ctx, project, user, undos)
	if violates(err, "label_events_client_key") || errors.Is(err, errMoved) {
		// The same request twice at once, or the round was closed at this moment: the other
		// transaction has committed.
		items, err = s.undoAll(ctx, project, user, undos)
	}
	return items, wrap(err, "undo %d answers of user %d in project %d", len(undos), user, project)
}

func (s *Store) undoAll(ctx context.Context, project winnow.ProjectID, user winnow.UserID, undos []winnow.UndoRequest) (reopened []winnow.Item, err error) {
	items, keys := make([]winnow.ItemID, len(undos)), make([]string, len(undos))
	err = s.tx(ctx, func(tx pgx.Tx) error {
		for i, u := range undos {
			items[i], keys[i] = u.ItemID, u.ClientKey
			if u.ItemID != 0 {
				continue
			}
			var err error
			if items[i], err = s.lastAnswer(ctx, tx, project, user, u.ClientKey); err != nil {
				return err
			}
		}
		l, err := s.lockItems(ctx, tx, project, user, items, keys)
		if err != nil {
			return err
		}
		u := undo{change: &change{project: project, now: s.now()}, locked: l, user: user}
		for i := range undos {
			if err := u.add(items[i], keys[i]); err != nil {
				return err
			}
		}
		if err := s.writeUndo(ctx, tx, &u); err != nil {
			return err
		}
		reopened, err = s.ownItems(ctx, tx, user, items)
		return err
	})
	return reopened, err
}

// lastAnswer finds the answer that an undo without an item means: the one that it took
// back when it came before, or else the person's last that can be undone.
func (s *Store) lastAnswer(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, user winnow.UserID, key string) (winnow.ItemID, error) {
	id, err := value[winnow.ItemID](ctx, tx, `
		(SELECT item_id FROM label_events WHERE user_id = @user AND client_key = @key AND project_id = @project AND item_id IS NOT NULL)
		UNION ALL
		(SELECT a.item_id
		 FROM (`+lastAnswersSQL+`100) a
		 JOIN query_items q ON q.id = a.item_id
		 LEFT JOIN label_events e ON e.id = q.label_event_id
		 WHERE a.round_id = (`+newestLabeledSQL+`) AND e.kind IS DISTINCT FROM 'correction'
		 ORDER BY a.event_id DESC
		 LIMIT 1)
		LIMIT 1`,
		pgx.NamedArgs{"project": project, "user": user, "key": key})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, errNothingToUndo()
	}
	return id, err
}

func errNothingToUndo() error {
	return winnow.Errorf(winnow.CodeConflict, "You have no decision left to undo in this round.")
}

// undo is a change that takes answers of a person back.
type undo struct {
	*change
	*locked
	user   winnow.UserID
	number int // of the round
	undone []undone
}

// undone is an answer that is taken back.
type undone struct {
	*target
	slot  *slot
	event winnow.EventID // of the answer
	by    winnow.EventID // of the undo
	key   string
	// What resolved the item, 0 if nothing had.
	resolving winnow.EventID
}

// add checks that an answer can be taken back, and does so in the target. An undo
// that came before adds nothing.
func (u *undo) add(item winnow.ItemID, key string) error {
	if e, ok := u.keys[key]; ok {
		if e.Kind == winnow.EventUndo && e.ItemID == item {
			return nil
		}
		return winnow.Invalid("client_key", "This client key belongs to a decision.")
	}
	t := u.targets[item]
	if t == nil {
		return errNothingToUndo()
	}
	slot := t.own(u.user)
	switch {
	case slot == nil || slot.event == 0:
		return errNothingToUndo()
	case t.corrected:
		return winnow.Errorf(winnow.CodeConflict, "An admin has decided this image since, so your answer stays as it was.")
	case t.gold() && !t.newest: // of other items, the round that would have to reopen says so
		return winnow.Errorf(winnow.CodeConflict, "A later round has started since, so the labels of round %d stand.", t.number)
	}
	d := undone{target: t, slot: slot, event: slot.event, by: u.draw(), key: key}
	of := u.tally(u.user)
	of.labels--
	if t.gold() {
		of.addGold(slot.gold, -1)
	} else {
		of.sinceGold--
		u.round, u.number = t.item.RoundID, t.number
	}
	if t.item.Verdict != "" {
		d.resolving = resolvedBy(t.slots)
		u.agreement(t, -1)
		u.count(t, t.item.Verdict, -1)
		t.event, t.item.Verdict, t.item.Class, t.item.DecidedBy = 0, "", -1, 0
		t.item.DecidedAt = time.Time{}
	}
	t.item.Review = false
	t.item.Answers--
	slot.event, slot.verdict, slot.class, slot.gold = 0, "", -1, ""
	slot.until = u.locked.now.Add(t.lease)
	u.keys[key] = winnow.LabelEvent{Kind: winnow.EventUndo, ItemID: item}
	u.undone = append(u.undone, d)
	return nil
}

// writeUndo writes what was taken back: a new event each, the slot leased to the
// person, and, where the item had resolved, the label that the image had before.
func (s *Store) writeUndo(ctx context.Context, tx pgx.Tx, u *undo) error {
	before, err := labelsBefore(ctx, tx, u.undone)
	if err != nil {
		return err
	}
	if u.round != 0 {
		round, err := lockRound(ctx, tx, u.project, u.number)
		if err != nil {
			return err
		}
		if round.State != winnow.RoundLabeling {
			if err := s.reopen(ctx, tx, round); err != nil {
				return err
			}
		}
	}
	for _, d := range u.undone {
		t := d.target
		stands := t.label
		if d.resolving != 0 {
			stands = before[t.item.ImageID].event
		}
		u.insertEvent(winnow.LabelEvent{
			ID: d.by, ProjectID: u.project, ImageID: t.item.ImageID, ItemID: t.item.ID, RoundID: t.item.RoundID, UserID: u.user,
			Kind: winnow.EventUndo, ClientKey: d.key, Supersedes: d.event, ClassVersion: u.classVersion, At: u.change.now,
		}, stands)
		u.writes.Queue(`
			UPDATE item_answers
			SET lease_until = @until, event_id = NULL, verdict = NULL, class = NULL, duration_ms = 0, answered_at = NULL, gold_result = NULL
			WHERE item_id = @item AND slot = @slot`,
			pgx.NamedArgs{"item": t.item.ID, "slot": d.slot.number, "until": d.slot.until})
		u.saveItem(t)
		if d.resolving != 0 {
			b := before[t.item.ImageID]
			u.label(t, b.event, b.verdict, b.class)
		}
	}
	_, err = s.write(ctx, tx, u.user, u.change)
	return err
}

// label is the label of an image: the event it comes from, and what that says.
type label struct {
	event   winnow.EventID // 0 for none
	verdict winnow.Verdict
	class   int
}

// labelsBefore finds the labels that images had before their items resolved: none, or
// those of an import that came while the items were open.
func labelsBefore(ctx context.Context, tx pgx.Tx, undone []undone) (map[winnow.ImageID]label, error) {
	var (
		images []winnow.ImageID
		events []winnow.EventID
	)
	for _, d := range undone {
		if d.resolving != 0 {
			images, events = append(images, d.target.item.ImageID), append(events, d.resolving)
		}
	}
	before := make(map[winnow.ImageID]label, len(images))
	if len(images) == 0 {
		return before, nil
	}
	rows, err := tx.Query(ctx, `
		SELECT n.image_id, l.id, l.verdict, coalesce(l.class, -1)
		FROM unnest(@images::bigint[], @events::bigint[]) AS n (image_id, event_id)
		LEFT JOIN LATERAL (
			SELECT e.stands FROM label_events e
			WHERE e.image_id = n.image_id AND e.id < n.event_id
			ORDER BY e.id DESC
			LIMIT 1
		) e ON true
		LEFT JOIN label_events l ON l.id = e.stands`,
		pgx.NamedArgs{"images": images, "events": events})
	if err != nil {
		return nil, err
	}
	var (
		image winnow.ImageID
		b     label
	)
	_, err = pgx.ForEachRow(rows, []any{&image, (*zeronull.Int8)(&b.event), (*zeronull.Text)(&b.verdict), &b.class}, func() error {
		before[image] = b
		return nil
	})
	return before, err
}

// ownItems returns items as the person sees them, in the order asked for. An undo that
// came before may be of an item that is somebody else's by now.
func (s *Store) ownItems(ctx context.Context, tx pgx.Tx, user winnow.UserID, ids []winnow.ItemID) ([]winnow.Item, error) {
	items, err := collect(ctx, tx, scanItem, `
		SELECT `+ownItemColumns+`
		FROM query_items q
		JOIN images i ON i.id = q.image_id
		LEFT JOIN item_answers a ON a.item_id = q.id AND a.user_id = @user
		WHERE q.id = ANY(@items)`,
		pgx.NamedArgs{"items": ids, "user": user})
	slices.SortFunc(items, func(a, b winnow.Item) int {
		return slices.Index(ids, a.ID) - slices.Index(ids, b.ID)
	})
	return items, err
}
