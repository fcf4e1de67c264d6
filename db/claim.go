package db

import (
	"context"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// Leases are set and judged by one clock, the database's, so that web processes whose
// clocks differ agree on who holds what. leaseClock is that clock in SQL; @lease_now is
// null but for tests, which move it.
const leaseClock = `coalesce(@lease_now::timestamptz, now())`

// leaseNow is the argument of leaseClock.
func (s *Store) leaseNow() *time.Time {
	if s.opts.LeaseNow == nil {
		return nil
	}
	now := s.opts.LeaseNow().UTC().Truncate(time.Microsecond)
	return &now
}

// maxClaim is how many items one person may hold at once.
const maxClaim = 100

// Claim leases up to n items to a person, those that they hold already first, so
// that a reload shows the same images, then free ones by rank: of an item that asks
// for several answers, a slot, unless they hold or have answered it. It returns the
// project's newest round, nil before the first; there are items only while that is
// being labeled.
func (s *Store) Claim(ctx context.Context, project winnow.ProjectID, user winnow.UserID, n int) (*winnow.Round, []winnow.Item, error) {
	round, items, err := s.claim(ctx, project, user, n)
	if violates(err, "item_answers_once") {
		// Another claim of the same person was quicker: what it took is theirs now.
		round, items, err = s.claim(ctx, project, user, n)
	}
	return round, items, wrap(err, "claim items of project %d for user %d", project, user)
}

func (s *Store) claim(ctx context.Context, project winnow.ProjectID, user winnow.UserID, n int) (*winnow.Round, []winnow.Item, error) {
	round, err := latestRound(ctx, s.pool, project)
	if err != nil || round == nil || round.State != winnow.RoundLabeling {
		return round, nil, err
	}
	n = min(max(n, 0), maxClaim)
	args := s.leaseArgs(round, user)
	args["grid"] = false
	items, err := collect(ctx, s.pool, scanItem, leaseSQL(ownSlotsSQL, n), args)
	if err != nil {
		return nil, nil, err
	}
	if len(items) < n {
		free, err := s.claimFree(ctx, round, user, n-len(items), args)
		if err != nil {
			return nil, nil, err
		}
		items = append(items, free...)
	}
	return round, items, s.askedOf(ctx, s.pool, round, user)
}

// claimFree leases up to n items that the person did not hold. When a gold item is due
// it takes the place of one of them.
func (s *Store) claimFree(ctx context.Context, round *winnow.Round, user winnow.UserID, n int, args pgx.NamedArgs) ([]winnow.Item, error) {
	due, err := s.goldDue(ctx, round, user)
	if err != nil {
		return nil, err
	}
	if due {
		n--
	}
	items, err := collect(ctx, s.pool, scanItem, leaseSQL(freeSlotsSQL, n), args)
	if err != nil || !due {
		return items, err
	}
	gold, err := s.claimGold(ctx, round, user, items)
	items = append(items, gold...)
	byPlace(items)
	return items, err
}

func (s *Store) leaseArgs(round *winnow.Round, user winnow.UserID) pgx.NamedArgs {
	return pgx.NamedArgs{
		"round": round.ID, "user": user, "lease_now": s.leaseNow(), "seconds": round.Settings.LeaseSeconds,
	}
}

// That anybody may have a slot, s, or l of the same item.
const (
	slotIsFree  = `s.event_id IS NULL AND (s.user_id IS NULL OR s.lease_until <= ` + leaseClock + `)`
	lowerIsFree = `l.event_id IS NULL AND (l.user_id IS NULL OR l.lease_until <= ` + leaseClock + `)`
)

// ownSlotsSQL selects what a person holds, or held when nobody else has come since.
// What they hold for a page of like images stays there while that lease runs.
const ownSlotsSQL = `
	SELECT s.item_id, s.slot FROM item_answers s
	WHERE s.user_id = @user AND s.round_id = @round AND s.event_id IS NULL
	  AND (NOT s.grid OR s.lease_until <= ` + leaseClock + `)
	ORDER BY s.rank, s.item_id`

// freeSlotsSQL selects the lowest free slot of each item that the person neither holds
// nor has answered.
const freeSlotsSQL = `
	SELECT s.item_id, s.slot FROM item_answers s
	WHERE s.round_id = @round AND NOT s.gold AND ` + slotIsFree + `
	  AND NOT EXISTS (SELECT FROM item_answers o WHERE o.item_id = s.item_id AND o.user_id = @user)
	  AND NOT EXISTS (SELECT FROM item_answers l WHERE l.item_id = s.item_id AND l.slot < s.slot AND ` + lowerIsFree + `)
	ORDER BY s.rank, s.slot`

// leaseSQL is the statement that leases the first n slots of a selection to @user,
// passing over those that somebody else is taking at this moment. The number is part
// of the text: without it Postgres expects a tenth of all there are, and plans for that.
func leaseSQL(selection string, n int) string {
	return `
		WITH picked AS MATERIALIZED (` + selection + `
			LIMIT ` + strconv.Itoa(n) + `
			FOR NO KEY UPDATE OF s SKIP LOCKED
		), a AS (
			UPDATE item_answers s
			SET user_id = @user, lease_until = ` + leaseClock + ` + make_interval(secs => @seconds), grid = @grid
			FROM picked
			WHERE s.item_id = picked.item_id AND s.slot = picked.slot
			RETURNING s.*
		)
		SELECT ` + ownItemColumns + `
		FROM a
		JOIN query_items q ON q.id = a.item_id
		JOIN images i ON i.id = q.image_id
		ORDER BY a.rank, a.item_id`
}

// Renew prolongs a person's leases on items and returns those that they still hold:
// a lease that ran out is renewed as long as nobody else took its place.
func (s *Store) Renew(ctx context.Context, project winnow.ProjectID, user winnow.UserID, items []winnow.ItemID) ([]winnow.ItemID, error) {
	kept, err := collect(ctx, s.pool, pgx.RowTo[winnow.ItemID], `
		WITH held AS MATERIALIZED (
			SELECT s.item_id, s.slot, (r.settings ->> 'lease_seconds')::int AS seconds
			FROM item_answers s
			JOIN rounds r ON r.id = s.round_id
			WHERE s.item_id = ANY(@items) AND s.user_id = @user AND s.project_id = @project AND s.event_id IS NULL
			  AND r.state = 'labeling'
			ORDER BY s.item_id
			FOR NO KEY UPDATE OF s
		)
		UPDATE item_answers s
		SET lease_until = `+leaseClock+` + make_interval(secs => held.seconds)
		FROM held
		WHERE s.item_id = held.item_id AND s.slot = held.slot
		RETURNING s.item_id`,
		pgx.NamedArgs{"project": project, "user": user, "items": items, "lease_now": s.leaseNow()})
	return kept, wrap(err, "renew leases of user %d", user)
}

// Release gives items back that a person will not decide now. A page sends this
// while it closes, so it may come after the page that follows has claimed the same
// items: leases taken or renewed after asOf stay. A gold item stays the person's, and
// comes back with their next claim.
func (s *Store) Release(ctx context.Context, project winnow.ProjectID, user winnow.UserID, items []winnow.ItemID, asOf time.Time) error {
	_, err := s.pool.Exec(ctx, `
		WITH held AS MATERIALIZED (
			SELECT s.item_id, s.slot
			FROM item_answers s
			JOIN rounds r ON r.id = s.round_id
			WHERE s.item_id = ANY(@items) AND s.user_id = @user AND s.project_id = @project AND s.event_id IS NULL
			  AND s.lease_until <= @as_of::timestamptz + make_interval(secs => (r.settings ->> 'lease_seconds')::int)
			ORDER BY s.item_id
			FOR NO KEY UPDATE OF s
		)
		UPDATE item_answers s
		SET user_id = CASE WHEN s.gold THEN s.user_id END, lease_until = CASE WHEN s.gold THEN `+leaseClock+` END, grid = false
		FROM held
		WHERE s.item_id = held.item_id AND s.slot = held.slot`,
		pgx.NamedArgs{"project": project, "user": user, "items": items, "as_of": asOf, "lease_now": s.leaseNow()})
	return wrap(err, "release items of user %d", user)
}

// releaseAll ends all leases of a person in a project.
func (s *Store) releaseAll(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, user winnow.UserID) error {
	_, err := tx.Exec(ctx, `
		WITH held AS MATERIALIZED (
			SELECT s.item_id, s.slot, s.gold FROM item_answers s
			WHERE s.user_id = @user AND s.project_id = @project AND s.event_id IS NULL
			ORDER BY s.item_id
			FOR UPDATE
		), dropped AS (
			DELETE FROM item_answers s USING held
			WHERE held.gold AND s.item_id = held.item_id AND s.slot = held.slot
		)
		UPDATE item_answers s SET user_id = NULL, lease_until = NULL, grid = false
		FROM held
		WHERE NOT held.gold AND s.item_id = held.item_id AND s.slot = held.slot`,
		pgx.NamedArgs{"user": user, "project": project})
	return err
}

// Recent lists a person's last n standing answers in the project's newest round,
// newest first.
func (s *Store) Recent(ctx context.Context, project winnow.ProjectID, user winnow.UserID, n int) ([]winnow.Item, error) {
	n = min(max(n, 0), maxPage)
	items, err := collect(ctx, s.pool, scanItem, `
		SELECT `+ownItemColumns+`
		FROM (`+lastAnswersSQL+strconv.Itoa(n)+`) a
		JOIN query_items q ON q.id = a.item_id
		JOIN images i ON i.id = q.image_id
		WHERE a.round_id = (`+newestLabeledSQL+`)
		ORDER BY a.event_id DESC`,
		pgx.NamedArgs{"project": project, "user": user})
	return items, wrap(err, "list recent decisions of user %d", user)
}

const (
	// lastAnswersSQL and a number select a person's last answers in a project that stand.
	// Those in the newest round come first: answers are taken in one round at a time.
	lastAnswersSQL = `
		SELECT * FROM item_answers
		WHERE project_id = @project AND user_id = @user AND event_id IS NOT NULL
		ORDER BY event_id DESC
		LIMIT `
	newestLabeledSQL = `SELECT id FROM rounds WHERE project_id = @project AND labeling_at IS NOT NULL ORDER BY number DESC LIMIT 1`
)
