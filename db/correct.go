package db

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

// Correct gives an image the label that an admin says it has, as a new event that
// supersedes the one before. It is the last word on the image's item: answers that were
// still asked for are not any more, its flags are resolved, and nobody's undo takes it
// back; another correction may. The counts and the precision of the item's round follow,
// also when that is closed; the k that was set then stays.
//
// CodeConflict for an image that has no label and whose item does not wait for an admin,
// and for a client key that stands for something else; CodeNotFound if the image is not
// the project's; CodeInvalid for a class that there is not.
func (s *Store) Correct(ctx context.Context, project winnow.ProjectID, by winnow.UserID, image winnow.ImageID, v winnow.Verdict, class int, clientKey string) (winnow.EventID, error) {
	if err := winnow.ValidateClientKey(clientKey); err != nil {
		return 0, err
	}
	event, err := s.correct(ctx, project, by, image, v, class, clientKey)
	if violates(err, "label_events_client_key") || errors.Is(err, errMoved) {
		event, err = s.correct(ctx, project, by, image, v, class, clientKey)
	}
	return event, wrap(err, "correct image %d", image)
}

func (s *Store) correct(ctx context.Context, project winnow.ProjectID, by winnow.UserID, image winnow.ImageID, v winnow.Verdict, class int, key string) (event winnow.EventID, err error) {
	err = s.tx(ctx, func(tx pgx.Tx) error {
		if err := lockEvents(ctx, tx, project); err != nil {
			return err
		}
		items, err := s.itemsOf(ctx, tx, project, image)
		if err != nil {
			return err
		}
		l, err := s.lockItems(ctx, tx, project, by, items, []string{key})
		if err != nil {
			return err
		}
		d := winnow.Decision{Verdict: v, Class: class, ClientKey: key}
		if err := d.Validate(l.classes); err != nil {
			return err
		}
		if v != winnow.VerdictKnown {
			class = -1
		}
		if e, ok := l.keys[key]; ok {
			if e.Kind == winnow.EventCorrection && e.ImageID == image && e.Verdict == v && e.Class == class {
				event = e.ID
				return nil
			}
			return winnow.Errorf(winnow.CodeConflict, "This client key belongs to something else that was said, which is kept.")
		}
		t, err := s.correctable(ctx, tx, l, project, image)
		if err != nil {
			return err
		}
		event = l.draw()
		c := &change{project: project, now: s.now(), anyState: true}
		c.insertEvent(winnow.LabelEvent{
			ID: event, ProjectID: project, ImageID: image, ItemID: t.item.ID, RoundID: t.item.RoundID, UserID: by,
			Kind: winnow.EventCorrection, Verdict: v, Class: class, ClientKey: key, Supersedes: t.label,
			ClassVersion: l.classVersion, At: c.now,
		}, event)
		c.label(t, event, v, class)
		if t.item.ID != 0 {
			c.correctItem(t, by, event)
			if err := s.resolveFlags(ctx, tx, by, t.item.ID); err != nil {
				return err
			}
		} else {
			queueNotice(&c.writes, winnow.Notice{Project: project})
		}
		_, err = s.write(ctx, tx, by, c)
		return err
	})
	return event, err
}

// itemsOf returns the item that a correction of the image decides, if there is one:
// that of the round being labeled, or that which the label comes from, or, of an
// image without a label, its last, if that was left to an admin.
func (s *Store) itemsOf(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, image winnow.ImageID) ([]winnow.ItemID, error) {
	return collect(ctx, tx, pgx.RowTo[winnow.ItemID], `
		SELECT q.id
		FROM images i
		JOIN query_items q ON q.image_id = i.id AND q.slice <> 'gold'
		JOIN rounds r ON r.id = q.round_id
		WHERE i.id = @image AND i.project_id = @project
		  AND (r.state = 'labeling' OR q.label_event_id = i.label_event_id
		       OR q.review AND i.verdict IS NULL
		          AND NOT EXISTS (SELECT FROM query_items n WHERE n.image_id = i.id AND n.slice <> 'gold' AND n.id > q.id))
		ORDER BY r.state = 'labeling' DESC, coalesce(q.label_event_id = i.label_event_id, false) DESC, r.number DESC
		LIMIT 1`,
		pgx.NamedArgs{"project": project, "image": image})
}

// correctable returns what a correction of the image changes, locked: its item, or, when
// the label is an import's, the image alone.
func (s *Store) correctable(ctx context.Context, tx pgx.Tx, l *locked, project winnow.ProjectID, image winnow.ImageID) (*target, error) {
	t := &target{}
	for _, of := range l.targets {
		t = of
	}
	if t.item.ID == 0 {
		var err error
		t, err = one(ctx, tx, func(row pgx.CollectableRow) (*target, error) {
			t.item.ImageID = image
			return t, row.Scan(&t.pool, (*zeronull.Text)(&t.verdict), &t.class, (*zeronull.Int8)(&t.label))
		}, `
			SELECT split = 'pool', verdict, coalesce(class, -1), label_event_id FROM images
			WHERE id = @image AND project_id = @project
			FOR NO KEY UPDATE`, pgx.NamedArgs{"image": image, "project": project})
		if err != nil {
			return nil, missing(err, "There is no such image in this project.")
		}
	}
	if t.verdict == "" && !t.item.Review {
		return nil, winnow.Errorf(winnow.CodeConflict, "This image has no label to correct: nobody has decided it yet.")
	}
	return t, nil
}

// correctItem makes the correction the verdict of the item, which asks for no more
// answers.
func (c *change) correctItem(t *target, by winnow.UserID, event winnow.EventID) {
	c.round = t.item.RoundID
	if t.item.Verdict != "" {
		c.agreement(t, -1)
		c.count(t, t.item.Verdict, -1)
	}
	t.event, t.item.Verdict, t.item.Class, t.item.DecidedBy, t.item.DecidedAt = event, t.verdict, t.class, by, c.now
	t.item.Review, t.item.Slots = false, t.item.Answers
	c.count(t, t.item.Verdict, +1)
	c.agreement(t, +1)
	c.writes.Queue(`DELETE FROM item_answers WHERE item_id = @item AND event_id IS NULL`, pgx.NamedArgs{"item": t.item.ID})
	c.saveItem(t)
}
