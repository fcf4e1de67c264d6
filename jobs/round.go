package jobs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/riverqueue/river"

	"winnow"
	"winnow/ml"
	"winnow/ml/nn"
	"winnow/ml/strategy"
)

// Rounds is what a worker needs of the store to move a round.
type Rounds interface {
	BeginRound(ctx context.Context, id winnow.RoundID, attempt int, backend string) (*winnow.Round, error)
	RoundProgress(ctx context.Context, id winnow.RoundID, attempt int, state winnow.RoundState, p winnow.Progress) error
	OpenLabeling(ctx context.Context, id winnow.RoundID, attempt int, items []winnow.Item, m winnow.Metrics, coldStart bool) error
	FailRound(ctx context.Context, id winnow.RoundID, attempt int, message string) error
	RequeueRound(ctx context.Context, id winnow.RoundID, attempt int) error
	RequeueStaleRounds(ctx context.Context, olderThan time.Duration) (int, error)
	RoundByID(ctx context.Context, id winnow.RoundID) (*winnow.Round, error)
}

// Store is all that a worker needs.
type Store interface {
	Rounds
	Images
	Networks
	Chunks
}

// Trainer trains and queries.
type Trainer interface {
	Name() string // of what computes, kept with the round
	RunRound(ctx context.Context, in ml.RoundInput, progress func(winnow.Progress)) (*ml.RoundOutput, error)
	NewScorer(nets ml.Networks, needs strategy.Needs) (Scorer, error)
}

// Scorer scores images by networks that were made ready.
type Scorer interface {
	Score(ctx context.Context, images nn.Images, progress func(scored int)) (ml.Scores, error)
	Close()
}

// settleTimeout bounds the last write of a round whose own context has ended.
const settleTimeout = 5 * time.Second

// roundWorker works one attempt at a round.
type roundWorker struct {
	river.WorkerDefaults[RoundArgs]
	store   Store
	scoring *scoring
	trainer Trainer
	pace    pace
	timeout time.Duration
	hung    func(error)
	log     *slog.Logger
}

// Timeout is large, because training takes what it takes, and finite, because River
// never gives up a job without one.
func (w *roundWorker) Timeout(*river.Job[RoundArgs]) time.Duration { return w.timeout }

// Work runs the attempt and sees to it that the round's row says how it ended. An
// error is returned only where the row could not be written: River tries again, and
// if that comes too late, the round is taken over as stale.
func (w *roundWorker) Work(ctx context.Context, job *river.Job[RoundArgs]) error {
	id, attempt := job.Args.Round, job.Args.Attempt
	round, err := w.store.BeginRound(ctx, id, attempt, w.trainer.Name())
	if lost := asLost(err); lost != nil && ctx.Err() == nil {
		w.log.Info("round is not ours to begin", "round_id", id, "attempt", attempt, "reason", lost)
		return nil
	}
	if err != nil {
		return fmt.Errorf("begin round %d, attempt %d: %w", id, attempt, err)
	}
	log := w.log.With("project", round.ProjectID, "round", round.Number, "attempt", attempt)
	log.Info("round begins", "strategy", round.Strategy, "backend", w.trainer.Name())
	start := time.Now()

	err = w.attempt(ctx, round, log)
	if err == nil {
		log.Info("round is ready to label", "seconds", time.Since(start).Round(time.Millisecond).Seconds())
		return nil
	}
	return w.settle(ctx, round, err, log)
}

// attempt trains, queries and opens the round for labeling, while a reporter shows
// progress and keeps the round's heart beating.
func (w *roundWorker) attempt(ctx context.Context, round *winnow.Round, log *slog.Logger) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	r := newReporter(w.store, round, w.pace, w.hung, log)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		r.run(ctx, cancel)
	}()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		cancel(nil)
		<-stopped
	}()

	in, pool, training, err := w.load(ctx, round)
	if err != nil {
		return err
	}
	if in.Trained, err = trained(ctx, w.store, round, training, log); err != nil {
		return err
	}
	in.Keep = func(ctx context.Context, nets ml.Networks) error {
		checkpoints, err := marshalNetworks(nets)
		if err != nil {
			return err
		}
		return persist(ctx, w.pace, log, func() error {
			return w.store.SaveCheckpoints(ctx, round.ID, round.Attempt, winnow.Checkpoints{Training: training, Networks: checkpoints})
		})
	}
	out, err := w.trainer.RunRound(ctx, in, r.report)
	if err != nil {
		return err
	}
	r.saving()
	items := make([]winnow.Item, len(out.Query))
	for i, c := range out.Query {
		items[i] = winnow.Item{
			RoundID: round.ID, ProjectID: round.ProjectID, ImageID: pool.ids[c.Index],
			Rank: i + 1, Slice: winnow.SliceQuery, Scores: c.Scores, Class: -1,
		}
	}
	items = withAudit(round, items, pool.ids)
	return persist(ctx, w.pace, log, func() error {
		return w.store.OpenLabeling(ctx, round.ID, round.Attempt, items, out.Metrics, out.ColdStart)
	})
}

// persist tries something for as long as the database does not answer and ctx lasts:
// hours of training must not be lost to a restart of Postgres.
func persist(ctx context.Context, p pace, log *slog.Logger, do func() error) error {
	for wait := p.write; ; wait = min(2*wait, p.heartbeat) {
		err := do()
		if winnow.ErrorCode(err) != winnow.CodeUnavailable {
			return err
		}
		log.Warn("the database does not answer; trying again", "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-time.After(wait):
		}
	}
}

// settle writes what became of an attempt that did not succeed.
func (w *roundWorker) settle(ctx context.Context, round *winnow.Round, err error, log *slog.Logger) error {
	if lost := asLost(err); lost != nil {
		log.Info("round stops", "reason", lost)
		return nil
	}
	shuttingDown := errors.Is(ctx.Err(), context.Canceled) || errors.Is(err, errHung)
	timedOut := errors.Is(ctx.Err(), context.DeadlineExceeded)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()

	if shuttingDown {
		if err := w.store.RequeueRound(ctx, round.ID, round.Attempt); err != nil && asLost(err) == nil {
			return fmt.Errorf("requeue round %d: %w", round.ID, err)
		}
		log.Info("round goes back to the queue: this worker is stopping")
		return nil
	}
	message := failureMessage(err)
	if timedOut {
		message = fmt.Sprintf("Training did not finish within %v. Fewer epochs, a narrower network or a faster backend would.", w.timeout)
	}
	log.Error("round failed", "message", message, "error", err)
	if err := w.store.FailRound(ctx, round.ID, round.Attempt, message); err != nil && asLost(err) == nil {
		return fmt.Errorf("record that round %d failed: %w", round.ID, err)
	}
	return nil
}

// failureMessage is what people see of a failure: the words of an error that was
// made for them, and never an inner cause.
func failureMessage(err error) string {
	if winnow.ErrorCode(err) != winnow.CodeInternal {
		return winnow.ErrorMessage(err)
	}
	return "The worker failed; its log says why. All labels are kept. Try again."
}

// asLost returns err when it says that the attempt is no longer the worker's to
// write: the round was cancelled, taken over or moved on.
func asLost(err error) error {
	switch winnow.ErrorCode(err) {
	case winnow.CodeConflict, winnow.CodeCanceled, winnow.CodeNotFound:
		return err
	default:
		return nil
	}
}
