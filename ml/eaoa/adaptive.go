package eaoa

import (
	"math"

	"winnow"
)

// NextK is the k of the next round, after a round with k reached a precision:
// k + a where precision - tP > z, k - a where tP - precision > z and k - a >= 1,
// else k; never more than floor(unlabeled / b), never less than 1. A precision of
// NaN (nothing was decided) moves nothing.
func NextK(s winnow.Settings, k, precision float64, unlabeled int64) float64 {
	switch {
	case precision-s.TargetPrecision > s.KTolerance:
		k += s.KStep
	case s.TargetPrecision-precision > s.KTolerance && k-s.KStep >= 1:
		k -= s.KStep
	}
	most := math.Floor(float64(unlabeled) / float64(max(s.Budget, 1)))
	return max(1, min(k, most))
}
