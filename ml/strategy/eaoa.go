package strategy

import (
	"context"
	"slices"

	"winnow"
	"winnow/ml/eaoa"
)

// EAOA queries what is probably of a known class and, of that, what the classifier
// finds hardest: see package eaoa. Where the detector could not be trained, its
// matrices may be empty, and the query is by aleatoric uncertainty alone.
type EAOA struct{}

// Name returns "eaoa".
func (EAOA) Name() string { return "eaoa" }

// Needs returns both outputs of the detector and the classifier's logits.
func (EAOA) Needs() Needs {
	return Needs{DetectorLogits: true, DetectorFeatures: true, ClassifierLogits: true}
}

// Query selects as package eaoa does, and gives the scores of what it selected.
func (EAOA) Query(ctx context.Context, in Input) (Query, error) {
	o := eaoa.OptionsOf(in.Settings, in.K, in.Seed)
	if in.PoolDetectorLogits.Empty() {
		o.Ablation = "au-only"
	}
	if err := expect("classifier_logits", in.PoolClassifierLogits, in.Pool, in.Classes); err != nil {
		return Query{}, err
	}
	round := 0
	if slices.Contains(in.Labels, in.Classes) {
		round = 1 // imported labels may hold unknowns before the first query
	}
	r, err := eaoa.Query(ctx, eaoa.Input{
		Classes:          in.Classes,
		Round:            round,
		DetectorLogits:   in.PoolDetectorLogits,
		DetectorFeatures: in.PoolDetectorFeatures,
		ClassifierLogits: in.PoolClassifierLogits,
		LabeledFeatures:  in.LabeledDetectorFeatures,
		Labels:           in.Labels,
	}, o)
	if err != nil {
		return Query{}, err
	}
	q := Query{Selected: r.Selected, Scores: make([]winnow.Scores, len(r.Selected))}
	for i, x := range r.Selected {
		s := winnow.Scores{HasScores: true, Clean: r.Clean(x), Predicted: r.Predicted[x]}
		if r.EUL != nil {
			s.EUL = r.EUL.Scaled[x]
		}
		if r.EUD != nil {
			s.EUD = r.EUD.Scaled[x]
		}
		if r.AU != nil {
			s.AU, s.Info = r.AU.Scaled[x], r.AU.Posterior[x]
		}
		q.Scores[i] = s
	}
	return q, nil
}
