package eaoa

import (
	"math"

	"winnow"
)

// The variants of the data-driven score.
const (
	Reference = "reference" // arrows weighted by class size; what the published implementation computes
	Paper     = "paper"     // Eq. 4-7 and 3 to the letter
	Smoothed  = "smoothed"  // log of the ratio of arrows, one added to each
)

// EUD is the data-driven epistemic uncertainty of every pool image, from the
// arrows into it. Small means likely known. In round 0 no unknown example is
// labeled yet, and the reference variant has another form.
//
//   - reference: l_c = n_c * mean_{c<C}(N_c) / N_c (0 where N_c is 0), and EU_D =
//     -LSE_{c<C} l_c + softplus(l_C). In round 0: l_c = n_c * (sum_c N_c / (C+1)) /
//     N_c and EU_D = -LSE_{c<C} l_c.
//   - paper: -log(sum_{c<C} n_c) + log(1 + n_C). Where no known arrow arrives it is
//     infinite, and takes the largest finite value of the pool.
//   - smoothed: log((1 + n_C) / (1 + sum_{c<C} n_c)).
func EUD(a *Arrows, variant string, round int) ([]float64, error) {
	switch variant {
	case Reference:
		return a.reference(round), nil
	case Paper:
		return a.paper(), nil
	case Smoothed:
		return a.smoothed(), nil
	}
	return nil, winnow.Invalid("eu_d", "%q is not one of %q.", variant, winnow.EUDVariants)
}

func (a *Arrows) reference(round int) []float64 {
	c := len(a.Labeled) - 1
	known := 0
	for _, n := range a.Labeled[:c] {
		known += n
	}
	fair := float64(known) / float64(c)
	if round == 0 {
		fair = float64(known+a.Labeled[c]) / float64(c+1)
	}
	weight := make([]float64, c+1)
	for i, n := range a.Labeled {
		if n > 0 {
			weight[i] = fair / float64(n)
		}
	}
	out := make([]float64, len(a.Into[0]))
	l := make([]float64, c)
	for x := range out {
		for i := range l {
			l[i] = float64(a.Into[i][x]) * weight[i]
		}
		out[x] = -logSumExp(l)
		if round != 0 {
			out[x] += softplus(float64(a.Into[c][x]) * weight[c])
		}
	}
	return out
}

func (a *Arrows) paper() []float64 {
	out := make([]float64, len(a.Into[0]))
	largest := math.Inf(-1)
	for x := range out {
		known, unknown := a.at(x)
		out[x] = math.Log1p(unknown) - math.Log(known)
		if known > 0 {
			largest = max(largest, out[x])
		}
	}
	if math.IsInf(largest, -1) {
		largest = 0 // nothing known is labeled: the score says nothing
	}
	for x, v := range out {
		if math.IsInf(v, 1) {
			out[x] = largest
		}
	}
	return out
}

func (a *Arrows) smoothed() []float64 {
	out := make([]float64, len(a.Into[0]))
	for x := range out {
		known, unknown := a.at(x)
		out[x] = math.Log1p(unknown) - math.Log1p(known)
	}
	return out
}

// at returns the arrows into pool image x from known and from unknown examples.
func (a *Arrows) at(x int) (known, unknown float64) {
	c := len(a.Into) - 1
	for _, into := range a.Into[:c] {
		known += float64(into[x])
	}
	return known, float64(a.Into[c][x])
}
