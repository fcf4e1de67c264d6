package app

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"winnow/ml/npy"
)

// writeCase writes a made-up case of 40 images, 2 classes, 6 labeled.
func writeCase(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(1, 1))
	for name, shape := range map[string][]int{
		"detector_logits": {40, 3}, "detector_features": {40, 5}, "classifier_logits": {40, 2}, "labeled_features": {6, 5},
	} {
		a := &npy.Array[float32]{Shape: shape, Data: make([]float32, shape[0]*shape[1])}
		for i := range a.Data {
			a.Data[i] = float32(rng.NormFloat64())
		}
		writeArray(t, dir, name, a)
	}
	writeArray(t, dir, "labels", &npy.Array[int64]{Shape: []int{6}, Data: []int64{0, 1, 2, 0, 1, 2}})
	return dir
}

func writeArray[T npy.Number](t *testing.T, dir, name string, a *npy.Array[T]) {
	t.Helper()
	if err := npy.WriteFile(filepath.Join(dir, name+".npy"), a); err != nil {
		t.Fatal(err)
	}
}

// runSelect runs the command and returns what it printed on both outputs.
func runSelect(t *testing.T, args ...string) (got selection, notes string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := newSelectCommand()
	cmd.SetArgs(args)
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		return got, stderr.String(), err
	}
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("not JSON: %v: %s", err, stdout.String())
	}
	return got, stderr.String(), nil
}

func TestSelect(t *testing.T) {
	t.Parallel()
	dir := writeCase(t)
	got, notes, err := runSelect(t, "--case", dir, "--budget", "6", "--k", "3", "--neighbours", "10")
	if err != nil || notes != "" {
		t.Fatal(err, notes)
	}
	if len(got.Selected) != 6 || len(got.EUL.Scaled) != 40 || len(got.EUD.Posterior) != 40 || len(got.AU.Means) != 2 {
		t.Errorf("%+v", got)
	}

	if err := os.WriteFile(filepath.Join(dir, "case.json"), []byte(`{"budget": 4, "neighbours": 10, "round": 2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	got, _, err = runSelect(t, "--case", dir)
	if err != nil || len(got.Selected) != 4 {
		t.Errorf("case.json: %d selected, %v", len(got.Selected), err)
	}
	got, _, err = runSelect(t, "--case", dir, "--budget", "5", "--variant", "global", "--ablation", "au-only")
	if err != nil || len(got.Selected) != 5 || got.EUL != nil {
		t.Errorf("flags over case.json: %+v, %v", got.Selected, err)
	}
	got, notes, err = runSelect(t, "--case", dir, "--budget", "50", "--neighbours", "60", "--round", "0")
	if err != nil || len(got.Selected) != 40 {
		t.Errorf("clipped: %d selected, %v", len(got.Selected), err)
	}
	for _, want := range []string{"larger than the pool", "60 neighbours", "round 0"} {
		if !strings.Contains(notes, want) {
			t.Errorf("no note of %q in %q", want, notes)
		}
	}
	writeArray(t, dir, "labels", &npy.Array[int64]{Shape: []int{6}, Data: []int64{0, 0, 2, 0, 0, 2}})
	if _, notes, err = runSelect(t, "--case", dir); err != nil || !strings.Contains(notes, "class 1 has no labeled example") {
		t.Errorf("an empty class: %v %q", err, notes)
	}
}

func TestSelectRefuses(t *testing.T) {
	t.Parallel()
	floats := func(rows, cols int, v float32) *npy.Array[float32] {
		return &npy.Array[float32]{Shape: []int{rows, cols}, Data: slices.Repeat([]float32{v}, rows*cols)}
	}
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir string)
		args  []string
		want  string
	}{
		"a missing file": {func(t *testing.T, dir string) { os.Remove(filepath.Join(dir, "labels.npy")) }, nil, "labels: There is no labels.npy"},
		"not an array": {func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "labels.npy"), []byte("zip"), fs.FileMode(0o600)); err != nil {
				t.Fatal(err)
			}
		}, nil, "not a .npy file"},
		"a wrong width":  {func(t *testing.T, dir string) { writeArray(t, dir, "detector_logits", floats(40, 2, 0)) }, nil, "detector_logits: The shape is 40 x 2; expected 40 x 3"},
		"a wrong height": {func(t *testing.T, dir string) { writeArray(t, dir, "detector_features", floats(39, 5, 0)) }, nil, "detector_features: The shape is 39 x 5"},
		"other features": {func(t *testing.T, dir string) { writeArray(t, dir, "labeled_features", floats(6, 4, 0)) }, nil, "labeled_features: The shape is 6 x 4; expected 6 x 5"},
		"three dimensions": {func(t *testing.T, dir string) {
			writeArray(t, dir, "classifier_logits", &npy.Array[float32]{Shape: []int{1, 0, 1}})
		}, nil, "3 dimensions"},
		"NaN": {func(t *testing.T, dir string) {
			writeArray(t, dir, "classifier_logits", floats(40, 2, float32(math.NaN())))
		}, nil, "classifier_logits: Row 0, column 0 is NaN"},
		"an empty pool": {func(t *testing.T, dir string) { writeArray(t, dir, "classifier_logits", floats(0, 2, 0)) }, nil, "pool is empty"},
		"fractional labels": {func(t *testing.T, dir string) {
			writeArray(t, dir, "labels", &npy.Array[float64]{Shape: []int{6}, Data: make([]float64, 6)})
		}, nil, "integers are expected"},
		"a label beyond": {func(t *testing.T, dir string) {
			writeArray(t, dir, "labels", &npy.Array[int64]{Shape: []int{6}, Data: []int64{0, 1, 3, 0, 1, 2}})
		}, nil, "Label 2 is 3"},
		"broken JSON": {func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "case.json"), []byte("{"), fs.FileMode(0o600)); err != nil {
				t.Fatal(err)
			}
		}, nil, "case.json"},
		"budget":  {nil, []string{"--budget", "0"}, "budget"},
		"k":       {nil, []string{"--k", "0.5"}, "k is 0.5"},
		"variant": {nil, []string{"--variant", "best"}, "variant"},
		"round":   {nil, []string{"--round", "-1"}, "round"},
		"folder":  {nil, []string{"--case", "/nowhere"}, "not a folder"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := writeCase(t)
			if c.spoil != nil {
				c.spoil(t, dir)
			}
			_, _, err := runSelect(t, append([]string{"--case", dir}, c.args...)...)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v; want it to say %q", err, c.want)
			}
		})
	}
}

func TestSelectGolden(t *testing.T) {
	t.Parallel()
	cases, _ := filepath.Glob("../../shared/golden/*/case.json")
	if len(cases) == 0 {
		t.Skip("the golden cases are not here (../../shared/golden)")
	}
	for _, file := range cases {
		dir := filepath.Dir(file)
		got, _, err := runSelect(t, "--case", dir)
		if err != nil {
			t.Fatal(err)
		}
		want, err := npy.ReadFile[int64](filepath.Join(dir, "selected.npy"))
		if err != nil {
			t.Fatal(err)
		}
		same := 0
		for _, i := range got.Selected {
			if slices.Contains(want.Data, int64(i)) {
				same++
			}
		}
		if len(got.Selected) != len(want.Data) || float64(same) < 0.97*float64(len(want.Data)) {
			t.Errorf("%s: %d of %d selected agree", dir, same, len(want.Data))
		}
	}
}
