package db

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// The scoring of a pool is shared among workers by chunks. A chunk is content: the
// scores of these images by this model, whoever computed them. So a round that is
// worked again finds what is there, and a chunk that two workers scored is one row.
//
// Locks: the round first, then its chunks.

// working is the condition that a worker's attempt still has the round.
const working = `EXISTS (SELECT FROM rounds r WHERE r.id = @round AND r.attempt = @attempt AND r.state IN ('training', 'scoring'))`

// lockWorking locks a round that is in work in the attempt. Errors as RoundProgress.
func (s *Store) lockWorking(ctx context.Context, tx pgx.Tx, id winnow.RoundID, attempt int) (*winnow.Round, error) {
	r, err := one(ctx, tx, scanRound, `
		SELECT `+roundColumns+` FROM rounds r
		WHERE r.id = @id AND r.attempt = @attempt AND r.state IN ('training', 'scoring')
		FOR NO KEY UPDATE`, pgx.NamedArgs{"id": id, "attempt": attempt})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, s.fenced(ctx, tx, id)
	}
	return r, err
}

// SaveCheckpoints stores the networks of a round in the place of any it had. Errors as
// RoundProgress.
func (s *Store) SaveCheckpoints(ctx context.Context, id winnow.RoundID, attempt int, c winnow.Checkpoints) error {
	err := s.tx(ctx, func(tx pgx.Tx) error {
		if _, err := s.lockWorking(ctx, tx, id, attempt); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM round_checkpoints WHERE round_id = @round`, pgx.NamedArgs{"round": id}); err != nil {
			return err
		}
		for name, data := range c.Networks {
			if _, err := tx.Exec(ctx, `
				INSERT INTO round_checkpoints (round_id, name, data, training) VALUES (@round, @name, @data, @training)`,
				pgx.NamedArgs{"round": id, "name": name, "data": data, "training": c.Training}); err != nil {
				return err
			}
		}
		return nil
	})
	return wrap(err, "save networks of round %d", id)
}

// Checkpoints returns the networks that a round has so far.
func (s *Store) Checkpoints(ctx context.Context, id winnow.RoundID) (winnow.Checkpoints, error) {
	c := winnow.Checkpoints{Networks: map[string][]byte{}}
	rows, err := s.pool.Query(ctx, `SELECT name, data, training FROM round_checkpoints WHERE round_id = @round`, pgx.NamedArgs{"round": id})
	if err != nil {
		return c, wrap(err, "read networks of round %d", id)
	}
	var (
		name           string
		data, training []byte
	)
	_, err = pgx.ForEachRow(rows, []any{&name, &data, &training}, func() error {
		c.Networks[name], c.Training = data, training
		data, training = nil, nil
		return nil
	})
	return c, wrap(err, "read networks of round %d", id)
}

// PlanChunks cuts the scoring of a round's pool into chunks, of these images by this
// model, and queues a job for each that is to be scored but one: the worker that
// plans works, too. What is there already stays, what does not belong there goes, and
// all claims end. Errors as RoundProgress.
func (s *Store) PlanChunks(ctx context.Context, id winnow.RoundID, attempt int, model []byte, chunks [][]winnow.ImageID) error {
	err := s.tx(ctx, func(tx pgx.Tx) error {
		round, err := s.lockWorking(ctx, tx, id, attempt)
		if err != nil {
			return err
		}
		if err := endScoring(ctx, tx, id); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM score_chunks WHERE round_id = @round AND (model <> @model OR number >= @chunks)`,
			pgx.NamedArgs{"round": id, "model": model, "chunks": len(chunks)}); err != nil {
			return err
		}
		var batch pgx.Batch
		for number, images := range chunks {
			batch.Queue(`
				INSERT INTO score_chunks AS c (round_id, number, model, images, image_count)
				VALUES (@round, @number, @model, @images, @count)
				ON CONFLICT (round_id, number) DO UPDATE
				SET images = excluded.images, image_count = excluded.image_count, scores = NULL
				WHERE c.images <> excluded.images`,
				pgx.NamedArgs{"round": id, "number": number, "model": model, "images": images, "count": len(images)})
		}
		if err := tx.SendBatch(ctx, &batch).Close(); err != nil {
			return err
		}
		open, err := value[int](ctx, tx, `
			WITH freed AS (
				UPDATE score_chunks SET heartbeat_at = NULL, claims = claims + 1
				WHERE round_id = @round AND scores IS NULL
				RETURNING 1
			)
			SELECT count(*)::int FROM freed`, pgx.NamedArgs{"round": id})
		if err != nil || open < 2 {
			return err
		}
		return s.opts.EnqueueScoring(ctx, tx, id, attempt, round.Backend, open-1)
	})
	return wrap(err, "cut the pool of round %d", id)
}

// ClaimChunk gives the first chunk of a round that is neither scored nor anybody's to
// the caller; a worker that has said nothing for stale has lost its chunk. Nil if there
// is none, or the attempt has lost the round.
func (s *Store) ClaimChunk(ctx context.Context, id winnow.RoundID, attempt int, stale time.Duration) (*winnow.Chunk, error) {
	c, err := one(ctx, s.pool, func(row pgx.CollectableRow) (*winnow.Chunk, error) {
		c := &winnow.Chunk{Round: id, Attempt: attempt}
		return c, row.Scan(&c.Number, &c.Claim, &c.Model, &c.Images, &c.TakenOver)
	}, `
		WITH free AS (
			SELECT number, heartbeat_at IS NOT NULL AS lost FROM score_chunks
			WHERE round_id = @round AND scores IS NULL AND (heartbeat_at IS NULL OR heartbeat_at < now() - @stale::interval)
			  AND `+working+`
			ORDER BY number
			LIMIT 1
			FOR UPDATE SKIP LOCKED
		)
		UPDATE score_chunks c SET heartbeat_at = now(), claims = claims + 1
		FROM free
		WHERE c.round_id = @round AND c.number = free.number
		RETURNING c.number, c.claims, c.model, c.images, free.lost`,
		pgx.NamedArgs{"round": id, "attempt": attempt, "stale": stale})
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	return c, wrap(err, "claim a chunk of round %d", id)
}

// BeatChunk says that the chunk's worker lives. CodeConflict or CodeCanceled if the
// chunk is no longer its own.
func (s *Store) BeatChunk(ctx context.Context, c *winnow.Chunk) error {
	tag, err := s.pool.Exec(ctx, `
		UPDATE score_chunks SET heartbeat_at = now()
		WHERE round_id = @round AND number = @number AND claims = @claim AND scores IS NULL AND `+working, chunkArgs(c))
	if err == nil && tag.RowsAffected() == 0 {
		err = s.lostChunk(ctx, c)
	}
	return wrap(err, "keep chunk %d of round %d", c.Number, c.Round)
}

// StoreChunk stores the scores of a chunk. The first to bring them is the one who
// counts: by the same model they are the same. Errors as BeatChunk.
func (s *Store) StoreChunk(ctx context.Context, c *winnow.Chunk, scores []byte) error {
	args := chunkArgs(c)
	args["scores"] = scores
	tag, err := s.pool.Exec(ctx, `
		UPDATE score_chunks SET scores = @scores, heartbeat_at = NULL
		WHERE round_id = @round AND number = @number AND model = @model AND scores IS NULL AND `+working, args)
	if err == nil && tag.RowsAffected() == 0 {
		var stored bool
		stored, err = value[bool](ctx, s.pool, `
			SELECT EXISTS (SELECT FROM score_chunks
			               WHERE round_id = @round AND number = @number AND model = @model AND scores IS NOT NULL)
			   AND `+working, chunkArgs(c))
		if err == nil && !stored {
			err = s.lostChunk(ctx, c)
		}
	}
	return wrap(err, "store chunk %d of round %d", c.Number, c.Round)
}

// ReleaseChunk gives a chunk back that its worker will not score.
func (s *Store) ReleaseChunk(ctx context.Context, c *winnow.Chunk) error {
	_, err := s.pool.Exec(ctx, `
		UPDATE score_chunks SET heartbeat_at = NULL
		WHERE round_id = @round AND number = @number AND claims = @claim`, chunkArgs(c))
	return wrap(err, "give back chunk %d of round %d", c.Number, c.Round)
}

func chunkArgs(c *winnow.Chunk) pgx.NamedArgs {
	return pgx.NamedArgs{"round": c.Round, "attempt": c.Attempt, "number": c.Number, "claim": c.Claim, "model": c.Model}
}

// lostChunk says why a chunk is no longer its worker's.
func (s *Store) lostChunk(ctx context.Context, c *winnow.Chunk) error {
	r, err := s.roundByID(ctx, s.pool, c.Round)
	switch {
	case err != nil:
		return err
	case r.State == winnow.RoundCancelled:
		return winnow.Errorf(winnow.CodeCanceled, "Round %d was cancelled.", r.Number)
	case r.Attempt != c.Attempt:
		return winnow.Errorf(winnow.CodeConflict, "Round %d is %s in attempt %d: this worker has lost it.", r.Number, r.State, r.Attempt)
	}
	return winnow.Errorf(winnow.CodeConflict, "Chunk %d of round %d is somebody else's, or scored.", c.Number, r.Number)
}

// Scoring says how far the scoring of a round's pool is.
func (s *Store) Scoring(ctx context.Context, id winnow.RoundID) (winnow.Scoring, error) {
	sc, err := one(ctx, s.pool, func(row pgx.CollectableRow) (sc winnow.Scoring, err error) {
		return sc, row.Scan(&sc.Chunks, &sc.Scored, &sc.Images)
	}, `
		SELECT count(*), count(*) FILTER (WHERE scores IS NOT NULL),
		       coalesce(sum(image_count) FILTER (WHERE scores IS NOT NULL), 0)
		FROM score_chunks WHERE round_id = @round`, pgx.NamedArgs{"round": id})
	return sc, wrap(err, "read how far the scoring of round %d is", id)
}

// ChunkScores returns the scores of a chunk; CodeNotFound while there are none.
func (s *Store) ChunkScores(ctx context.Context, id winnow.RoundID, number int) ([]byte, error) {
	scores, err := value[[]byte](ctx, s.pool, `
		SELECT scores FROM score_chunks WHERE round_id = @round AND number = @number AND scores IS NOT NULL`,
		pgx.NamedArgs{"round": id, "number": number})
	return scores, wrap(missing(err, "Chunk %d is not scored.", number), "read chunk %d of round %d", number, id)
}

// endScoring takes the jobs of a round's chunks out of the queue that nobody has begun.
func endScoring(ctx context.Context, tx pgx.Tx, id winnow.RoundID) error {
	_, err := tx.Exec(ctx, `
		DELETE FROM river_job
		WHERE kind = 'score' AND state IN ('available', 'pending', 'retryable', 'scheduled')
		  AND args @> jsonb_build_object('round', @round::bigint)`, pgx.NamedArgs{"round": id})
	return err
}

// dropChunks forgets the scores of a project's rounds.
func dropChunks(ctx context.Context, tx pgx.Tx, project winnow.ProjectID) error {
	_, err := tx.Exec(ctx, `
		DELETE FROM score_chunks WHERE round_id IN (SELECT id FROM rounds WHERE project_id = @project)`,
		pgx.NamedArgs{"project": project})
	return err
}
