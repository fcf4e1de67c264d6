package strategy

import (
	"context"
	"math"

	"winnow/ml/eaoa"
)

// Coreset is k-center greedy (Sener and Savarese, ICLR 2018): again and again the
// pool image that is farthest, in the classifier's features, from everything
// labeled or already chosen.
type Coreset struct{}

// Name returns "coreset".
func (Coreset) Name() string { return "coreset" }

// Needs returns the classifier's features.
func (Coreset) Needs() Needs { return Needs{ClassifierFeatures: true} }

// Query selects centres in the order in which the greedy takes them.
func (Coreset) Query(ctx context.Context, in Input) (Query, error) {
	pool, labeled := in.PoolClassifierFeatures, in.LabeledClassifierFeatures
	if err := expect("classifier_features", pool, in.Pool, -1); err != nil {
		return Query{}, err
	}
	if err := expect("labeled_features", labeled, len(in.Labels), pool.Cols); err != nil {
		return Query{}, err
	}
	nearest := make([]float64, in.Pool) // squared distance to the nearest centre
	for i := range nearest {
		nearest[i] = math.Inf(1)
	}
	if err := approach(ctx, nearest, pool, labeled); err != nil {
		return Query{}, err
	}
	var q Query
	for range in.budget() {
		farthest := 0
		for i, d := range nearest {
			if d > nearest[farthest] {
				farthest = i
			}
		}
		q.Selected = append(q.Selected, farthest)
		if err := approach(ctx, nearest, pool, eaoa.Matrix{Rows: 1, Cols: pool.Cols, Data: pool.Row(farthest)}); err != nil {
			return Query{}, err
		}
		nearest[farthest] = -1 // not again, though others may be at distance 0 too
	}
	return q, nil
}

// approach lowers each pool image's squared distance to the nearest centre.
func approach(ctx context.Context, nearest []float64, pool, centres eaoa.Matrix) error {
	return parallel(ctx, pool.Rows, func(i int) {
		x := pool.Row(i)
		for c := range centres.Rows {
			if nearest[i] < 0 {
				return
			}
			nearest[i] = min(nearest[i], squaredDistance(x, centres.Row(c)))
		}
	})
}

func squaredDistance(a, b []float32) float64 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	i := 0
	for ; i+4 <= len(a); i += 4 {
		d0, d1, d2, d3 := a[i]-b[i], a[i+1]-b[i+1], a[i+2]-b[i+2], a[i+3]-b[i+3]
		s0 += d0 * d0
		s1 += d1 * d1
		s2 += d2 * d2
		s3 += d3 * d3
	}
	for ; i < len(a); i++ {
		d := a[i] - b[i]
		s0 += d * d
	}
	return float64(s0) + float64(s1) + float64(s2) + float64(s3)
}
