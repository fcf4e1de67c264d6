package strategy

import (
	"cmp"
	"context"
)

// Certainty queries the images with the lowest entropy of the classifier's
// softmax: the most likely to be known, the least likely to teach anything.
type Certainty struct{}

func (Certainty) Name() string { return "certainty" }

func (Certainty) Needs() Needs { return Needs{Classifier: true} }

func (Certainty) Query(_ context.Context, in Input) (Query, error) {
	return byEntropy(in, cmp.Compare[float64])
}
