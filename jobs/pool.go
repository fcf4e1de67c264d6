package jobs

import (
	"context"

	"winnow"
	"winnow/ml"
	"winnow/ml/nn"
	"winnow/ml/strategy"
)

// chunkImages is how many images of a pool are read and scored at a time.
const chunkImages = 4096

// pool is a round's pool in the store: its pixels are read as they are needed.
type pool struct {
	w     *roundWorker
	round *winnow.Round
	ids   []winnow.ImageID
}

func newPool(w *roundWorker, round *winnow.Round, ids []winnow.ImageID) *pool {
	return &pool{w: w, round: round, ids: ids}
}

func (p *pool) Len() int { return len(p.ids) }

func (p *pool) Images(ctx context.Context, at []int) (nn.Images, error) {
	ids := make([]winnow.ImageID, len(at))
	for i, index := range at {
		ids[i] = p.ids[index]
	}
	return p.w.pixels(ctx, ids, p.round.Settings.InputSize)
}

func (p *pool) Score(ctx context.Context, nets ml.Networks, needs strategy.Needs, progress func(scored int)) (ml.Scores, error) {
	scorer, err := p.w.trainer.NewScorer(nets, needs)
	if err != nil {
		return ml.Scores{}, err
	}
	defer scorer.Close()
	out := nets.NewScores(len(p.ids), needs)
	for from := 0; from < len(p.ids); from += chunkImages {
		to := min(from+chunkImages, len(p.ids))
		images, err := p.w.pixels(ctx, p.ids[from:to], p.round.Settings.InputSize)
		if err != nil {
			return ml.Scores{}, err
		}
		scores, err := scorer.Score(ctx, images, func(scored int) { progress(from + scored) })
		if err != nil {
			return ml.Scores{}, err
		}
		out.Rows(from, to).Set(scores)
	}
	return out, nil
}
