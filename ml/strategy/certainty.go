package strategy

import (
	"cmp"
	"context"
)

// Certainty queries the images with the lowest entropy of the classifier's
// softmax: the most likely to be known, the least likely to teach anything.
type Certainty struct{}

// Name returns "certainty".
func (Certainty) Name() string { return "certainty" }

// Needs returns the classifier's logits.
func (Certainty) Needs() Needs { return Needs{ClassifierLogits: true} }

// Query selects the images of lowest entropy, that one first.
func (Certainty) Query(_ context.Context, in Input) (Query, error) {
	return byEntropy(in, cmp.Compare[float64])
}
