package strategy

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// Uncertainty queries the images with the highest entropy of the classifier's
// softmax.
type Uncertainty struct{}

// Name returns "uncertainty".
func (Uncertainty) Name() string { return "uncertainty" }

// Needs returns the classifier's logits.
func (Uncertainty) Needs() Needs { return Needs{ClassifierLogits: true} }

// Query selects the images of highest entropy, that one first.
func (Uncertainty) Query(_ context.Context, in Input) (Query, error) {
	return byEntropy(in, func(a, b float64) int { return cmp.Compare(b, a) })
}

// byEntropy selects the first of the pool in the order of entropies, of equals the
// lower index.
func byEntropy(in Input, compare func(a, b float64) int) (Query, error) {
	if err := expect("classifier_logits", in.PoolClassifierLogits, in.Pool, in.Classes); err != nil {
		return Query{}, err
	}
	entropy := make([]float64, in.Pool)
	order := make([]int, in.Pool)
	p := make([]float64, in.Classes)
	for i := range order {
		order[i] = i
		softmax(p, in.PoolClassifierLogits.Row(i))
		for _, v := range p {
			if v > 0 {
				entropy[i] -= v * math.Log(v)
			}
		}
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(compare(entropy[a], entropy[b]), cmp.Compare(a, b))
	})
	return Query{Selected: order[:in.budget()]}, nil
}

// softmax fills p with the probabilities of logits.
func softmax(p []float64, logits []float32) {
	peak := slices.Max(logits)
	sum := 0.0
	for c, v := range logits {
		p[c] = math.Exp(float64(v) - float64(peak))
		sum += p[c]
	}
	for c := range p {
		p[c] /= sum
	}
}
