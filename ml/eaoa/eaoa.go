// Package eaoa is the query of Energy-based Active Open-set Annotation (Zong and
// Huang, CVPR 2025): from the logits and features of two networks to the images
// that are worth a person's time. It is plain Go and float64 (the similarity
// products alone are float32), knows no network, no database and no clock, and
// gives the same answer for the same input whatever the number of processors.
//
// [Query] is the whole; the parts (energies, reverse k-nearest neighbours,
// mixture, selection, adaptive k) are exported for those who train elsewhere.
package eaoa

import (
	"context"
	"fmt"
	"math"

	"winnow"
)

// Matrix is a row-major array of Rows x Cols float32.
type Matrix struct {
	Rows, Cols int
	Data       []float32
}

// Row returns row i; it shares m's memory.
func (m Matrix) Row(i int) []float32 { return m.Data[i*m.Cols : (i+1)*m.Cols : (i+1)*m.Cols] }

// Empty reports whether m has no rows.
func (m Matrix) Empty() bool { return m.Rows == 0 }

// validate says whether m is rows x cols (cols < 0: any width) and finite.
func (m Matrix) validate(name string, rows, cols int) error {
	if m.Rows != rows || (cols >= 0 && m.Cols != cols) {
		want := fmt.Sprintf("%d x %d", rows, cols)
		if cols < 0 {
			want = fmt.Sprintf("%d rows", rows)
		}
		return winnow.Invalid(name, "The shape is %d x %d; expected %s.", m.Rows, m.Cols, want)
	}
	if len(m.Data) != m.Rows*m.Cols {
		return winnow.Invalid(name, "%d values do not fill %d x %d.", len(m.Data), m.Rows, m.Cols)
	}
	for i, v := range m.Data {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return winnow.Invalid(name, "Row %d, column %d is %v; every value must be finite.", i/m.Cols, i%m.Cols, v)
		}
	}
	return nil
}

// Input is what one query looks at. N is the size of the pool U, M the number of
// labeled examples, C of known classes, d of features.
type Input struct {
	Classes          int    // C, at least 1
	Round            int    // 0 while no unknown example is labeled; else only that it is not 0 matters
	DetectorLogits   Matrix // N x (C+1), the last column is the unknown class
	DetectorFeatures Matrix // N x d, need not be normalised
	ClassifierLogits Matrix // N x C
	LabeledFeatures  Matrix // M x d, the detector's
	Labels           []int  // M; 0..C-1, or C for unknown
}

// Options are the query's settings.
type Options struct {
	Budget     int     // b; more than N is clipped to N
	Neighbours int     // K; more than N is clipped to N
	K          float64 // k, at least 1
	Variant    string  // one of winnow.Variants
	EUD        string  // one of winnow.EUDVariants
	Monotone   bool    // make posteriors monotone in their scores
	Ablation   string  // one of winnow.Ablations
	Seed       int64   // of the random drop when the classes' shares exceed b
}

// OptionsOf are the options that settings ask for, with the round's k and seed.
func OptionsOf(s winnow.Settings, k float64, seed int64) Options {
	return Options{
		Budget: s.Budget, Neighbours: s.Neighbours, K: k, Variant: s.Variant, EUD: s.EUD,
		Monotone: s.Monotone, Ablation: s.Ablation, Seed: seed,
	}
}

// Score is one of the three scores over the pool, by pool index.
type Score struct {
	Scaled    []float64 // min-max scaled to 0..1; all 0 when the score is constant
	Posterior []float64 // of the mixture's component that is wanted; all 0.5 when constant
	Mixture   Mixture   // fitted on Scaled
}

// Result is a query and why it was made. A score that the ablation leaves out is
// nil.
type Result struct {
	EUL, EUD  *Score // Posterior is that of the component with the smallest mean: clean
	AU        *Score // Posterior is that of the component with the largest mean: informative
	Predicted []int  // class the classifier predicts, by pool index
	Selected  []int  // min(b, N) distinct pool indices, the most informative first
}

// Clean is the probability that pool image i is of a known class: the product of
// the posteriors of both epistemic scores (paper Eq. 8), of one where the other is
// left out, and 1 where both are.
func (r *Result) Clean(i int) float64 {
	p := 1.0
	if r.EUL != nil {
		p *= r.EUL.Posterior[i]
	}
	if r.EUD != nil {
		p *= r.EUD.Posterior[i]
	}
	return p
}

// Query scores the pool and selects min(b, N) images of it. Errors are of
// winnow.CodeInvalid and name the matrix or option at fault, or are ctx's.
func Query(ctx context.Context, in Input, o Options) (*Result, error) {
	use, err := partsOf(o.Ablation)
	if err != nil {
		return nil, err
	}
	if err := in.validate(use); err != nil {
		return nil, err
	}
	if err := o.validate(); err != nil {
		return nil, err
	}
	if in.Classes == 1 {
		use.au = false // there is no second class: AU is 0 for all
	}
	r := &Result{Predicted: Predict(in.ClassifierLogits)}
	if use.euL {
		r.EUL = newScore(EUL(in.DetectorLogits), smallestMean, o.Monotone)
	}
	if use.euD {
		arrows, err := CountArrows(ctx, in.LabeledFeatures, in.Labels, in.DetectorFeatures, in.Classes, o.Neighbours)
		if err != nil {
			return nil, err
		}
		eud, err := EUD(arrows, o.EUD, in.Round)
		if err != nil {
			return nil, err
		}
		r.EUD = newScore(eud, smallestMean, o.Monotone)
	}
	// C = 1 still reports AU, though the query does not look at it.
	if use.au || in.Classes == 1 {
		r.AU = newScore(AU(in.ClassifierLogits), largestMean, o.Monotone)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	r.Selected = r.query(in.Classes, o, use)
	return r, nil
}

// parts are the scores that a query uses.
type parts struct{ euL, euD, au bool }

func partsOf(ablation string) (parts, error) {
	switch ablation {
	case "", "none":
		return parts{true, true, true}, nil
	case "no-eu-d":
		return parts{euL: true, au: true}, nil
	case "eu-only":
		return parts{euL: true, euD: true}, nil
	case "au-only":
		return parts{au: true}, nil
	}
	return parts{}, winnow.Invalid("ablation", "%q is not one of %q.", ablation, winnow.Ablations)
}

func (in Input) validate(use parts) error {
	n := in.ClassifierLogits.Rows
	if in.Classes < 1 {
		return winnow.Invalid("classes", "%d known classes; at least 1 is needed.", in.Classes)
	}
	if n == 0 {
		return winnow.Invalid("classifier_logits", "The pool is empty: there is nothing to query.")
	}
	if err := in.ClassifierLogits.validate("classifier_logits", n, in.Classes); err != nil {
		return err
	}
	if use.euL {
		if err := in.DetectorLogits.validate("detector_logits", n, in.Classes+1); err != nil {
			return err
		}
	}
	if !use.euD {
		return nil
	}
	if err := in.DetectorFeatures.validate("detector_features", n, -1); err != nil {
		return err
	}
	if in.DetectorFeatures.Cols == 0 {
		return winnow.Invalid("detector_features", "There are no features.")
	}
	if len(in.Labels) == 0 {
		return winnow.Invalid("labels", "Nothing is labeled, so no score can be data-driven: query at random first.")
	}
	if err := in.LabeledFeatures.validate("labeled_features", len(in.Labels), in.DetectorFeatures.Cols); err != nil {
		return err
	}
	for i, l := range in.Labels {
		if l < 0 || l > in.Classes {
			return winnow.Invalid("labels", "Label %d is %d; expected 0 to %d, or %d for unknown.", i, l, in.Classes-1, in.Classes)
		}
	}
	return nil
}

func (o Options) validate() error {
	switch {
	case o.Budget < 1:
		return winnow.Invalid("budget", "The budget is %d; at least 1 image must be queried.", o.Budget)
	case o.Neighbours < 1:
		return winnow.Invalid("neighbours", "The number of neighbours is %d; at least 1 is needed.", o.Neighbours)
	case math.IsNaN(o.K) || o.K < 1:
		return winnow.Invalid("k", "k is %v; at least 1 is needed.", o.K)
	case o.Variant != PerClass && o.Variant != Global:
		return winnow.Invalid("variant", "%q is not one of %q.", o.Variant, winnow.Variants)
	}
	return nil
}
