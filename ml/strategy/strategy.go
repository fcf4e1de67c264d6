// Package strategy holds the query strategies: EAOA and the methods it is compared
// with, one file each, behind one interface. A strategy looks at what the networks
// say of the pool and names the images to label next; the same input and seed
// always give the same query.
package strategy

import (
	"context"
	"fmt"
	"math"

	"winnow"
	"winnow/ml/eaoa"
)

// Strategy chooses which images of the pool are labeled next.
type Strategy interface {
	// Name is the one that winnow.Strategies lists.
	Name() string
	// Needs says what of the networks' outputs the strategy reads.
	Needs() Needs
	// Query selects min(b, N) images. It may fail with winnow.CodeInvalid on
	// inputs that do not fit together, or with ctx's error.
	Query(ctx context.Context, in Input) (Query, error)
}

// Needs are the outputs of the networks that a strategy reads; what it does not need
// may be left empty in its Input.
type Needs struct{ DetectorLogits, DetectorFeatures, ClassifierLogits, ClassifierFeatures bool }

// Detector reports whether anything of the detector is read.
func (n Needs) Detector() bool { return n.DetectorLogits || n.DetectorFeatures }

// Classifier reports whether anything of the classifier is read.
func (n Needs) Classifier() bool { return n.ClassifierLogits || n.ClassifierFeatures }

// Input is what a strategy may look at. N is Pool, M the number of labeled
// examples, C of known classes, d of a network's features.
type Input struct {
	Settings winnow.Settings
	Classes  int // C
	Round    int // number of the round, from 0
	K        float64
	Seed     int64
	Pool     int // N; at least 1

	PoolDetectorLogits     eaoa.Matrix // N x (C+1), the last column is the unknown class
	PoolDetectorFeatures   eaoa.Matrix // N x d
	PoolClassifierLogits   eaoa.Matrix // N x C
	PoolClassifierFeatures eaoa.Matrix // N x d

	LabeledDetectorFeatures   eaoa.Matrix // M x d
	LabeledClassifierFeatures eaoa.Matrix // M x d
	Labels                    []int       // M; 0..C-1, C for unknown
}

// Query is what a strategy chose.
type Query struct {
	Selected []int           // distinct indices into the pool, the first to be labeled first
	Scores   []winnow.Scores // of Selected, in the same order; nil where the strategy has none
}

// ByName returns the strategy with a name of winnow.Strategies.
func ByName(name string) (Strategy, error) {
	for _, s := range []Strategy{EAOA{}, Random{}, Uncertainty{}, Certainty{}, Coreset{}, Badge{}} {
		if s.Name() == name {
			return s, nil
		}
	}
	return nil, winnow.Invalid("strategy", "%q is not one of %q.", name, winnow.Strategies)
}

// budget is how many images the query has.
func (in Input) budget() int { return min(in.Settings.Budget, in.Pool) }

// expect checks that a matrix has the pool's rows, the columns asked for (any if
// negative) and no NaN or infinity.
func expect(name string, m eaoa.Matrix, rows, cols int) error {
	if m.Rows != rows || (cols >= 0 && m.Cols != cols) || len(m.Data) != m.Rows*m.Cols {
		return winnow.Invalid(name, "The shape is %d x %d with %d values; expected %d rows and %s columns.",
			m.Rows, m.Cols, len(m.Data), rows, map[bool]string{true: fmt.Sprint(cols), false: "any number of"}[cols >= 0])
	}
	for i, v := range m.Data {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return winnow.Invalid(name, "Row %d, column %d is %v; every value must be finite.", i/m.Cols, i%m.Cols, v)
		}
	}
	return nil
}
