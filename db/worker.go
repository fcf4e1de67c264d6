package db

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// The worker's writes carry the attempt that it works for. When its round has been
// taken over, cancelled or retried meanwhile, they change nothing and say so.
//
// Heartbeats are written and judged by the database's clock: a worker whose own clock
// is wrong must neither lose its rounds nor take those of others.

// maxTakeovers is how many workers may vanish over one round before it fails: a
// round that kills its worker must not do so for ever.
const maxTakeovers = 5

// BeginRound makes a queued round the worker's. The first to begin it fixes which
// labels and images it sees: who takes it over works on the same.
// CodeConflict if the attempt was given up, or the round has moved on.
func (s *Store) BeginRound(ctx context.Context, id winnow.RoundID, attempt int, backend string) (*winnow.Round, error) {
	var round *winnow.Round
	err := s.tx(ctx, func(tx pgx.Tx) error {
		queued, err := s.roundByID(ctx, tx, id)
		if err != nil {
			return err
		}
		if err := awaitEvents(ctx, tx, queued.ProjectID); err != nil {
			return err
		}
		round, err = one(ctx, tx, scanRound, `
			UPDATE rounds r
			SET state = 'training', backend = @backend, started_at = @now, heartbeat_at = now(), progress = '{}',
			    label_version = CASE WHEN image_version > 0 THEN label_version ELSE
			        coalesce((SELECT max(e.id) FROM label_events e WHERE e.project_id = r.project_id), 0) END,
			    image_version = CASE WHEN image_version > 0 THEN image_version ELSE
			        coalesce((SELECT max(i.id) FROM images i WHERE i.project_id = r.project_id), 0) END
			WHERE r.id = @id AND r.attempt = @attempt AND r.state = 'queued'
			RETURNING `+roundColumns,
			pgx.NamedArgs{"id": id, "attempt": attempt, "backend": backend, "now": s.now()})
		if errors.Is(err, pgx.ErrNoRows) {
			return s.fenced(ctx, tx, id)
		}
		if err != nil {
			return err
		}
		return notify(ctx, tx, winnow.Notice{Project: round.ProjectID, Round: id})
	})
	return round, wrap(err, "begin round %d", id)
}

// lockEvents keeps the next round from fixing what it sees (BeginRound) until the
// transaction has committed the events and images that it adds: their ids are drawn
// before, and a round must not count such an id as seen without seeing what it says.
func lockEvents(ctx context.Context, tx pgx.Tx, project winnow.ProjectID) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock_shared(@class, @project::int)`,
		pgx.NamedArgs{"class": eventsLock, "project": project})
	return err
}

// awaitEvents waits for the transactions that hold lockEvents, and keeps others from
// beginning until this one ends.
func awaitEvents(ctx context.Context, tx pgx.Tx, project winnow.ProjectID) error {
	_, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock(@class, @project::int)`,
		pgx.NamedArgs{"class": eventsLock, "project": project})
	return err
}

const eventsLock = 0x77 // sets these locks apart from others

// fenced says why a worker's write to a round changed nothing.
func (s *Store) fenced(ctx context.Context, tx pgx.Tx, id winnow.RoundID) error {
	r, err := s.roundByID(ctx, tx, id)
	if err != nil {
		return err
	}
	if r.State == winnow.RoundCancelled {
		return winnow.Errorf(winnow.CodeCanceled, "Round %d was cancelled.", r.Number)
	}
	return winnow.Errorf(winnow.CodeConflict, "Round %d is %s in attempt %d: this worker has lost it.", r.Number, r.State, r.Attempt)
}

// RoundProgress reports how far the worker is, and that it lives. CodeCanceled if
// the round was cancelled, CodeConflict if it was given to another worker.
func (s *Store) RoundProgress(ctx context.Context, id winnow.RoundID, attempt int, state winnow.RoundState, p winnow.Progress) error {
	if state != winnow.RoundTraining && state != winnow.RoundScoring {
		return winnow.Invalid("state", "A worker reports training or scoring, not %s.", state)
	}
	err := s.tx(ctx, func(tx pgx.Tx) error {
		project, err := value[winnow.ProjectID](ctx, tx, `
			UPDATE rounds SET state = @state, progress = @progress, heartbeat_at = now()
			WHERE id = @id AND attempt = @attempt AND state IN ('training', 'scoring')
			RETURNING project_id`,
			pgx.NamedArgs{"id": id, "attempt": attempt, "state": state, "progress": p})
		if errors.Is(err, pgx.ErrNoRows) {
			return s.fenced(ctx, tx, id)
		}
		if err != nil {
			return err
		}
		return notify(ctx, tx, winnow.Notice{Project: project, Round: id})
	})
	return wrap(err, "report progress of round %d", id)
}

// OpenLabeling ends the worker's part of a round in one transaction: it stores the
// query and the metrics, forgets the scores of the pool, and opens the round to the
// annotators. An image that an import has labeled meanwhile is left out. Errors as
// RoundProgress.
func (s *Store) OpenLabeling(ctx context.Context, id winnow.RoundID, attempt int, items []winnow.Item, m winnow.Metrics, coldStart bool) error {
	err := s.tx(ctx, func(tx pgx.Tx) error {
		round, err := s.lockWorking(ctx, tx, id, attempt)
		if err != nil {
			return err
		}
		items, err := mixGold(ctx, tx, round, items)
		if err != nil {
			return err
		}
		if err := insertItems(ctx, tx, round, items); err != nil {
			return err
		}
		n, err := insertSlots(ctx, tx, id)
		if err != nil {
			return err
		}
		if n.Total == 0 {
			// Not a conflict: the round is still the worker's, who must say that it failed.
			return winnow.Errorf(winnow.CodeInvalid, "No queried image is left to ask about: all were labeled meanwhile.")
		}
		if err := endScoring(ctx, tx, id); err != nil {
			return err
		}
		if err := dropChunks(ctx, tx, round.ProjectID); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			UPDATE rounds
			SET state = 'labeling', labeling_at = @now, heartbeat_at = NULL, metrics = @metrics, cold_start = @cold,
			    item_count = @total, audit_count = @audit, gold_count = @gold
			WHERE id = @id`,
			pgx.NamedArgs{
				"id": id, "now": s.now(), "metrics": m, "cold": coldStart, "total": n.Total, "audit": n.AuditTotal, "gold": n.Gold,
			}); err != nil {
			return err
		}
		return notify(ctx, tx, winnow.Notice{Project: round.ProjectID, Round: id})
	})
	return wrap(err, "open labeling of round %d", id)
}

// insertItems stores those of a query's images that nobody has decided, and the gold
// ones, in the order given, so that their ids are in that order.
func insertItems(ctx context.Context, tx pgx.Tx, round *winnow.Round, items []winnow.Item) error {
	n := len(items)
	var (
		images    = make([]winnow.ImageID, n)
		ranks     = make([]int, n)
		slices    = make([]winnow.Slice, n)
		predicted = make([]*int, n)
		scores    [5][]*float64 // null without scores
	)
	for c := range scores {
		scores[c] = make([]*float64, n)
	}
	for i := range items {
		item := &items[i]
		images[i], ranks[i], slices[i] = item.ImageID, item.Rank, item.Slice
		if item.Slice == "" {
			slices[i] = winnow.SliceQuery
		}
		if sc := &item.Scores; sc.HasScores {
			for c, v := range []*float64{&sc.EUL, &sc.EUD, &sc.AU, &sc.Clean, &sc.Info} {
				scores[c][i] = v
			}
			if sc.Predicted >= 0 {
				predicted[i] = &sc.Predicted
			}
		}
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO query_items (project_id, round_id, image_id, rank, slice, slots, eu_l, eu_d, au, clean, info, predicted)
		SELECT i.project_id, @round, i.id, n.rank, n.slice, CASE WHEN n.slice <> 'gold' THEN @overlap::int ELSE 0 END, n.eu_l, n.eu_d, n.au, n.clean, n.info, n.predicted
		FROM unnest(@images::bigint[], @ranks::int[], @slices::text[], @eu_l::float8[], @eu_d::float8[], @au::float8[],
		            @clean::float8[], @info::float8[], @predicted::int[]) WITH ORDINALITY
		     AS n (image_id, rank, slice, eu_l, eu_d, au, clean, info, predicted, place)
		JOIN images i ON i.id = n.image_id AND i.project_id = @project
		WHERE i.verdict IS NULL OR n.slice = 'gold'
		ORDER BY n.place`,
		pgx.NamedArgs{
			"project": round.ProjectID, "round": round.ID, "overlap": round.Settings.Overlap, "images": images, "ranks": ranks, "slices": slices,
			"eu_l": scores[0], "eu_d": scores[1], "au": scores[2], "clean": scores[3], "info": scores[4],
			"predicted": predicted,
		})
	return err
}

// insertSlots makes the slots of a round's items, as many as each asks for answers, and
// counts the items.
func insertSlots(ctx context.Context, tx pgx.Tx, round winnow.RoundID) (n winnow.ItemCounts, err error) {
	args := pgx.NamedArgs{"round": round}
	if _, err := tx.Exec(ctx, `
		INSERT INTO item_answers (item_id, slot, project_id, round_id, rank)
		SELECT q.id, n, q.project_id, q.round_id, q.rank
		FROM query_items q, generate_series(1, q.slots) n
		WHERE q.round_id = @round
		ORDER BY q.rank, n`, args); err != nil {
		return n, err
	}
	_, err = one(ctx, tx, func(row pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, row.Scan(&n.Total, &n.AuditTotal, &n.Gold)
	}, `
		SELECT count(*) FILTER (WHERE slice <> 'gold'), count(*) FILTER (WHERE slice = 'audit'), count(*) FILTER (WHERE slice = 'gold')
		FROM query_items WHERE round_id = @round`, args)
	return n, err
}

// FailRound ends a round with a message that the admin may see. CodeConflict if the
// worker has lost it.
func (s *Store) FailRound(ctx context.Context, id winnow.RoundID, attempt int, message string) error {
	err := s.tx(ctx, func(tx pgx.Tx) error {
		project, err := value[winnow.ProjectID](ctx, tx, `
			UPDATE rounds SET state = 'failed', error = @message, closed_at = @now, heartbeat_at = NULL
			WHERE id = @id AND attempt = @attempt AND state IN ('queued', 'training', 'scoring')
			RETURNING project_id`,
			pgx.NamedArgs{"id": id, "attempt": attempt, "message": message, "now": s.now()})
		if errors.Is(err, pgx.ErrNoRows) {
			return s.fenced(ctx, tx, id)
		}
		if err != nil {
			return err
		}
		if err := endScoring(ctx, tx, id); err != nil {
			return err
		}
		return notify(ctx, tx, winnow.Notice{Project: project, Round: id})
	})
	return wrap(err, "fail round %d", id)
}

// RequeueRound gives a round back that its worker cannot finish, because it is told
// to stop. Errors as RoundProgress.
func (s *Store) RequeueRound(ctx context.Context, id winnow.RoundID, attempt int) error {
	err := s.tx(ctx, func(tx pgx.Tx) error {
		project, err := value[winnow.ProjectID](ctx, tx, `
			UPDATE rounds SET state = 'queued', attempt = attempt + 1, heartbeat_at = NULL, progress = '{}'
			WHERE id = @id AND attempt = @attempt AND state IN ('training', 'scoring')
			RETURNING project_id`, pgx.NamedArgs{"id": id, "attempt": attempt})
		if errors.Is(err, pgx.ErrNoRows) {
			return s.fenced(ctx, tx, id)
		}
		if err != nil {
			return err
		}
		if err := s.opts.Enqueue(ctx, tx, id, attempt+1); err != nil {
			return err
		}
		return notify(ctx, tx, winnow.Notice{Project: project, Round: id})
	})
	return wrap(err, "requeue round %d", id)
}

// RequeueStaleRounds takes the rounds whose worker has said nothing for olderThan
// away from it and queues them again, and returns how many; likewise queued rounds
// whose job a worker took that long ago without ever beginning it. A round that has lost too many
// workers fails instead.
func (s *Store) RequeueStaleRounds(ctx context.Context, olderThan time.Duration) (int, error) {
	requeued := 0
	err := s.tx(ctx, func(tx pgx.Tx) error {
		rounds, err := collect(ctx, tx, scanRound, `
			WITH stale AS (
				SELECT id FROM rounds
				WHERE state IN ('training', 'scoring') AND heartbeat_at < now() - @silence::interval
				   OR state = 'queued' AND created_at < now() - @silence::interval AND NOT EXISTS (
				       SELECT FROM river_job j
				       WHERE j.kind = 'round'
				         AND (j.state IN ('available', 'pending', 'retryable', 'scheduled')
				              OR j.state = 'running' AND j.attempted_at >= now() - @silence::interval)
				         AND j.args @> jsonb_build_object('round', rounds.id, 'attempt', rounds.attempt))
				ORDER BY id
				LIMIT 100
				FOR UPDATE SKIP LOCKED
			)
			UPDATE rounds r
			SET state = CASE WHEN r.takeovers < @max THEN 'queued' ELSE 'failed' END,
			    error = CASE WHEN r.takeovers < @max THEN '' ELSE @message END,
			    closed_at = CASE WHEN r.takeovers < @max THEN NULL ELSE @now::timestamptz END,
			    attempt = r.attempt + 1, takeovers = r.takeovers + 1, heartbeat_at = NULL, progress = '{}'
			FROM stale
			WHERE r.id = stale.id
			RETURNING `+roundColumns,
			pgx.NamedArgs{
				"silence": olderThan, "now": s.now(), "max": maxTakeovers,
				"message": "Every worker that took this round stopped before it was done. Look at their logs (memory?), then retry.",
			})
		if err != nil {
			return err
		}
		for _, r := range rounds {
			if err := notify(ctx, tx, winnow.Notice{Project: r.ProjectID, Round: r.ID}); err != nil {
				return err
			}
			if err := s.audit(ctx, tx, 0, r.ProjectID, "round.takeover", detail{"round": r.Number, "attempt": r.Attempt, "state": r.State}); err != nil {
				return err
			}
			if r.State != winnow.RoundQueued {
				continue
			}
			requeued++
			if err := s.opts.Enqueue(ctx, tx, r.ID, r.Attempt); err != nil {
				return err
			}
		}
		return nil
	})
	return requeued, wrap(err, "requeue stale rounds")
}

// TrainingSet returns the pool images with a label to learn from and their labels,
// as they stood at the label event upTo: the class index, or classes for unknown.
// Images of classes that the round does not know yet are left out.
func (s *Store) TrainingSet(ctx context.Context, project winnow.ProjectID, upTo winnow.EventID, classes int) ([]winnow.ImageID, []int, error) {
	ids, labels, err := s.labeledSet(ctx, `
		WITH `+movedSQL+`
		SELECT id, coalesce(class, @classes) FROM images
		WHERE project_id = @project AND split = 'pool' AND verdict IN ('known', 'unknown') AND coalesce(class, 0) < @classes
		  AND id NOT IN (SELECT image_id FROM moved)
		UNION ALL
		SELECT i.id, coalesce(m.class, @classes) FROM moved m
		JOIN images i ON i.id = m.image_id
		WHERE i.split = 'pool' AND m.verdict IN ('known', 'unknown') AND coalesce(m.class, 0) < @classes
		ORDER BY id`,
		pgx.NamedArgs{"project": project, "up_to": upTo, "classes": classes})
	return ids, labels, wrap(err, "read training set of project %d", project)
}

// movedSQL are the images that somebody said something of after the event @up_to, with
// the label that each had then.
const movedSQL = `
	moved AS MATERIALIZED (
		SELECT n.image_id, l.verdict, l.class
		FROM (SELECT DISTINCT image_id FROM label_events WHERE project_id = @project AND id > @up_to) n
		LEFT JOIN LATERAL (
			SELECT e.stands FROM label_events e
			WHERE e.image_id = n.image_id AND e.id <= @up_to
			ORDER BY e.id DESC
			LIMIT 1
		) e ON true
		LEFT JOIN label_events l ON l.id = e.stands
	)`

// TestSet returns the test images of known classes and their class indices, as they
// stood at the label event upTo.
func (s *Store) TestSet(ctx context.Context, project winnow.ProjectID, upTo winnow.EventID) ([]winnow.ImageID, []int, error) {
	ids, labels, err := s.labeledSet(ctx, `
		WITH `+movedSQL+`
		SELECT id, class FROM images
		WHERE project_id = @project AND split = 'test' AND verdict = 'known' AND id NOT IN (SELECT image_id FROM moved)
		UNION ALL
		SELECT i.id, m.class FROM moved m
		JOIN images i ON i.id = m.image_id
		WHERE i.split = 'test' AND m.verdict = 'known'
		ORDER BY id`,
		pgx.NamedArgs{"project": project, "up_to": upTo})
	return ids, labels, wrap(err, "read test set of project %d", project)
}

func (s *Store) labeledSet(ctx context.Context, sql string, args pgx.NamedArgs) (ids []winnow.ImageID, labels []int, err error) {
	rows, err := s.pool.Query(ctx, sql, args)
	if err != nil {
		return nil, nil, err
	}
	var (
		id    winnow.ImageID
		label int
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &label}, func() error {
		ids, labels = append(ids, id), append(labels, label)
		return nil
	})
	return ids, labels, err
}

// PoolSet returns the pool images up to last that nobody had decided at the label event
// upTo, in the order of their ids.
func (s *Store) PoolSet(ctx context.Context, project winnow.ProjectID, upTo winnow.EventID, last winnow.ImageID) ([]winnow.ImageID, error) {
	ids, err := collect(ctx, s.pool, pgx.RowTo[winnow.ImageID], `
		WITH `+movedSQL+`
		SELECT id FROM images
		WHERE project_id = @project AND split = 'pool' AND verdict IS NULL AND id <= @last AND id NOT IN (SELECT image_id FROM moved)
		UNION ALL
		SELECT i.id FROM moved m
		JOIN images i ON i.id = m.image_id
		WHERE i.split = 'pool' AND i.id <= @last AND m.verdict IS NULL
		ORDER BY id`,
		pgx.NamedArgs{"project": project, "up_to": upTo, "last": last})
	return ids, wrap(err, "read pool of project %d", project)
}
