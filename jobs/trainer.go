package jobs

import (
	"context"

	"winnow"
	"winnow/ml"
	"winnow/ml/backend"
	"winnow/ml/strategy"
)

type trainer struct{ backend *backend.Backend }

// NewTrainer trains on a backend.
func NewTrainer(be *backend.Backend) Trainer { return trainer{be} }

func (t trainer) Name() string { return t.backend.Name() }

func (t trainer) RunRound(ctx context.Context, in ml.RoundInput, progress func(winnow.Progress)) (*ml.RoundOutput, error) {
	return ml.RunRound(ctx, t.backend, in, progress)
}

func (t trainer) NewScorer(nets ml.Networks, needs strategy.Needs) (Scorer, error) {
	return ml.NewScorer(t.backend, nets, needs)
}
