package jobs

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"winnow"
)

// queueRounds is apart from other queues, so that short jobs never wait for a
// round to train.
const queueRounds = "rounds"

// RoundArgs asks for one attempt at a round. Everything else is in the round's row.
type RoundArgs struct {
	Round   winnow.RoundID `json:"round"`
	Attempt int            `json:"attempt"`
}

// Kind names the job in the database.
func (RoundArgs) Kind() string { return "round" }

// InsertOpts sends the job to its queue. River's own attempts are for the moments
// before a round begins, when the database may not answer; after that, the round's
// row says what becomes of it.
func (RoundArgs) InsertOpts() river.InsertOpts {
	return river.InsertOpts{Queue: queueRounds, MaxAttempts: 10}
}

// ScoreArgs asks for help with a round: whoever gets it scores the next chunk of its
// pool that is free.
type ScoreArgs struct {
	Round   winnow.RoundID `json:"round"`
	Attempt int            `json:"attempt"`
}

// Kind names the job in the database.
func (ScoreArgs) Kind() string { return "score" }

// queueScores is where workers of a backend look for chunks. Backends differ in the
// last bits of what they compute; with a queue for each, a round's query does not
// depend on who helped.
func queueScores(backend string) string {
	family, config, ok := strings.Cut(backend, ":")
	if ok && !strings.HasPrefix(config, "/") {
		family += "-" + config
	}
	return "scores-" + family
}

// Enqueue inserts the job of an attempt in the transaction that makes the attempt.
type Enqueue func(ctx context.Context, tx pgx.Tx, round winnow.RoundID, attempt int) error

// EnqueueScoring inserts n jobs that score a chunk each, in the transaction that cuts
// the chunks.
type EnqueueScoring func(ctx context.Context, tx pgx.Tx, round winnow.RoundID, attempt int, backend string, n int) error

// NewEnqueue returns an Enqueue that any process can use: it needs no connection of
// its own, and works nothing.
func NewEnqueue() (Enqueue, error) {
	client, err := newInserter()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx pgx.Tx, round winnow.RoundID, attempt int) error {
		if _, err := client.InsertTx(ctx, tx, RoundArgs{Round: round, Attempt: attempt}, nil); err != nil {
			return fmt.Errorf("insert job of round %d, attempt %d: %w", round, attempt, err)
		}
		return nil
	}, nil
}

// NewEnqueueScoring is NewEnqueue for chunks.
func NewEnqueueScoring() (EnqueueScoring, error) {
	client, err := newInserter()
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, tx pgx.Tx, round winnow.RoundID, attempt int, backend string, n int) error {
		params := make([]river.InsertManyParams, n)
		for i := range params {
			params[i] = river.InsertManyParams{
				Args:       ScoreArgs{Round: round, Attempt: attempt},
				InsertOpts: &river.InsertOpts{Queue: queueScores(backend), MaxAttempts: 10},
			}
		}
		if _, err := client.InsertManyFastTx(ctx, tx, params); err != nil {
			return fmt.Errorf("insert %d jobs for the chunks of round %d, attempt %d: %w", n, round, attempt, err)
		}
		return nil
	}, nil
}

func newInserter() (*river.Client[pgx.Tx], error) {
	client, err := river.NewClient(riverpgxv5.New(nil), &river.Config{})
	if err != nil {
		return nil, fmt.Errorf("make insert-only job client: %w", err)
	}
	return client, nil
}
