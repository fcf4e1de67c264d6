package db

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

// target is an item that is being decided, undone or corrected, locked together with
// its image and its slots. Changes are made to it first and then written.
type target struct {
	item       winnow.Item
	event      winnow.EventID // whose verdict the item resolved to, 0 while it is open
	decider    string         // who gave it
	corrected  bool           // by an admin: it stands
	roundState winnow.RoundState
	number     int  // of the round
	newest     bool // round of the project
	lease      time.Duration
	slots      []slot // of a gold item only the person's own

	pool    bool           // the image counts in the pool
	verdict winnow.Verdict // of the image: an import may have labeled it while the item was open
	class   int
	label   winnow.EventID // the image's
}

// locked is what a change of items needs to know, read when all of it was locked.
type locked struct {
	targets      map[winnow.ItemID]*target
	keys         map[string]winnow.LabelEvent // events of the person under the client keys
	ids          []winnow.EventID             // for the events to come
	now          time.Time                    // by the clock of the leases
	classes      int
	classVersion int
}

// lockItems locks the items of a project, and reads on the way what the person said
// before under the client keys. Event ids are drawn when the images are locked, so
// that the events of an image are in the order of their ids.
func (s *Store) lockItems(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, user winnow.UserID, items []winnow.ItemID, keys []string) (*locked, error) {
	l := &locked{targets: make(map[winnow.ItemID]*target), keys: make(map[string]winnow.LabelEvent)}
	args := pgx.NamedArgs{
		"project": project, "user": user, "items": items, "keys": keys, "n": len(keys), "lease_now": s.leaseNow(),
	}
	var batch pgx.Batch
	batch.Queue(`
		SELECT q.id, q.round_id, q.image_id, q.slice, q.slots, q.answered, q.review, q.verdict, coalesce(q.class, -1),
		       q.decided_by, q.decided_at, q.label_event_id, coalesce(nullif(u.name, ''), u.email, ''),
		       coalesce((SELECT e.kind = 'correction' FROM label_events e WHERE e.id = q.label_event_id), false),
		       r.state, r.number, NOT EXISTS (SELECT FROM rounds n WHERE n.project_id = r.project_id AND n.number > r.number),
		       (r.settings ->> 'lease_seconds')::int
		FROM query_items q
		JOIN rounds r ON r.id = q.round_id
		LEFT JOIN users u ON u.id = q.decided_by
		WHERE q.id = ANY(@items) AND q.project_id = @project
		ORDER BY q.id
		FOR NO KEY UPDATE OF q`, args).Query(forEach(func(row pgx.CollectableRow) error {
		t := &target{}
		var seconds int
		err := row.Scan(&t.item.ID, &t.item.RoundID, &t.item.ImageID, &t.item.Slice, &t.item.Slots, &t.item.Answers,
			&t.item.Review, (*zeronull.Text)(&t.item.Verdict), &t.item.Class, (*zeronull.Int8)(&t.item.DecidedBy),
			(*zeronull.Timestamptz)(&t.item.DecidedAt), (*zeronull.Int8)(&t.event), &t.decider, &t.corrected, &t.roundState, &t.number, &t.newest, &seconds)
		t.item.ProjectID, t.lease = project, time.Duration(seconds)*time.Second
		l.targets[t.item.ID] = t
		return err
	}))
	batch.Queue(`
		SELECT i.id, i.split = 'pool', i.verdict, coalesce(i.class, -1), i.label_event_id
		FROM images i
		WHERE i.id IN (SELECT q.image_id FROM query_items q WHERE q.id = ANY(@items) AND q.project_id = @project)
		ORDER BY i.sha256
		FOR NO KEY UPDATE OF i`, args).Query(forEach(func(row pgx.CollectableRow) error {
		var (
			image winnow.ImageID
			from  target
		)
		err := row.Scan(&image, &from.pool, (*zeronull.Text)(&from.verdict), &from.class, (*zeronull.Int8)(&from.label))
		for _, t := range l.targets {
			if t.item.ImageID == image {
				t.pool, t.verdict, t.class, t.label = from.pool, from.verdict, from.class, from.label
			}
		}
		return err
	}))
	batch.Queue(`
		SELECT `+slotColumns+`
		FROM item_answers s
		WHERE s.item_id = ANY(@items) AND s.project_id = @project AND (NOT s.gold OR s.user_id = @user)
		ORDER BY s.item_id, s.slot
		FOR NO KEY UPDATE`, args).Query(forEach(func(row pgx.CollectableRow) error {
		slot, err := scanSlot(row)
		if t := l.targets[slot.item]; t != nil {
			t.slots = append(t.slots, slot)
		}
		return err
	}))
	batch.Queue(`
		SELECT id, project_id, image_id, item_id, kind, verdict, coalesce(class, -1), client_key
		FROM label_events
		WHERE user_id = @user AND client_key = ANY(@keys)`, args).Query(forEach(func(row pgx.CollectableRow) error {
		var e winnow.LabelEvent
		err := row.Scan(&e.ID, &e.ProjectID, &e.ImageID, (*zeronull.Int8)(&e.ItemID), &e.Kind, (*zeronull.Text)(&e.Verdict), &e.Class, &e.ClientKey)
		l.keys[e.ClientKey] = e
		return err
	}))
	batch.Queue(`SELECT nextval('label_events_id_seq') FROM generate_series(1, @n)`, args).Query(forEach(func(row pgx.CollectableRow) error {
		var id winnow.EventID
		err := row.Scan(&id)
		l.ids = append(l.ids, id)
		return err
	}))
	batch.Queue(`
		SELECT p.class_version, (SELECT count(*) FROM classes c WHERE c.project_id = p.id), `+leaseClock+`
		FROM projects p WHERE p.id = @project`, args).Query(forEach(func(row pgx.CollectableRow) error {
		return row.Scan(&l.classVersion, &l.classes, &l.now)
	}))
	return l, tx.SendBatch(ctx, &batch).Close()
}

// forEach calls fn for each row of a batched query.
func forEach(fn func(pgx.CollectableRow) error) func(pgx.Rows) error {
	return func(rows pgx.Rows) error {
		defer rows.Close()
		for rows.Next() {
			if err := fn(rows); err != nil {
				return err
			}
		}
		return rows.Err()
	}
}

// draw takes an id for an event.
func (l *locked) draw() winnow.EventID {
	id := l.ids[0]
	l.ids = l.ids[1:]
	return id
}

// own is the slot that the person holds or has answered, nil if there is none.
func (t *target) own(user winnow.UserID) *slot {
	for i := range t.slots {
		if t.slots[i].user == user {
			return &t.slots[i]
		}
	}
	return nil
}

func (t *target) gold() bool { return t.item.Slice == winnow.SliceGold }

// shared reports whether the item tells how far people agree.
func (t *target) shared() bool {
	return !t.gold() && t.item.Verdict != "" && t.item.Answers > 1
}

// errMoved says that the round was closed or reopened after its items were read.
var errMoved = errors.New("the round has moved")

// change collects what a transaction does to items, and writes it in one round trip.
// The rows that everybody who labels waits for come last.
type change struct {
	writes     pgx.Batch
	project    winnow.ProjectID
	round      winnow.RoundID // that the counts are of; 0 for none
	anyState   bool           // the round may be closed
	items      counts
	audit      counts
	pool       counts
	annotators map[winnow.UserID]*tally
	now        time.Time
}

// count adds n to the counts for an item of a verdict that resolves, or opens again.
func (c *change) count(t *target, v winnow.Verdict, n int) {
	c.items.add(v, n)
	if t.item.Slice == winnow.SliceAudit {
		c.audit.add(v, n)
	}
}

// label makes an event, with what it says, the label of the target's image; an event of 0 takes
// its label away.
func (c *change) label(t *target, event winnow.EventID, v winnow.Verdict, class int) {
	if t.pool {
		c.pool.add(t.verdict, -1)
		c.pool.add(v, +1)
	}
	t.label, t.verdict, t.class = event, v, class
	c.writes.Queue(`UPDATE images SET verdict = @verdict, class = @class, label_event_id = @event WHERE id = @id`,
		pgx.NamedArgs{
			"id": t.item.ImageID, "verdict": zeronull.Text(v), "class": classOf(v, class), "event": zeronull.Int8(event),
		})
}

// saveItem writes where the target's item stands.
func (c *change) saveItem(t *target) {
	c.writes.Queue(`
		UPDATE query_items
		SET slots = @slots, answered = @answered, review = @review, verdict = @verdict, class = @class, decided_by = @by,
		    decided_at = @at, label_event_id = @event
		WHERE id = @id`,
		pgx.NamedArgs{
			"id": t.item.ID, "slots": t.item.Slots, "answered": t.item.Answers, "review": t.item.Review,
			"verdict": zeronull.Text(t.item.Verdict), "class": classOf(t.item.Verdict, t.item.Class),
			"by": zeronull.Int8(t.item.DecidedBy), "at": zeronull.Timestamptz(t.item.DecidedAt), "event": zeronull.Int8(t.event),
		})
}

// agreement adds n to the answers that are compared with what the item resolved to.
func (c *change) agreement(t *target, n int) {
	if !t.shared() {
		return
	}
	for i := range t.slots {
		s := &t.slots[i]
		if s.event == 0 {
			continue
		}
		of := c.tally(s.user)
		of.shared += n
		if s.says(t.item.Verdict, t.item.Class) {
			of.agreed += n
		}
	}
}

// classOf is a class as it is stored: null unless known.
func classOf(v winnow.Verdict, class int) *int {
	if v != winnow.VerdictKnown {
		return nil
	}
	return &class
}
