package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"

	"winnow/imaging"
)

// stopTimeout is how long a stopping worker waits for its rounds to go back to the
// queue. A step of training that ignores it is taken over later.
const stopTimeout = 15 * time.Second

// Options are what a Runner needs.
type Options struct {
	Rounds       Rounds
	Images       Images
	Trainer      Trainer
	Concurrency  int           // rounds at a time in this process
	RoundTimeout time.Duration // a round that trains for longer fails
	Log          *slog.Logger
}

// Runner works rounds: those that River hands it, and those whose worker died.
type Runner struct {
	client *river.Client[pgx.Tx]
	rounds Rounds
	pace   pace
	log    *slog.Logger
}

// NewRunner makes a Runner; any number of them may share a database.
func NewRunner(pool *pgxpool.Pool, o Options) (*Runner, error) {
	return newRunner(pool, o, defaultPace)
}

func newRunner(pool *pgxpool.Pool, o Options, p pace) (*Runner, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, &roundWorker{
		rounds: o.Rounds, images: o.Images, preparer: imaging.NewPreparer(imaging.DefaultLimits()),
		trainer: o.Trainer, pace: p, timeout: o.RoundTimeout, log: o.Log,
	})
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:  map[string]river.QueueConfig{queueRounds: {MaxWorkers: o.Concurrency}},
		Workers: workers,
		Logger:  slog.New(atLeast{o.Log.Handler(), slog.LevelWarn}),
		// A killed worker's River job must not be rescued while its round may still
		// be training; the round itself is taken over within seconds.
		JobTimeout:           o.RoundTimeout,
		RescueStuckJobsAfter: o.RoundTimeout + time.Hour,
	})
	if err != nil {
		return nil, fmt.Errorf("make job client: %w", err)
	}
	return &Runner{client: client, rounds: o.Rounds, pace: p, log: o.Log}, nil
}

// Run works until ctx ends, then puts the rounds in hand back in the queue.
func (r *Runner) Run(ctx context.Context) error {
	if err := r.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start working: %w", err)
	}
	r.reap(ctx)

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := r.client.StopAndCancel(ctx); err != nil {
		return fmt.Errorf("stop working: %w", err)
	}
	return nil
}

// reap takes over rounds whose worker no longer gives a sign of life, until ctx ends.
func (r *Runner) reap(ctx context.Context) {
	tick := time.NewTicker(r.pace.reap)
	defer tick.Stop()
	for {
		n, err := r.rounds.RequeueStaleRounds(ctx, r.pace.stale)
		switch {
		case err != nil && !errors.Is(err, context.Canceled):
			r.log.Warn("cannot look for rounds left behind; trying again", "error", err)
		case n > 0:
			r.log.Warn("took over rounds whose worker was lost", "rounds", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// atLeast passes on records from a level up: River narrates below it.
type atLeast struct {
	slog.Handler
	level slog.Level
}

func (h atLeast) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= h.level && h.Handler.Enabled(ctx, l)
}

func (h atLeast) WithAttrs(attrs []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(attrs), h.level}
}

func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}
