package eaoa

import (
	"cmp"
	"math"
	"slices"
)

// Mixture is a mixture of two normal distributions on the line.
type Mixture struct {
	Means      [2]float64
	Variances  [2]float64
	Weights    [2]float64
	Iterations int
}

const (
	maxIterations = 10
	tolerance     = 0.01 // of the mean log-likelihood between iterations
	varianceFloor = 5e-4 // added to each variance in each M-step
)

// wanted says which component's posterior a score asks for.
type wanted bool

const (
	smallestMean wanted = false
	largestMean  wanted = true
)

// newScore scales a raw score, fits the mixture and takes the wanted component's
// posterior. All of it runs on the sorted values, so that the order of the pool
// cannot touch a single bit.
func newScore(raw []float64, want wanted, monotone bool) *Score {
	s := &Score{Scaled: MinMax(raw), Posterior: make([]float64, len(raw))}
	order := make([]int32, len(raw))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Compare(s.Scaled[a], s.Scaled[b]) })
	sorted := make([]float64, len(raw))
	for i, x := range order {
		sorted[i] = s.Scaled[x]
	}
	if sorted[0] == sorted[len(sorted)-1] {
		s.Mixture = Mixture{Means: [2]float64{sorted[0], sorted[0]}, Variances: [2]float64{varianceFloor, varianceFloor}, Weights: [2]float64{0.5, 0.5}}
		for i := range s.Posterior {
			s.Posterior[i] = 0.5
		}
		return s
	}
	s.Mixture = FitMixture(sorted)
	component := s.Mixture.component(want)
	posterior := make([]float64, len(sorted))
	for i, v := range sorted {
		posterior[i] = s.Mixture.Posterior(v, component)
	}
	if monotone {
		isotonic(posterior, want == largestMean)
		for i := 1; i < len(sorted); i++ { // the pass may round equal scores apart
			if sorted[i] == sorted[i-1] {
				posterior[i] = posterior[i-1]
			}
		}
	}
	for i, x := range order {
		s.Posterior[x] = posterior[i]
	}
	return s
}

// MinMax scales values to [0, 1]; all 0 when they are equal.
func MinMax(v []float64) []float64 {
	out := make([]float64, len(v))
	if len(v) == 0 {
		return out
	}
	lo, hi := slices.Min(v), slices.Max(v)
	if lo == hi {
		return out
	}
	for i, x := range v {
		out[i] = (x - lo) / (hi - lo)
	}
	return out
}

// FitMixture fits two normal distributions to ascending values by EM, from the
// exact two-means split: at most 10 iterations, until the mean log-likelihood
// (of the E-step, before the M-step) moves by less than 0.01.
func FitMixture(sorted []float64) Mixture {
	n := len(sorted)
	first := make([]float64, n) // responsibility of component 0
	for i := range twoMeans(sorted) {
		first[i] = 1
	}
	m := maximise(sorted, first)
	last := math.Inf(-1)
	for m.Iterations < maxIterations {
		likelihood := 0.0
		for i, v := range sorted {
			a, b := m.logJoint(v, 0), m.logJoint(v, 1)
			first[i] = 1 / (1 + math.Exp(b-a))
			likelihood += max(a, b) + math.Log1p(math.Exp(-math.Abs(a-b)))
		}
		likelihood /= float64(n)
		iterations := m.Iterations + 1
		m = maximise(sorted, first)
		m.Iterations = iterations
		if math.Abs(likelihood-last) < tolerance {
			break
		}
		last = likelihood
	}
	return m
}

// maximise is the M-step; first is the responsibility of component 0 for each
// value. Each n_k has ten machine epsilons added, as in scikit-learn, so that an
// empty component divides by something.
func maximise(values, first []float64) Mixture {
	const epsilon = 10 * 0x1p-52
	var m Mixture
	var total, sum [2]float64
	for i, v := range values {
		total[0] += first[i]
		total[1] += 1 - first[i]
		sum[0] += first[i] * v
		sum[1] += (1 - first[i]) * v
	}
	for k := range 2 {
		total[k] += epsilon
		m.Means[k] = sum[k] / total[k]
	}
	var square [2]float64
	for i, v := range values {
		d0, d1 := v-m.Means[0], v-m.Means[1]
		square[0] += first[i] * d0 * d0
		square[1] += (1 - first[i]) * d1 * d1
	}
	for k := range 2 {
		m.Variances[k] = square[k]/total[k] + varianceFloor
		m.Weights[k] = total[k] / (total[0] + total[1])
	}
	return m
}

// logJoint is log(weight * density) of component k at v.
func (m *Mixture) logJoint(v float64, k int) float64 {
	d := v - m.Means[k]
	return math.Log(m.Weights[k]) - 0.5*(math.Log(2*math.Pi*m.Variances[k])+d*d/m.Variances[k])
}

// Posterior is the probability that v came from component k.
func (m *Mixture) Posterior(v float64, k int) float64 {
	return 1 / (1 + math.Exp(m.logJoint(v, 1-k)-m.logJoint(v, k)))
}

func (m *Mixture) component(want wanted) int {
	if (m.Means[1] > m.Means[0]) == (want == largestMean) {
		return 1
	}
	return 0
}

// twoMeans is how many of the ascending values, at least one apart, belong to the
// lower of two clusters of least total squared distance: of all splits the one
// with the largest variance between, found with a running sum. Equal values stay
// together.
func twoMeans(sorted []float64) int {
	n := float64(len(sorted))
	total := 0.0
	for _, v := range sorted {
		total += v
	}
	best, bestGain, sum := 1, math.Inf(-1), 0.0
	for i := 1; i < len(sorted); i++ {
		sum += sorted[i-1]
		if sorted[i] == sorted[i-1] {
			continue
		}
		k := float64(i)
		gap := sum/k - (total-sum)/(n-k)
		if gain := k * (n - k) * gap * gap; gain > bestGain {
			best, bestGain = i, gain
		}
	}
	return best
}

// isotonic replaces v by the closest monotone sequence in least squares (pool
// adjacent violators).
func isotonic(v []float64, rising bool) {
	if !rising {
		slices.Reverse(v)
		defer slices.Reverse(v)
	}
	type run struct {
		mean float64
		n    int
	}
	var runs []run
	for _, x := range v {
		r := run{x, 1}
		for len(runs) > 0 && runs[len(runs)-1].mean >= r.mean {
			p := runs[len(runs)-1]
			runs = runs[:len(runs)-1]
			r = run{(p.mean*float64(p.n) + r.mean*float64(r.n)) / float64(p.n+r.n), p.n + r.n}
		}
		runs = append(runs, r)
	}
	i := 0
	for _, r := range runs {
		for range r.n {
			v[i] = r.mean
			i++
		}
	}
}
