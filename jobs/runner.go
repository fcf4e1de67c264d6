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
	Store        Store
	Trainer      Trainer
	Concurrency  int           // rounds at a time in this process
	RoundTimeout time.Duration // a round that trains for longer fails
	Log          *slog.Logger
}

// Runner works rounds: those that River hands it, and those whose worker died. It helps
// other workers to score their pools.
type Runner struct {
	client *river.Client[pgx.Tx]
	rounds Rounds
	pace   pace
	hung   chan error
	log    *slog.Logger
}

// chunksAtOnce is how many chunks a process helps with at a time: more would keep them
// from others. The one of a round that it leads comes on top, and is read meanwhile.
const chunksAtOnce = 1

// NewRunner makes a Runner; any number of them may share a database.
func NewRunner(pool *pgxpool.Pool, o Options) (*Runner, error) {
	return newRunner(pool, o, defaultPace)
}

func newRunner(pool *pgxpool.Pool, o Options, p pace) (*Runner, error) {
	r := &Runner{rounds: o.Store, pace: p, hung: make(chan error, 1), log: o.Log}
	hung := func(err error) {
		select {
		case r.hung <- err:
		default: // said already
		}
	}
	scoring := &scoring{
		chunks: o.Store, networks: o.Store, trainer: o.Trainer, pace: p, hung: hung, log: o.Log, gate: make(chan struct{}, 1),
		reader: &reader{images: o.Store, preparer: imaging.NewPreparer(imaging.DefaultLimits()), pace: p, log: o.Log},
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, &roundWorker{
		store: o.Store, scoring: scoring, trainer: o.Trainer, pace: p, timeout: o.RoundTimeout, hung: hung, log: o.Log,
	})
	river.AddWorker(workers, &chunkWorker{rounds: o.Store, scoring: scoring, timeout: o.RoundTimeout})
	var err error
	r.client, err = river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues: map[string]river.QueueConfig{
			queueRounds:                   {MaxWorkers: o.Concurrency},
			queueScores(o.Trainer.Name()): {MaxWorkers: chunksAtOnce},
		},
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
	return r, nil
}

// Run works until ctx ends, then puts the rounds in hand back in the queue. It also ends
// with an error when a computation hangs, which only a new process gets rid of.
func (r *Runner) Run(ctx context.Context) error {
	if err := r.client.Start(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("start working: %w", err)
	}
	hung := r.reap(ctx)

	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := r.client.StopAndCancel(ctx)
	if hung != nil {
		return fmt.Errorf("this worker must be started anew; its round goes on elsewhere: %w", hung)
	}
	if err != nil {
		return fmt.Errorf("stop working: %w", err)
	}
	return nil
}

// reap takes over rounds whose worker no longer gives a sign of life, until ctx ends or a
// computation hangs, whose error it returns.
func (r *Runner) reap(ctx context.Context) error {
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
			return nil
		case err := <-r.hung:
			return err
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
