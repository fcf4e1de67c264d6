package db

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

// Flag asks an admin to look at an item that the person holds or has answered. Flagging
// it again replaces the note. CodeNotFound if the item is not the person's to flag.
func (s *Store) Flag(ctx context.Context, project winnow.ProjectID, user winnow.UserID, item winnow.ItemID, note string) error {
	note = strings.TrimSpace(note)
	switch {
	case utf8.RuneCountInString(note) > winnow.MaxFlagNote:
		return winnow.Invalid("note", "A note has at most %d characters.", winnow.MaxFlagNote)
	case !utf8.ValidString(note) || strings.ContainsRune(note, 0):
		return winnow.Invalid("note", "The note is not plain text.")
	}
	err := s.tx(ctx, func(tx pgx.Tx) error {
		args := pgx.NamedArgs{"project": project, "user": user, "item": item, "note": note, "now": s.now()}
		round, err := value[winnow.RoundID](ctx, tx, `
			SELECT q.round_id FROM query_items q
			WHERE q.id = @item AND q.project_id = @project
			  AND EXISTS (SELECT FROM item_answers s WHERE s.item_id = q.id AND s.user_id = @user)
			FOR NO KEY UPDATE OF q`, args)
		if err != nil {
			return missing(err, "There is no such image among yours.")
		}
		fresh, err := value[bool](ctx, tx, `
			INSERT INTO item_flags AS f (item_id, user_id, note, at) VALUES (@item, @user, @note, @now)
			ON CONFLICT (item_id, user_id) WHERE resolved_at IS NULL DO UPDATE SET note = excluded.note
			RETURNING xmax = 0`, args)
		if err != nil {
			return err
		}
		if fresh {
			if _, err := tx.Exec(ctx, `UPDATE query_items SET flagged = flagged + 1 WHERE id = @item`, args); err != nil {
				return err
			}
		}
		return notify(ctx, tx, winnow.Notice{Project: project, Round: round})
	})
	return wrap(err, "flag item %d", item)
}

// ResolveFlags says that an admin has looked at an item's flags. CodeNotFound if the
// item is not the project's.
func (s *Store) ResolveFlags(ctx context.Context, project winnow.ProjectID, by winnow.UserID, item winnow.ItemID) error {
	err := s.tx(ctx, func(tx pgx.Tx) error {
		round, err := value[winnow.RoundID](ctx, tx, `
			SELECT round_id FROM query_items WHERE id = @item AND project_id = @project FOR NO KEY UPDATE`,
			pgx.NamedArgs{"item": item, "project": project})
		if err != nil {
			return missing(err, "There is no such item in this project.")
		}
		if err := s.resolveFlags(ctx, tx, by, item); err != nil {
			return err
		}
		return notify(ctx, tx, winnow.Notice{Project: project, Round: round})
	})
	return wrap(err, "resolve flags of item %d", item)
}

// resolveFlags resolves the flags of a locked item.
func (s *Store) resolveFlags(ctx context.Context, tx pgx.Tx, by winnow.UserID, item winnow.ItemID) error {
	_, err := tx.Exec(ctx, `
		WITH resolved AS (
			UPDATE item_flags SET resolved_by = @by, resolved_at = @now WHERE item_id = @item AND resolved_at IS NULL
		)
		UPDATE query_items SET flagged = 0 WHERE id = @item AND flagged > 0`,
		pgx.NamedArgs{"item": item, "by": by, "now": s.now()})
	return err
}

// ReviewQueue lists the items that wait for an admin, in the order of their ids: those
// of the round being labeled whose answers have no winner, and those that somebody
// flagged.
func (s *Store) ReviewQueue(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]winnow.ReviewItem, string, error) {
	w, err := newWindow(page, 0)
	if err != nil {
		return nil, "", err
	}
	queue, err := collect(ctx, s.pool, func(row pgx.CollectableRow) (r winnow.ReviewItem, err error) {
		err = row.Scan(append(itemFields(&r.Item), &r.Round, (*zeronull.Text)(&r.Label), &r.LabelClass, &r.Corrections)...)
		return r, err
	}, `
		SELECT `+itemColumns+`, r.number, i.verdict, coalesce(i.class, -1),
		       (SELECT count(*) FROM label_events e WHERE e.image_id = q.image_id AND e.kind = 'correction')
		FROM query_items q
		JOIN rounds r ON r.id = q.round_id
		JOIN images i ON i.id = q.image_id
		WHERE q.project_id = @project AND (q.review OR q.flagged > 0) AND (r.state = 'labeling' OR q.flagged > 0)
		  AND q.id > @after
		ORDER BY q.id
		LIMIT @limit`,
		pgx.NamedArgs{"project": project, "after": w.after, "limit": w.limit + 1})
	if err != nil {
		return nil, "", wrap(err, "list items to review in project %d", project)
	}
	queue, next := cut(w, queue, func(r winnow.ReviewItem) int64 { return int64(r.ID) })
	ids := make([]winnow.ItemID, len(queue))
	at := make(map[winnow.ItemID]*winnow.ReviewItem, len(queue))
	for i := range queue {
		ids[i], at[queue[i].ID] = queue[i].ID, &queue[i]
	}
	answers, err := s.Answers(ctx, project, ids)
	if err != nil {
		return nil, "", err
	}
	for _, a := range answers {
		at[a.ItemID].AllAnswers = append(at[a.ItemID].AllAnswers, a)
	}
	flags, err := collect(ctx, s.pool, pgx.RowToStructByPos[winnow.Flag], `
		SELECT f.item_id, f.user_id, coalesce(nullif(u.name, ''), u.email), f.note, f.at
		FROM item_flags f
		JOIN users u ON u.id = f.user_id
		WHERE f.item_id = ANY(@items) AND f.resolved_at IS NULL
		ORDER BY f.id`, pgx.NamedArgs{"items": ids})
	for _, f := range flags {
		at[f.ItemID].Flags = append(at[f.ItemID].Flags, f)
	}
	return queue, next, wrap(err, "list flags in project %d", project)
}

// Answers lists the answers to items that stand, those of an item in the order in which
// they were given.
func (s *Store) Answers(ctx context.Context, project winnow.ProjectID, items []winnow.ItemID) ([]winnow.Answer, error) {
	answers, err := collect(ctx, s.pool, pgx.RowToStructByPos[winnow.Answer], `
		SELECT a.item_id, a.event_id, a.user_id, coalesce(nullif(u.name, ''), u.email), a.verdict, coalesce(a.class, -1),
		       a.duration_ms, a.answered_at
		FROM item_answers a
		JOIN users u ON u.id = a.user_id
		WHERE a.item_id = ANY(@items) AND a.project_id = @project AND a.event_id IS NOT NULL
		ORDER BY a.item_id, a.event_id`, pgx.NamedArgs{"items": items, "project": project})
	return answers, wrap(err, "list answers to %d items", len(items))
}

// ReviewCount is how many items wait for an admin, at most limit.
func (s *Store) ReviewCount(ctx context.Context, project winnow.ProjectID, limit int) (int, error) {
	n, err := value[int](ctx, s.pool, `
		SELECT count(*) FROM (
			SELECT FROM query_items q
			JOIN rounds r ON r.id = q.round_id
			WHERE q.project_id = @project AND (q.review OR q.flagged > 0) AND (r.state = 'labeling' OR q.flagged > 0)
			LIMIT @limit
		) q`, pgx.NamedArgs{"project": project, "limit": limit})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return n, wrap(err, "count items to review in project %d", project)
}
