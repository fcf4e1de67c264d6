package db

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// maxGold is how many gold images a round mixes in.
const maxGold = 500

// SetGold marks an image as gold, or takes the mark back: its label is settled, and the
// rounds that open from now on mix it in to see how well people label. CodeConflict for
// an image whose label is neither a known class nor unknown.
func (s *Store) SetGold(ctx context.Context, project winnow.ProjectID, by winnow.UserID, image winnow.ImageID, on bool) error {
	err := s.tx(ctx, func(tx pgx.Tx) error {
		verdict, err := value[*winnow.Verdict](ctx, tx, `SELECT verdict FROM images WHERE id = @image AND project_id = @project FOR NO KEY UPDATE`,
			pgx.NamedArgs{"image": image, "project": project})
		if err != nil {
			return missing(err, "There is no such image in this project.")
		}
		if on && (verdict == nil || *verdict != winnow.VerdictKnown && *verdict != winnow.VerdictUnknown) {
			return winnow.Errorf(winnow.CodeConflict, "Only an image that is labeled, as a class or as unknown, can be gold.")
		}
		sql := `DELETE FROM gold_images WHERE image_id = @image`
		if on {
			sql = `
				INSERT INTO gold_images (image_id, project_id, set_by, set_at) VALUES (@image, @project, @by, @now)
				ON CONFLICT (image_id) DO NOTHING`
		}
		tag, err := tx.Exec(ctx, sql, pgx.NamedArgs{"image": image, "project": project, "by": by, "now": s.now()})
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
		return s.audit(ctx, tx, by, project, "image.gold", detail{"image": image, "gold": on})
	})
	return wrap(err, "set gold of image %d", image)
}

// IsGold reports whether an image of a project is marked as gold.
func (s *Store) IsGold(ctx context.Context, project winnow.ProjectID, image winnow.ImageID) (bool, error) {
	gold, err := value[bool](ctx, s.pool, `SELECT EXISTS (SELECT FROM gold_images WHERE image_id = @image AND project_id = @project)`,
		pgx.NamedArgs{"image": image, "project": project})
	return gold, wrap(err, "read gold of image %d", image)
}

// GoldImages lists the gold images of a project in the order of their ids.
func (s *Store) GoldImages(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]winnow.Image, string, error) {
	w, err := newWindow(page, 0)
	if err != nil {
		return nil, "", err
	}
	images, err := collect(ctx, s.pool, scanImage, `
		SELECT `+imageColumns+`
		FROM gold_images g
		JOIN images i ON i.id = g.image_id
		WHERE g.project_id = @project AND g.image_id > @after
		ORDER BY g.image_id
		LIMIT @limit`,
		pgx.NamedArgs{"project": project, "after": w.after, "limit": w.limit + 1})
	if err != nil {
		return nil, "", wrap(err, "list gold images of project %d", project)
	}
	images, next := cut(w, images, func(i winnow.Image) int64 { return int64(i.ID) })
	return images, next, nil
}

// mixGold puts gold items at random places among a round's items, so that neither an
// item's id nor its place tells which it is. Their ranks come after all others.
func mixGold(ctx context.Context, tx pgx.Tx, round *winnow.Round, items []winnow.Item) ([]winnow.Item, error) {
	if round.Settings.GoldEvery == 0 || len(items) == 0 {
		return items, nil
	}
	gold, err := collect(ctx, tx, pgx.RowTo[winnow.ImageID], `
		SELECT g.image_id FROM gold_images g
		JOIN images i ON i.id = g.image_id
		WHERE g.project_id = @project AND i.verdict IN ('known', 'unknown')
		ORDER BY md5(g.image_id || ' ' || @seed::bigint)
		LIMIT @limit`,
		pgx.NamedArgs{"project": round.ProjectID, "seed": round.Seed, "limit": maxGold})
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(uint64(round.Seed), uint64(round.ID)))
	rank := slices.MaxFunc(items, func(a, b winnow.Item) int { return cmp.Compare(a.Rank, b.Rank) }).Rank
	for i, image := range gold {
		item := winnow.Item{ImageID: image, Rank: rank + 1 + i, Slice: winnow.SliceGold}
		items = slices.Insert(items, r.IntN(len(items)+1), item)
	}
	return items, nil
}

// goldDue reports whether a person's next claim is to have a gold item in it.
func (s *Store) goldDue(ctx context.Context, round *winnow.Round, user winnow.UserID) (bool, error) {
	if round.Counts.Gold == 0 {
		return false, nil
	}
	due, err := value[bool](ctx, s.pool, `SELECT since_gold >= @every FROM annotators WHERE project_id = @project AND user_id = @user`,
		pgx.NamedArgs{"project": round.ProjectID, "user": user, "every": round.Settings.GoldEvery})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return due, err
}

// claimGold leases a gold item that the person has not seen in this round, at the place
// of one of those that they have just been given. There may be none.
func (s *Store) claimGold(ctx context.Context, round *winnow.Round, user winnow.UserID, among []winnow.Item) ([]winnow.Item, error) {
	rank := 0
	if len(among) > 0 {
		rank = among[rand.IntN(len(among))].Rank
	}
	args := s.leaseArgs(round, user)
	args["project"], args["every"], args["rank"] = round.ProjectID, round.Settings.GoldEvery, rank
	gold, err := collect(ctx, s.pool, scanItem, `
		WITH due AS (
			UPDATE annotators SET since_gold = since_gold - @every
			WHERE project_id = @project AND user_id = @user AND since_gold >= @every
			RETURNING user_id
		), picked AS (
			SELECT q.id FROM query_items q
			WHERE q.round_id = @round AND q.slice = 'gold'
			  AND NOT EXISTS (SELECT FROM item_answers o WHERE o.item_id = q.id AND o.user_id = @user)
			ORDER BY md5(q.id || ' ' || @user::bigint)
			LIMIT 1
		), a AS (
			INSERT INTO item_answers (item_id, slot, project_id, round_id, rank, gold, user_id, lease_until)
			SELECT picked.id, due.user_id, @project, @round, @rank, true, due.user_id,
			       `+leaseClock+` + make_interval(secs => @seconds)
			FROM picked, due
			ON CONFLICT DO NOTHING
			RETURNING *
		)
		SELECT `+ownItemColumns+`
		FROM a
		JOIN query_items q ON q.id = a.item_id
		JOIN images i ON i.id = q.image_id`, args)
	return gold, err
}

// byPlace sorts items as a claim gives them out.
func byPlace(items []winnow.Item) {
	slices.SortFunc(items, func(a, b winnow.Item) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.ID, b.ID))
	})
}

// askedOf reads how many gold items a person was given in a round, and answered: to
// them these count as items of the round, or the counts would tell which they are.
func (s *Store) askedOf(ctx context.Context, q querier, round *winnow.Round, user winnow.UserID) error {
	if round == nil || round.Counts.Gold == 0 {
		return nil
	}
	_, err := one(ctx, q, func(row pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, row.Scan(&round.GoldGiven, &round.GoldAnswered)
	}, `SELECT count(*), count(event_id) FROM item_answers WHERE gold AND round_id = @round AND user_id = @user`,
		pgx.NamedArgs{"round": round.ID, "user": user})
	return err
}
