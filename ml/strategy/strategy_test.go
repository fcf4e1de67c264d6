package strategy_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"winnow"
	"winnow/ml/eaoa"
	"winnow/ml/strategy"
)

// input is a made-up round: n pool images, m labeled, c classes, d features.
func input(seed uint64, n, m, c, d, budget int) strategy.Input {
	rng := rand.New(rand.NewPCG(seed, 1))
	matrix := func(rows, cols int) eaoa.Matrix {
		a := eaoa.Matrix{Rows: rows, Cols: cols, Data: make([]float32, rows*cols)}
		for i := range a.Data {
			a.Data[i] = float32(rng.NormFloat64())
		}
		return a
	}
	s := winnow.DefaultSettings()
	s.Budget, s.Neighbours = budget, 20
	in := strategy.Input{
		Settings: s, Classes: c, Round: 1, K: 3, Seed: int64(seed), Pool: n,
		PoolDetectorLogits: matrix(n, c+1), PoolDetectorFeatures: matrix(n, d),
		PoolClassifierLogits: matrix(n, c), PoolClassifierFeatures: matrix(n, d),
		LabeledDetectorFeatures: matrix(m, d), LabeledClassifierFeatures: matrix(m, d),
		Labels: make([]int, m),
	}
	for i := range in.Labels {
		in.Labels[i] = rng.IntN(c + 1)
	}
	return in
}

func TestEveryStrategyQueriesDistinctImagesAndRepeats(t *testing.T) {
	t.Parallel()
	for _, name := range winnow.Strategies {
		s, err := strategy.ByName(name)
		if err != nil || s.Name() != name {
			t.Fatalf("%s: %v %v", name, s, err)
		}
		for _, budget := range []int{1, 17, 300, 1000} {
			in := input(7, 300, 40, 4, 16, budget)
			q, err := s.Query(t.Context(), in)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			again, _ := s.Query(t.Context(), in)
			if !slices.Equal(q.Selected, again.Selected) {
				t.Errorf("%s: the same input gave two queries", name)
			}
			seen := map[int]bool{}
			for _, i := range q.Selected {
				if i < 0 || i >= in.Pool || seen[i] {
					t.Fatalf("%s: %d is outside the pool or chosen twice", name, i)
				}
				seen[i] = true
			}
			if len(seen) != min(budget, in.Pool) {
				t.Errorf("%s: %d chosen of a budget of %d", name, len(seen), budget)
			}
			if q.Scores != nil && len(q.Scores) != len(q.Selected) {
				t.Errorf("%s: %d scores", name, len(q.Scores))
			}
		}
	}
	if _, err := strategy.ByName("magic"); winnow.ErrorCode(err) != winnow.CodeInvalid {
		t.Errorf("an unknown strategy: %v", err)
	}
}

func TestNeedsIsWhatIsRead(t *testing.T) {
	t.Parallel()
	for _, name := range winnow.Strategies {
		s, _ := strategy.ByName(name)
		in := input(3, 50, 10, 3, 8, 5)
		for _, of := range []struct {
			needed   bool
			matrices []*eaoa.Matrix
		}{
			{s.Needs().DetectorLogits, []*eaoa.Matrix{&in.PoolDetectorLogits}},
			{s.Needs().DetectorFeatures, []*eaoa.Matrix{&in.PoolDetectorFeatures, &in.LabeledDetectorFeatures}},
			{s.Needs().ClassifierLogits, []*eaoa.Matrix{&in.PoolClassifierLogits}},
			{s.Needs().ClassifierFeatures, []*eaoa.Matrix{&in.PoolClassifierFeatures, &in.LabeledClassifierFeatures}},
		} {
			for _, m := range of.matrices {
				if !of.needed {
					*m = eaoa.Matrix{}
				}
			}
		}
		if _, err := s.Query(t.Context(), in); err != nil {
			t.Errorf("%s reads what it does not need: %v", name, err)
		}
	}
}

func TestStrategiesRefuseWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	for _, name := range winnow.Strategies[2:] {
		s, _ := strategy.ByName(name)
		in := input(3, 50, 10, 3, 8, 5)
		in.PoolClassifierLogits.Data[4] = float32(math.NaN())
		in.PoolClassifierFeatures.Data[4] = float32(math.Inf(1))
		if _, err := s.Query(t.Context(), in); winnow.ErrorCode(err) != winnow.CodeInvalid {
			t.Errorf("%s and NaN: %v", name, err)
		}
		in.Pool = 51
		if _, err := s.Query(t.Context(), in); winnow.ErrorCode(err) != winnow.CodeInvalid {
			t.Errorf("%s and a pool of another size: %v", name, err)
		}
	}
}

func TestEntropyOrder(t *testing.T) {
	t.Parallel()
	in := input(1, 3, 2, 2, 2, 3)
	in.PoolClassifierLogits.Data = []float32{0, 1, 0, 0, 9, 0}
	up, _ := strategy.Uncertainty{}.Query(t.Context(), in)
	down, _ := strategy.Certainty{}.Query(t.Context(), in)
	if !slices.Equal(up.Selected, []int{1, 0, 2}) || !slices.Equal(down.Selected, []int{2, 0, 1}) {
		t.Errorf("uncertainty %v, certainty %v", up.Selected, down.Selected)
	}
}

func TestCoresetCovers(t *testing.T) {
	t.Parallel()
	in := input(1, 4, 1, 2, 1, 3)
	in.PoolClassifierFeatures.Data = []float32{1, 10, 9, -6}
	in.LabeledClassifierFeatures.Data = []float32{0}
	q, err := strategy.Coreset{}.Query(t.Context(), in)
	// 10 is farthest from 0; then -6; then 1 and 9 are both 1 away from a centre.
	if err != nil || !slices.Equal(q.Selected, []int{1, 3, 0}) {
		t.Errorf("%v %v", q.Selected, err)
	}
}

func TestBadgeStartsAtTheLongestAndAvoidsDuplicates(t *testing.T) {
	t.Parallel()
	in := input(1, 5, 1, 2, 2, 2)
	in.PoolClassifierLogits.Data = []float32{0, 0, 0, 0, 0, 0, 0, 0, 5, 0}
	in.PoolClassifierFeatures.Data = []float32{3, 0, 3, 0, 3, 0, 0, 1, 0, 0}
	for seed := range 20 {
		in.Seed = int64(seed)
		q, err := strategy.Badge{}.Query(t.Context(), in)
		// 1 and 2 lie on 0, the longest: they have no weight.
		if err != nil || q.Selected[0] != 0 || q.Selected[1] < 3 {
			t.Errorf("%v %v", q.Selected, err)
		}
	}
}

func TestEAOAWithoutADetectorGoesByAmbiguity(t *testing.T) {
	t.Parallel()
	in := input(5, 60, 10, 3, 8, 10)
	in.PoolDetectorLogits, in.PoolDetectorFeatures, in.LabeledDetectorFeatures = eaoa.Matrix{}, eaoa.Matrix{}, eaoa.Matrix{}
	q, err := strategy.EAOA{}.Query(t.Context(), in)
	if err != nil || len(q.Selected) != 10 || !q.Scores[0].HasScores {
		t.Fatalf("%v %v", q, err)
	}
	if q.Scores[0].Info < q.Scores[9].Info {
		t.Errorf("the first is less informative than the last: %v", q.Scores)
	}
}
