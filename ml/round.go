// Package ml runs the machine's part of a round: train the networks on what is
// labeled, score the pool, and choose what to label next. It takes slices, a seed and
// a progress callback, and knows no database and no HTTP.
package ml

import (
	"context"

	"winnow"
	"winnow/ml/backend"
	"winnow/ml/nn"
)

// RoundInput is all that a round depends on; the same input gives the same query on
// one backend.
type RoundInput struct {
	Settings winnow.Settings
	Classes  int // C
	Number   int // of the round
	K        float64
	Seed     int64

	Labeled    nn.Images
	Labels     []int // 0..C-1, C for unknown
	Pool       nn.Images
	Test       nn.Images
	TestLabels []int // known classes only
}

// Choice is one image of the query: an index into the pool, and why.
type Choice struct {
	Index  int
	Scores winnow.Scores
}

// RoundOutput is the query in rank order, the figures, and the networks (nil where a
// network was not trained).
type RoundOutput struct {
	Query                []Choice
	ColdStart            bool
	Metrics              winnow.Metrics
	Detector, Classifier *nn.Network
}

// RunRound trains, scores and queries.
func RunRound(ctx context.Context, be *backend.Backend, in RoundInput, progress func(winnow.Progress)) (*RoundOutput, error) {
	return nil, winnow.Errorf(winnow.CodeInternal, "rounds are not there yet")
}
