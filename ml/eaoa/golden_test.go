package eaoa_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"winnow/ml/eaoa"
	"winnow/ml/npy"
)

const golden = "../../../shared/golden"

// TestGolden holds the reference variant against what the published
// implementation computes from the same logits and features.
func TestGolden(t *testing.T) {
	t.Parallel()
	dirs, _ := filepath.Glob(filepath.Join(golden, "*", "case.json"))
	if len(dirs) == 0 {
		t.Skipf("the golden cases are not here (%s)", golden)
	}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			var c struct {
				Classes, Budget, Neighbours, Round int
				K                                  float64
				GMM                                map[string]struct{ Means [2]float64 }
			}
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(raw, &c); err != nil {
				t.Fatal(err)
			}
			in := eaoa.Input{
				Classes: c.Classes, Round: c.Round,
				DetectorLogits:   matrix(t, dir, "detector_logits"),
				DetectorFeatures: matrix(t, dir, "detector_features"),
				ClassifierLogits: matrix(t, dir, "classifier_logits"),
				LabeledFeatures:  matrix(t, dir, "labeled_features"),
			}
			for _, l := range array[int64](t, dir, "labels").Data {
				in.Labels = append(in.Labels, int(l))
			}
			got, err := eaoa.Query(t.Context(), in, eaoa.Options{
				Budget: c.Budget, Neighbours: c.Neighbours, K: c.K, Variant: eaoa.PerClass, EUD: eaoa.Reference,
			})
			if err != nil {
				t.Fatal(err)
			}
			for name, s := range map[string]*eaoa.Score{"eu_l": got.EUL, "eu_d": got.EUD, "au": got.AU} {
				want := array[float64](t, dir, name+"_scaled").Data
				worst := 0.0
				for i, v := range s.Scaled {
					worst = max(worst, math.Abs(v-want[i]))
				}
				if worst > 1e-4 {
					t.Errorf("%s: a scaled score is off by %g", name, worst)
				}
				far := 0
				want = array[float64](t, dir, name+"_posterior").Data
				for i, v := range s.Posterior {
					if math.Abs(v-want[i]) > 1e-2 {
						far++
					}
				}
				if float64(far) > 0.01*float64(len(want)) {
					t.Errorf("%s: %d of %d posteriors are off by more than 1e-2", name, far, len(want))
				}
				means := c.GMM[name].Means
				slices.Sort(means[:])
				ours := s.Mixture.Means
				slices.Sort(ours[:])
				for k := range means {
					if math.Abs(means[k]-ours[k]) > 5e-3 {
						t.Errorf("%s: mean %g, want %g", name, ours[k], means[k])
					}
				}
				t.Logf("%s: worst scaled %.2g, posteriors off %d, means %.4f (want %.4f)", name, worst, far, ours, means)
			}
			want := array[int64](t, dir, "selected").Data
			same := 0
			for _, i := range got.Selected {
				if slices.Contains(want, int64(i)) {
					same++
				}
			}
			t.Logf("%d of %d selected agree", same, len(want))
			if len(got.Selected) != len(want) || float64(same) < 0.97*float64(len(want)) {
				t.Errorf("%d selected, %d of the %d wanted", len(got.Selected), same, len(want))
			}
		})
	}
}

func array[T npy.Number](t testing.TB, dir, name string) *npy.Array[T] {
	t.Helper()
	a, err := npy.ReadFile[T](filepath.Join(dir, name+".npy"))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func matrix(t testing.TB, dir, name string) eaoa.Matrix {
	t.Helper()
	a := array[float32](t, dir, name)
	return eaoa.Matrix{Rows: a.Shape[0], Cols: a.Shape[1], Data: a.Data}
}
