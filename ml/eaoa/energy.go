package eaoa

import "math"

// EUL is the learning-driven epistemic uncertainty of each row of the detector's
// N x (C+1) logits, the last column being the unknown class:
// -LSE_{c<C} f_c + softplus(f_C) (paper Eq. 3). Small means likely known.
func EUL(logits Matrix) []float64 {
	c := logits.Cols - 1
	out := make([]float64, logits.Rows)
	for i := range out {
		row := logits.Row(i)
		out[i] = softplus(float64(row[c])) - logSumExp(row[:c])
	}
	return out
}

// AU is the aleatoric uncertainty of each row of the classifier's N x C logits:
// -LSE_c g_c + LSE_{c != argmax} g_c, which is log(1 - p_max). Large means
// ambiguous. With C = 1 it is 0 for all.
func AU(logits Matrix) []float64 {
	out := make([]float64, logits.Rows)
	if logits.Cols < 2 {
		return out
	}
	for i := range out {
		row := logits.Row(i)
		top := argmax(row)
		// LSE of the others, relative to the top: log(sum_{c != top} e^(g_c - g_top)).
		// Then AU = rest - log(1 + e^rest), exact however small the rest is.
		peak, sum := math.Inf(-1), 0.0
		for c, v := range row {
			if c != top {
				peak = max(peak, float64(v))
			}
		}
		for c, v := range row {
			if c != top {
				sum += math.Exp(float64(v) - peak)
			}
		}
		rest := peak - float64(row[top]) + math.Log(sum)
		out[i] = rest - softplus(rest)
	}
	return out
}

// Predict returns the column of the largest logit of each row, the lower one of
// equals.
func Predict(logits Matrix) []int {
	out := make([]int, logits.Rows)
	for i := range out {
		out[i] = argmax(logits.Row(i))
	}
	return out
}

func argmax(row []float32) int {
	best := 0
	for c, v := range row {
		if v > row[best] {
			best = c
		}
	}
	return best
}

// logSumExp is log(sum of e^v), without overflow.
func logSumExp[T float32 | float64](v []T) float64 {
	peak := math.Inf(-1)
	for _, x := range v {
		peak = max(peak, float64(x))
	}
	if math.IsInf(peak, 0) {
		return peak
	}
	sum := 0.0
	for _, x := range v {
		sum += math.Exp(float64(x) - peak)
	}
	return peak + math.Log(sum)
}

// softplus is log(1 + e^v), without overflow.
func softplus(v float64) float64 {
	if v > 0 {
		return v + math.Log1p(math.Exp(-v))
	}
	return math.Log1p(math.Exp(v))
}
