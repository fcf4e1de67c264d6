package strategy

import (
	"context"
	"math"

	"winnow/ml/eaoa"
)

// Badge (Ash et al., ICLR 2020) spreads the query over gradient embeddings, the
// gradient of the classifier's loss at its own prediction with respect to the last
// layer: k-means++ seeding, started at the longest. The embedding of an image is
// the outer product of (p - onehot(argmax p)) and its features; distances come
// from the factors, so the C x d numbers are never written down.
type Badge struct{}

// Name returns "badge".
func (Badge) Name() string { return "badge" }

// Needs returns both outputs of the classifier.
func (Badge) Needs() Needs { return Needs{ClassifierLogits: true, ClassifierFeatures: true} }

// Query selects centres in the order in which the seeding draws them.
func (Badge) Query(ctx context.Context, in Input) (Query, error) {
	if err := expect("classifier_logits", in.PoolClassifierLogits, in.Pool, in.Classes); err != nil {
		return Query{}, err
	}
	features := in.PoolClassifierFeatures
	if err := expect("classifier_features", features, in.Pool, -1); err != nil {
		return Query{}, err
	}
	g := newGradients(in.PoolClassifierLogits, features)
	rng := newRand(in)

	nearest := make([]float64, in.Pool) // squared distance to the nearest chosen; -1 for the chosen
	first := 0
	for i := range nearest {
		nearest[i] = math.Inf(1)
		if g.square[i] > g.square[first] {
			first = i
		}
	}
	q := Query{Selected: []int{first}}
	for chosen := first; ; {
		nearest[chosen] = -1
		err := parallel(ctx, in.Pool, func(i int) {
			if nearest[i] > 0 {
				nearest[i] = min(nearest[i], g.squaredDistance(i, chosen))
			}
		})
		if err != nil {
			return Query{}, err
		}
		if len(q.Selected) == in.budget() {
			return q, nil
		}
		chosen = sample(nearest, rng.Float64())
		q.Selected = append(q.Selected, chosen)
	}
}

// sample draws an index with probability proportional to its weight, u being
// uniform in [0, 1). Negative weights are never drawn; when the others are all 0
// they are equally likely.
func sample(weight []float64, u float64) int {
	total, open := 0.0, 0
	for _, w := range weight {
		if w >= 0 {
			total += w
			open++
		}
	}
	uniform := total == 0
	if uniform {
		total = float64(open)
	}
	left, last := u*total, 0
	for i, w := range weight {
		if uniform && w == 0 {
			w = 1
		}
		if w <= 0 {
			continue
		}
		last = i
		if left -= w; left < 0 {
			return i
		}
	}
	return last // rounding ate the end
}

// gradients are the embeddings by their two factors.
type gradients struct {
	residual eaoa.Matrix // N x C: p - onehot(argmax p)
	features eaoa.Matrix // N x d
	square   []float64   // N: squared length of the outer product
}

func newGradients(logits, features eaoa.Matrix) gradients {
	g := gradients{
		residual: eaoa.Matrix{Rows: logits.Rows, Cols: logits.Cols, Data: make([]float32, len(logits.Data))},
		features: features,
		square:   make([]float64, logits.Rows),
	}
	p := make([]float64, logits.Cols)
	predicted := eaoa.Predict(logits)
	for i := range g.square {
		softmax(p, logits.Row(i))
		p[predicted[i]]--
		row := g.residual.Row(i)
		for c, v := range p {
			row[c] = float32(v)
		}
		g.square[i] = dot(row, row) * dot(features.Row(i), features.Row(i))
	}
	return g
}

func (g gradients) squaredDistance(i, j int) float64 {
	cross := dot(g.residual.Row(i), g.residual.Row(j)) * dot(g.features.Row(i), g.features.Row(j))
	return max(0, g.square[i]+g.square[j]-2*cross)
}

func dot(a, b []float32) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += float64(a[i]) * float64(b[i])
		s1 += float64(a[i+1]) * float64(b[i+1])
		s2 += float64(a[i+2]) * float64(b[i+2])
		s3 += float64(a[i+3]) * float64(b[i+3])
	}
	for ; i < len(a); i++ {
		s0 += float64(a[i]) * float64(b[i])
	}
	return s0 + s1 + s2 + s3
}
