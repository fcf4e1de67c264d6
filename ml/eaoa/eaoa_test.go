package eaoa_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow"
	"winnow/ml/eaoa"
)

// pool is a made-up query: knowns have a high logit of their class and lie near
// its direction, unknowns do neither.
func pool(seed uint64, n, m, c, d int) eaoa.Input {
	rng := rand.New(rand.NewPCG(seed, 2))
	zeros := func(rows, cols int) eaoa.Matrix {
		return eaoa.Matrix{Rows: rows, Cols: cols, Data: make([]float32, rows*cols)}
	}
	in := eaoa.Input{
		Classes: c, Round: 1, DetectorLogits: zeros(n, c+1), DetectorFeatures: zeros(n, d), ClassifierLogits: zeros(n, c),
		LabeledFeatures: zeros(m, d), Labels: make([]int, m),
	}
	features := func(row []float32, class int) {
		for i := range row {
			row[i] = float32(0.7 * math.Abs(rng.NormFloat64()))
		}
		row[class%d] += 1.5
	}
	for i := range n {
		class := rng.IntN(c + 1)
		features(in.DetectorFeatures.Row(i), class)
		for k := range c + 1 {
			in.DetectorLogits.Row(i)[k] = float32(2 * rng.NormFloat64())
		}
		in.DetectorLogits.Row(i)[class] += 3
		for k := range c {
			in.ClassifierLogits.Row(i)[k] = float32(2 * rng.NormFloat64())
		}
		if class < c {
			in.ClassifierLogits.Row(i)[class] += 3
		}
	}
	for i := range m {
		in.Labels[i] = rng.IntN(c + 1)
		features(in.LabeledFeatures.Row(i), in.Labels[i])
	}
	return in
}

func options(b, neighbours int, k float64) eaoa.Options {
	return eaoa.Options{Budget: b, Neighbours: neighbours, K: k, Variant: eaoa.PerClass, EUD: eaoa.Reference, Seed: 1}
}

func query(t *testing.T, in eaoa.Input, o eaoa.Options) *eaoa.Result {
	t.Helper()
	r, err := eaoa.Query(t.Context(), in, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func matrixOf(rows, cols int, v ...float32) eaoa.Matrix {
	return eaoa.Matrix{Rows: rows, Cols: cols, Data: v}
}

func near(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*max(1, math.Abs(b))
}

func TestEULIsItsFormula(t *testing.T) {
	t.Parallel()
	got := eaoa.EUL(matrixOf(2, 3, 1, 2, 0.5, -4, 3, -2))
	for i, f := range [][]float64{{1, 2, 0.5}, {-4, 3, -2}} {
		want := -math.Log(math.Exp(f[0])+math.Exp(f[1])) + math.Log(1+math.Exp(f[2]))
		if !near(got[i], want, 1e-14) {
			t.Errorf("row %d: %v, want %v", i, got[i], want)
		}
	}
	for _, v := range eaoa.EUL(matrixOf(2, 3, 3e38, 1, -3e38, -3e38, -3e38, 3e38)) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			t.Errorf("extreme logits give %v", v)
		}
	}
}

func TestAUIsTheLogOfWhatTheTopClassLeaves(t *testing.T) {
	t.Parallel()
	in := pool(1, 200, 1, 5, 2)
	for i, got := range eaoa.AU(in.ClassifierLogits) {
		row := in.ClassifierLogits.Row(i)
		sum, top := 0.0, 0.0
		for _, v := range row {
			sum += math.Exp(float64(v))
			top = max(top, math.Exp(float64(v)))
		}
		if want := math.Log(1 - top/sum); !near(got, want, 1e-9) {
			t.Errorf("row %d: %v, want %v", i, got, want)
		}
	}
	// Where 1 - p_max is below the resolution of p_max, the formula still works.
	if got := eaoa.AU(matrixOf(1, 2, 100, 0))[0]; !near(got, -100, 1e-14) {
		t.Errorf("AU of logits 100 and 0 is %v", got)
	}
	if got := eaoa.AU(matrixOf(2, 1, 3, 4)); got[0] != 0 || got[1] != 0 {
		t.Errorf("AU with one class is %v", got)
	}
}

// bruteArrows is the definition, in float64 and with a full sort.
func bruteArrows(in eaoa.Input, k int) [][]int32 {
	cosine := func(a, b []float32) float64 {
		var ab, aa, bb float64
		for i := range a {
			ab += float64(a[i]) * float64(b[i])
			aa += float64(a[i]) * float64(a[i])
			bb += float64(b[i]) * float64(b[i])
		}
		if aa == 0 || bb == 0 {
			return 0
		}
		return ab / math.Sqrt(aa*bb)
	}
	n := in.DetectorFeatures.Rows
	into := make([][]int32, in.Classes+1)
	for c := range into {
		into[c] = make([]int32, n)
	}
	for r, label := range in.Labels {
		order := make([]int, n)
		sims := make([]float64, n)
		for x := range n {
			order[x], sims[x] = x, cosine(in.LabeledFeatures.Row(r), in.DetectorFeatures.Row(x))
		}
		slices.SortStableFunc(order, func(a, b int) int {
			switch {
			case sims[a] > sims[b]:
				return -1
			case sims[a] < sims[b]:
				return 1
			}
			return 0
		})
		for _, x := range order[:min(k, n)] {
			into[label][x]++
		}
	}
	return into
}

func TestCountArrowsIsTheDefinition(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, m, d, k int }{
		{1, 1, 1, 1}, {5, 3, 2, 9}, {31, 7, 3, 4}, {33, 6, 8, 33}, {700, 131, 16, 20}, {3000, 40, 5, 7},
	} {
		in := pool(uint64(c.n), c.n, c.m, 3, c.d)
		if c.d > 1 {
			clear(in.DetectorFeatures.Row(c.n / 2)) // a dead image
		}
		got, err := eaoa.CountArrows(t.Context(), in.LabeledFeatures, in.Labels, in.DetectorFeatures, 3, c.k)
		if err != nil {
			t.Fatal(err)
		}
		if c.d == 1 {
			continue // every cosine is 1 to within rounding
		}
		if diff := cmp.Diff(bruteArrows(in, c.k), got.Into); diff != "" {
			t.Errorf("%+v: %s", c, diff)
		}
	}
}

func TestTiesGoToTheLowerIndex(t *testing.T) {
	t.Parallel()
	in := pool(3, 500, 4, 2, 6)
	for i := range 500 { // 10 different images, 50 times each
		copy(in.DetectorFeatures.Row(i), in.DetectorFeatures.Row(i%10))
	}
	for _, k := range []int{1, 13, 60, 499} {
		got, err := eaoa.CountArrows(t.Context(), in.LabeledFeatures, in.Labels, in.DetectorFeatures, 2, k)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(bruteArrows(in, k), got.Into); diff != "" {
			t.Errorf("k = %d: %s", k, diff)
		}
	}
}

func TestCountArrowsIsTheSameOnAnyNumberOfProcessors(t *testing.T) {
	in := pool(9, 2000, 301, 4, 32)
	var want *eaoa.Arrows
	for _, procs := range []int{1, 2, 3, 7} {
		old := runtime.GOMAXPROCS(procs)
		got, err := eaoa.CountArrows(t.Context(), in.LabeledFeatures, in.Labels, in.DetectorFeatures, 4, 50)
		runtime.GOMAXPROCS(old)
		if err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d processors: %s", procs, diff)
		}
	}
}

func TestQueryStopsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := eaoa.Query(ctx, pool(1, 50, 5, 2, 4), options(5, 5, 2)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestEUDVariants(t *testing.T) {
	t.Parallel()
	a := &eaoa.Arrows{Into: [][]int32{{4, 0, 1}, {0, 0, 2}, {1, 3, 0}}, Labeled: []int{2, 6, 3}}
	lse := func(a, b float64) float64 { return math.Log(math.Exp(a) + math.Exp(b)) }
	soft := func(v float64) float64 { return math.Log(1 + math.Exp(v)) }
	check := func(name, variant string, round int, a *eaoa.Arrows, want []float64) {
		t.Helper()
		got, err := eaoa.EUD(a, variant, round)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if !near(got[i], want[i], 1e-12) {
				t.Errorf("%s: image %d: %v, want %v", name, i, got[i], want[i])
			}
		}
	}
	// The mean of N_0 and N_1 is 4: the weights are 2, 2/3 and 4/3.
	check("reference", "reference", 1, a, []float64{
		-lse(8, 0) + soft(4./3), -lse(0, 0) + soft(4), -lse(2, 4./3) + soft(0),
	})
	check("paper", "paper", 1, a, []float64{
		-math.Log(4) + math.Log(2), math.Log(2) - math.Log(4), -math.Log(3), // image 1 takes the largest finite
	})
	check("smoothed", "smoothed", 1, a, []float64{math.Log(2. / 5), math.Log(4), math.Log(1. / 4)})
	// Round 0: no unknown is labeled; 8 known over 3 columns is 8/3 each.
	zero := &eaoa.Arrows{Into: [][]int32{{4, 0, 1}, {0, 0, 2}, {0, 0, 0}}, Labeled: []int{2, 6, 0}}
	check("round 0", "reference", 0, zero, []float64{-lse(16./3, 0), -lse(0, 0), -lse(4./3, 8./9)})
	// The same later: unknown has no examples, so it counts nothing.
	check("no unknowns in a later round", "reference", 1, zero, []float64{
		-lse(8, 0) + soft(0), -lse(0, 0) + soft(0), -lse(2, 4./3) + soft(0),
	})
	// A class without examples counts nothing.
	empty := &eaoa.Arrows{Into: [][]int32{{4}, {0}, {1}}, Labeled: []int{2, 0, 3}}
	check("empty class", "reference", 1, empty, []float64{-lse(2, 0) + soft(1./3)})
	// Nothing known is labeled at all.
	none := &eaoa.Arrows{Into: [][]int32{{0, 0}, {0, 0}, {1, 0}}, Labeled: []int{0, 0, 3}}
	check("nothing known", "paper", 1, none, []float64{0, 0})
	if _, err := eaoa.EUD(a, "magic", 1); winnow.ErrorCode(err) != winnow.CodeInvalid {
		t.Errorf("an unknown variant: %v", err)
	}
}

func TestMixtureFindsTwoHumps(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(4, 4))
	var v []float64
	for i := range 20000 {
		if i%4 == 0 {
			v = append(v, 0.2+0.05*rng.NormFloat64())
		} else {
			v = append(v, 0.7+0.1*rng.NormFloat64())
		}
	}
	slices.Sort(v)
	m := eaoa.FitMixture(v)
	for i, want := range []float64{0.2, 0.7} {
		if math.Abs(m.Means[i]-want) > 0.01 {
			t.Errorf("mean %d is %v", i, m.Means[i])
		}
	}
	if math.Abs(m.Weights[0]-0.25) > 0.01 || math.Abs(m.Variances[1]-0.0105) > 0.001 {
		t.Errorf("%+v", m)
	}
	if p := m.Posterior(0.1, 0); p < 0.99 {
		t.Errorf("0.1 belongs to the lower hump with %v", p)
	}
	if p, q := m.Posterior(0.4, 0), m.Posterior(0.4, 1); !near(p+q, 1, 1e-12) {
		t.Errorf("posteriors sum to %v", p+q)
	}
}

func TestAConstantScoreSaysNothing(t *testing.T) {
	t.Parallel()
	in := pool(2, 40, 6, 3, 4)
	clear(in.DetectorLogits.Data)
	r := query(t, in, options(10, 5, 2))
	for i, p := range r.EUL.Posterior {
		if p != 0.5 || r.EUL.Scaled[i] != 0 {
			t.Fatalf("image %d: posterior %v, scaled %v", i, p, r.EUL.Scaled[i])
		}
	}
}

func TestMonotonePosteriors(t *testing.T) {
	t.Parallel()
	in := pool(8, 400, 40, 3, 8)
	o := options(20, 20, 3)
	o.Monotone = true
	r := query(t, in, o)
	for name, s := range map[string]*eaoa.Score{"eu_l": r.EUL, "eu_d": r.EUD, "au": r.AU} {
		order := make([]int, len(s.Scaled))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			if s.Scaled[a] < s.Scaled[b] {
				return -1
			}
			return 1
		})
		for i := 1; i < len(order); i++ {
			step := s.Posterior[order[i]] - s.Posterior[order[i-1]]
			if name == "au" {
				step = -step
			}
			if step > 0 {
				t.Fatalf("%s: the posterior is not monotone at rank %d", name, i)
			}
		}
	}
}

func TestPerClassSharesAndShortfall(t *testing.T) {
	t.Parallel()
	in := pool(5, 300, 40, 3, 8)
	count := func(r *eaoa.Result) []int {
		by := make([]int, 3)
		for _, i := range r.Selected {
			by[r.Predicted[i]]++
		}
		return by
	}
	if got := count(query(t, in, options(30, 20, 2))); !slices.Equal(got, []int{10, 10, 10}) {
		t.Errorf("shares %v", got)
	}
	// 31 asks 11 of each and drops two at random.
	got := count(query(t, in, options(31, 20, 2)))
	if got[0]+got[1]+got[2] != 31 || slices.Max(got) > 11 {
		t.Errorf("shares %v of 31", got)
	}
	// Class 2 is predicted for four images only: the others fill the gap.
	in = pool(5, 300, 40, 3, 8)
	for i := range 300 {
		in.ClassifierLogits.Row(i)[2] = -20
		if i < 4 {
			in.ClassifierLogits.Row(i)[2] = 20
		}
	}
	got = count(query(t, in, options(30, 20, 2)))
	if got[0]+got[1]+got[2] != 30 || got[2] != 4 {
		t.Errorf("with a shortfall: %v", got)
	}
}

func TestGlobalTakesTheMostInformativeOfTheCleanest(t *testing.T) {
	t.Parallel()
	in := pool(6, 200, 40, 3, 8)
	o := options(10, 20, 2.5)
	o.Variant = eaoa.Global
	r := query(t, in, o)
	rank := func(better func(a, b int) bool, i int) int {
		n := 0
		for j := range in.DetectorLogits.Rows {
			if better(j, i) {
				n++
			}
		}
		return n
	}
	for _, i := range r.Selected {
		if rank(func(a, b int) bool { return r.Clean(a) > r.Clean(b) }, i) >= 25 {
			t.Errorf("image %d is not among the 25 cleanest", i)
		}
	}
	for j := range in.DetectorLogits.Rows {
		cleaner := rank(func(a, b int) bool { return r.Clean(a) > r.Clean(b) }, j)
		if cleaner < 24 && !slices.Contains(r.Selected, j) && r.AU.Posterior[j] > r.AU.Posterior[r.Selected[9]] {
			t.Errorf("image %d is clean and more informative than the last selected", j)
		}
	}
}

func TestAblations(t *testing.T) {
	t.Parallel()
	in := pool(6, 200, 40, 3, 8)
	for _, name := range winnow.Ablations {
		o := options(10, 20, 2)
		o.Ablation = name
		r := query(t, in, o)
		if len(r.Selected) != 10 {
			t.Errorf("%s: %d selected", name, len(r.Selected))
		}
		got := [3]bool{r.EUL != nil, r.EUD != nil, r.AU != nil}
		want := map[string][3]bool{
			"none": {true, true, true}, "no-eu-d": {true, false, true}, "eu-only": {true, true, false}, "au-only": {false, false, true},
		}[name]
		if got != want {
			t.Errorf("%s uses EU_L, EU_D, AU: %v", name, got)
		}
	}
	// By one score alone, the query is its top list of each class.
	o := options(3, 20, 7)
	o.Ablation = "au-only"
	r := query(t, in, o)
	for _, i := range r.Selected {
		for j := range r.Predicted {
			if r.Predicted[j] == r.Predicted[i] && r.AU.Posterior[j] > r.AU.Posterior[i] {
				t.Errorf("%d is less informative than %d", i, j)
			}
		}
	}
}

func TestOneClassGoesByEpistemicUncertainty(t *testing.T) {
	t.Parallel()
	in := pool(6, 100, 20, 1, 4)
	r := query(t, in, options(10, 20, 3))
	for _, i := range r.Selected {
		better := 0
		for j := range in.DetectorLogits.Rows {
			if r.Clean(j) > r.Clean(i) {
				better++
			}
		}
		if better >= 10 {
			t.Errorf("image %d is not among the 10 cleanest", i)
		}
	}
}

func TestQueryRefusesBadInput(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		field string
		spoil func(*eaoa.Input, *eaoa.Options)
	}{
		"empty pool":         {"classifier_logits", func(in *eaoa.Input, _ *eaoa.Options) { in.ClassifierLogits = matrixOf(0, 3) }},
		"no classes":         {"classes", func(in *eaoa.Input, _ *eaoa.Options) { in.Classes = 0 }},
		"columns":            {"detector_logits", func(in *eaoa.Input, _ *eaoa.Options) { in.DetectorLogits = in.ClassifierLogits }},
		"rows":               {"detector_features", func(in *eaoa.Input, _ *eaoa.Options) { in.DetectorFeatures.Rows-- }},
		"nan":                {"detector_logits", func(in *eaoa.Input, _ *eaoa.Options) { in.DetectorLogits.Data[7] = float32(math.NaN()) }},
		"infinite":           {"labeled_features", func(in *eaoa.Input, _ *eaoa.Options) { in.LabeledFeatures.Data[7] = float32(math.Inf(-1)) }},
		"other features":     {"labeled_features", func(in *eaoa.Input, _ *eaoa.Options) { in.LabeledFeatures = matrixOf(5, 3, make([]float32, 15)...) }},
		"nothing labeled":    {"labels", func(in *eaoa.Input, _ *eaoa.Options) { in.Labels = nil }},
		"a label too large":  {"labels", func(in *eaoa.Input, _ *eaoa.Options) { in.Labels[2] = 4 }},
		"a label below zero": {"labels", func(in *eaoa.Input, _ *eaoa.Options) { in.Labels[2] = -1 }},
		"budget":             {"budget", func(_ *eaoa.Input, o *eaoa.Options) { o.Budget = 0 }},
		"neighbours":         {"neighbours", func(_ *eaoa.Input, o *eaoa.Options) { o.Neighbours = 0 }},
		"k":                  {"k", func(_ *eaoa.Input, o *eaoa.Options) { o.K = math.NaN() }},
		"variant":            {"variant", func(_ *eaoa.Input, o *eaoa.Options) { o.Variant = "magic" }},
		"eu_d":               {"eu_d", func(_ *eaoa.Input, o *eaoa.Options) { o.EUD = "magic" }},
		"ablation":           {"ablation", func(_ *eaoa.Input, o *eaoa.Options) { o.Ablation = "magic" }},
	} {
		in, o := pool(1, 30, 5, 3, 4), options(5, 5, 2)
		c.spoil(&in, &o)
		_, err := eaoa.Query(t.Context(), in, o)
		var e *winnow.Error
		if !errors.As(err, &e) || e.Code != winnow.CodeInvalid || e.Field != c.field {
			t.Errorf("%s: %v; want an invalid %s", name, err, c.field)
		}
	}
}

// FuzzQuery holds every query to what must be true of any: distinct images of the
// pool, min(b, N) of them; a permuted pool permutes the answer; scaled features
// change nothing.
func FuzzQuery(f *testing.F) {
	f.Add(uint64(1), []byte{50, 10, 3, 4, 20, 30, 20, 0})
	f.Add(uint64(2), []byte{200, 40, 4, 8, 201, 250, 45, 1})
	f.Add(uint64(3), []byte{1, 1, 1, 1, 1, 1, 10, 2})
	f.Add(uint64(4), []byte{90, 20, 7, 3, 13, 9, 15, 0x77})
	f.Fuzz(func(t *testing.T, seed uint64, b []byte) {
		if len(b) < 8 {
			return
		}
		n, m, c, d := 1+int(b[0]), 1+int(b[1]%64), 1+int(b[2]%8), 2+int(b[3]%16)
		in := pool(seed, n, m, c, d)
		o := options(1+int(b[4]), 1+int(b[5]), 1+float64(b[6])/10)
		in.Round = int(seed % 2)
		o.Variant = winnow.Variants[b[7]%2]
		o.EUD = winnow.EUDVariants[b[7]/2%3]
		o.Monotone = b[7]&0x10 != 0
		o.Ablation = winnow.Ablations[b[7]>>5%4]
		o.Seed = int64(seed >> 1)
		result := query(t, in, o)
		want := result.Selected

		seen := make(map[int]bool)
		for _, i := range want {
			if i < 0 || i >= n || seen[i] {
				t.Fatalf("%d is outside the pool or selected twice", i)
			}
			seen[i] = true
		}
		if len(want) != min(o.Budget, n) {
			t.Fatalf("%d selected of b = %d and %d images", len(want), o.Budget, n)
		}

		scaled := in
		scaled.DetectorFeatures, scaled.LabeledFeatures = times(in.DetectorFeatures, 1024), times(in.LabeledFeatures, 0.25)
		if diff := cmp.Diff(want, query(t, scaled, o).Selected); diff != "" {
			t.Errorf("scaled features change the query: %s", diff)
		}

		if tied(result) {
			return // only their order tells some images apart
		}
		perm := rand.New(rand.NewPCG(seed, binary.LittleEndian.Uint64(b))).Perm(n)
		permuted := in
		permuted.DetectorLogits, permuted.DetectorFeatures = permute(in.DetectorLogits, perm), permute(in.DetectorFeatures, perm)
		permuted.ClassifierLogits = permute(in.ClassifierLogits, perm)
		got := query(t, permuted, o).Selected
		for i, x := range got {
			got[i] = perm[x]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("a permuted pool is queried differently: %s", diff)
		}
	})
}

// tied reports whether two images are equal in every score that ranks them.
func tied(r *eaoa.Result) bool {
	seen := make(map[[2]float64]bool)
	for i := range r.Predicted {
		epistemic, ambiguity := [2]float64{r.Clean(i), 0}, [2]float64{math.NaN(), 0}
		for _, s := range []*eaoa.Score{r.EUL, r.EUD} {
			if s != nil {
				epistemic[1] += s.Scaled[i]
			}
		}
		if r.AU != nil {
			ambiguity = [2]float64{-1, r.AU.Scaled[i]}
		}
		if (r.EUL != nil && seen[epistemic]) || seen[ambiguity] {
			return true
		}
		seen[epistemic], seen[ambiguity] = true, true
	}
	return false
}

func times(m eaoa.Matrix, by float32) eaoa.Matrix {
	m.Data = slices.Clone(m.Data)
	for i := range m.Data {
		m.Data[i] *= by
	}
	return m
}

// permute puts row perm[i] of m in row i.
func permute(m eaoa.Matrix, perm []int) eaoa.Matrix {
	out := m
	out.Data = nil
	for _, p := range perm {
		out.Data = append(out.Data, m.Row(p)...)
	}
	return out
}

func TestNextK(t *testing.T) {
	t.Parallel()
	s := winnow.DefaultSettings()
	s.Budget = 100
	for _, c := range []struct {
		k, precision float64
		unlabeled    int64
		want         float64
	}{
		{5, 0.71, 10_000, 6},
		{5, 0.62, 10_000, 5},
		{5, 0.58, 10_000, 5},
		{5, 0.41, 10_000, 4},
		{1, 0, 10_000, 1},     // the floor
		{1.5, 0, 10_000, 1.5}, // k - a would be below 1
		{5, 0.9, 599, 5},      // the cap: floor(599 / 100)
		{8, 0.2, 350, 3},      // the cap comes down with the pool
		{5, 0.9, 20, 1},       // less than a budget is left
		{5, math.NaN(), 10_000, 5},
	} {
		if got := eaoa.NextK(s, c.k, c.precision, c.unlabeled); got != c.want {
			t.Errorf("k %v, precision %v, %d unlabeled: %v, want %v", c.k, c.precision, c.unlabeled, got, c.want)
		}
	}
}

func FuzzNextK(f *testing.F) {
	f.Add(5.0, 0.7, int64(3000))
	f.Fuzz(func(t *testing.T, k, precision float64, unlabeled int64) {
		s := winnow.DefaultSettings()
		if math.IsNaN(k) || k < 1 || unlabeled < int64(s.Budget) {
			return
		}
		if got := eaoa.NextK(s, k, precision, unlabeled); !(got >= 1 && got <= float64(unlabeled)/float64(s.Budget)) {
			t.Errorf("k is %v of %d unlabeled", got, unlabeled)
		}
	})
}

// BenchmarkQuery is one whole query: 50,000 x 128 pool, 10,000 labeled, K = 250; or
// the case in the folder that WINNOW_BENCH_CASE names, as scripts/bench_query.py
// asks for.
func BenchmarkQuery(b *testing.B) {
	in := pool(1, 50_000, 10_000, 10, 128)
	if dir := os.Getenv("WINNOW_BENCH_CASE"); dir != "" {
		in = eaoa.Input{
			Round:            1,
			DetectorLogits:   matrix(b, dir, "detector_logits"),
			DetectorFeatures: matrix(b, dir, "detector_features"),
			ClassifierLogits: matrix(b, dir, "classifier_logits"),
			LabeledFeatures:  matrix(b, dir, "labeled_features"),
		}
		in.Classes = in.ClassifierLogits.Cols
		for _, l := range array[int64](b, dir, "labels").Data {
			in.Labels = append(in.Labels, int(l))
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := eaoa.Query(context.Background(), in, options(1500, 250, 5)); err != nil {
			b.Fatal(err)
		}
	}
}
