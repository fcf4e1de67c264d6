package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"winnow"
)

// pace says how often a worker writes and looks.
type pace struct {
	write     time.Duration // at most one progress write in this time
	heartbeat time.Duration // and at least one in this
	logEvery  time.Duration // progress lines in the log, within one stage
	reap      time.Duration // how often to look for stale rounds
	stale     time.Duration // a round or chunk without a heartbeat for this long is taken over
	poll      time.Duration // how often to look whether others are done
	stall     time.Duration // no step of a computation takes longer than this, unless all do
	chunk     int           // images that are scored between two looks, at most
}

var defaultPace = pace{
	write:     500 * time.Millisecond,
	heartbeat: 5 * time.Second,
	logEvery:  15 * time.Second,
	reap:      5 * time.Second,
	stale:     20 * time.Second,
	poll:      200 * time.Millisecond,
	stall:     30 * time.Minute,
	chunk:     4096,
}

// reporter writes a round's progress. It runs beside the training, so that the round
// does not look dead during a long step, and so that training never waits for it.
type reporter struct {
	rounds Rounds
	round  *winnow.Round
	pace   pace
	log    *slog.Logger
	start  time.Time
	watch  *watch
	hung   func(error)

	mu      sync.Mutex
	last    winnow.Progress
	changed bool
	logged  time.Time
}

func newReporter(rounds Rounds, round *winnow.Round, p pace, hung func(error), log *slog.Logger) *reporter {
	return &reporter{
		rounds: rounds, round: round, pace: p, log: log, start: time.Now(), watch: newWatch(p.stall), hung: hung,
		last: winnow.Progress{Stage: "loading"}, changed: true,
	}
}

// report takes note of progress; run writes it.
func (r *reporter) report(p winnow.Progress) {
	r.watch.touch()
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.Elapsed == 0 {
		p.Elapsed = time.Since(r.start)
	}
	if p.Stage != r.last.Stage || time.Since(r.logged) >= r.pace.logEvery {
		r.logged = time.Now()
		r.log.Info("round progress", progressAttrs(p)...)
	}
	r.last, r.changed = p, true
}

// saving reports the last stage, with the curves that led there.
func (r *reporter) saving() {
	r.mu.Lock()
	p := r.last
	r.mu.Unlock()
	r.report(winnow.Progress{Stage: "saving", Fraction: 1, Curves: p.Curves})
}

// run writes until ctx ends. It cancels the attempt with the store's answer when the
// round is no longer this worker's, and lets the round go when its computation hangs.
func (r *reporter) run(ctx context.Context, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(r.pace.write)
	defer tick.Stop()
	var written time.Time
	for {
		r.mu.Lock()
		p, due := r.last, r.changed || time.Since(written) >= r.pace.heartbeat
		r.changed = false
		r.mu.Unlock()
		// Loading and querying report no steps.
		if err := r.watch.err(); err != nil && (p.Stage == "training" || p.Stage == "scoring") {
			cancel(err)
			r.hung(err)
			return
		}
		if due {
			err := r.rounds.RoundProgress(ctx, r.round.ID, r.round.Attempt, stateOf(p.Stage), p)
			if lost := asLost(err); lost != nil {
				cancel(lost)
				return
			}
			if err != nil && ctx.Err() == nil {
				r.log.Warn("cannot write progress of the round; trying again", "error", err)
			}
			written = time.Now()
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// stateOf maps a stage to the state that people see.
func stateOf(stage string) winnow.RoundState {
	switch stage {
	case "scoring", "querying", "saving":
		return winnow.RoundScoring
	default:
		return winnow.RoundTraining
	}
}

func progressAttrs(p winnow.Progress) []any {
	attrs := []any{"stage", p.Stage}
	if p.Network != "" {
		attrs = append(attrs, "network", p.Network)
	}
	if p.Epochs > 0 {
		attrs = append(attrs, "epoch", p.Epoch, "epochs", p.Epochs)
	}
	if p.Epoch > 0 {
		attrs = append(attrs, "loss", fmt.Sprintf("%.3f", p.Loss))
	}
	if p.ToScore > 0 {
		attrs = append(attrs, "scored", p.Scored, "of", p.ToScore)
	}
	if p.SecondsLeft > 0 {
		attrs = append(attrs, "left", time.Duration(p.SecondsLeft*float64(time.Second)).Round(time.Second).String())
	}
	return attrs
}
