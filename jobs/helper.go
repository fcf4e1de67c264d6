package jobs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/riverqueue/river"
)

// helpAgainAfter is when a worker that could not score a chunk looks again.
const helpAgainAfter = 30 * time.Second

// chunkWorker scores chunks of rounds that any worker leads.
type chunkWorker struct {
	river.WorkerDefaults[ScoreArgs]
	rounds  Rounds
	scoring *scoring
	timeout time.Duration
}

// Timeout is that of a round.
func (w *chunkWorker) Timeout(*river.Job[ScoreArgs]) time.Duration { return w.timeout }

// Work scores the next chunk that is free. A job that finds none is done: there are as
// many as there were chunks, and the round's own worker takes of them, too.
func (w *chunkWorker) Work(ctx context.Context, job *river.Job[ScoreArgs]) error {
	id, attempt := job.Args.Round, job.Args.Attempt
	s := w.scoring
	round, err := w.rounds.RoundByID(ctx, id)
	if err != nil {
		return fmt.Errorf("help with round %d: %w", id, err)
	}
	c, err := s.chunks.ClaimChunk(ctx, id, attempt, s.pace.stale)
	if err != nil {
		return fmt.Errorf("help with round %d: %w", id, err)
	}
	if c == nil {
		s.forget()
		return nil
	}
	m, err := s.stored(round, c.Model)
	if err == nil {
		_, err = s.score(ctx, c, m, round.Settings.InputSize, func(int) {})
	}
	switch {
	case err == nil:
		return nil
	case asLost(err) != nil:
		s.log.Info("a chunk is not ours any more", "round_id", id, "chunk", c.Number, "reason", err)
		return nil
	case ctx.Err() != nil && !errors.Is(err, errHung):
		return river.JobSnooze(0) // this worker is stopping: the job is for another
	}
	s.log.Error("cannot help to score", "round_id", id, "chunk", c.Number, "error", err)
	return river.JobSnooze(helpAgainAfter)
}
