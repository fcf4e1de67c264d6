package app

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// simulateData is a folder of two classes of plain 8x8 images.
func simulateData(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for class, hue := range map[string]uint8{"blue": 40, "grey": 200} {
		for _, split := range []string{"train", "test"} {
			if err := os.MkdirAll(filepath.Join(dir, split, class), 0o755); err != nil {
				t.Fatal(err)
			}
			for i := range 12 {
				m := image.NewRGBA(image.Rect(0, 0, 8, 8))
				for p := range 64 {
					m.Set(p%8, p/8, color.RGBA{hue, hue, uint8(10 * i), 255})
				}
				var b bytes.Buffer
				if err := png.Encode(&b, m); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, split, class, string(rune('a'+i))+".png"), b.Bytes(), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	return dir
}

func runSimulate(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"simulate"}, args...), func(string) string { return "" }, &out, &errs)
	return code, out.String(), errs.String()
}

func TestSimulateEndToEnd(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("trains networks")
	}
	out := filepath.Join(t.TempDir(), "out")
	args := []string{
		"--data", simulateData(t), "--known", "grey", "--out", out, "--init-percent", "30", "--seeds", "1", "--rounds", "2",
		"--epochs", "1", "--batch", "4", "--budget", "4", "--width", "2", "--input-size", "8", "--crop-pad", "1",
		"--strategies", "eaoa,random,uncertainty,certainty,coreset,badge",
	}
	code, stdout, stderr := runSimulate(t, args...)
	if code != exitDone || strings.Count(stdout, "accuracy") < 12 {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	for _, name := range []string{"rounds.jsonl", "queries.jsonl", "summary.csv", "accuracy.svg", "precision.svg", "experiment.json"} {
		if info, err := os.Stat(filepath.Join(out, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	// All is done: nothing is run again.
	if _, stdout, _ := runSimulate(t, args...); strings.Contains(stdout, "seed 1") {
		t.Errorf("a finished experiment ran again: %s", stdout)
	}
}

func TestSimulateRefuses(t *testing.T) {
	t.Parallel()
	data := simulateData(t)
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no data":           {[]string{"--known", "a", "--out", "x"}, exitUsage, "data"},
		"missing data":      {[]string{"--data", "/nowhere", "--known", "a", "--out", "x"}, exitFailed, "cannot be read"},
		"an unknown class":  {[]string{"--data", data, "--known", "red", "--out", "x"}, exitFailed, `no class "red"`},
		"a setting":         {[]string{"--data", data, "--known", "grey", "--epochs", "0", "--out", "x"}, exitFailed, "epochs"},
		"a setting's kind":  {[]string{"--data", data, "--known", "grey", "--epochs", "many", "--out", "x"}, exitUsage, "epochs"},
		"a seed":            {[]string{"--data", data, "--known", "grey", "--seeds", "one", "--out", "x"}, exitFailed, "seeds"},
		"annotators":        {[]string{"--data", data, "--known", "grey", "--annotators", "/nowhere", "--out", "x"}, exitFailed, "annotators"},
		"a comparison":      {[]string{"--data", data, "--known", "grey", "--compare", "/nowhere", "--out", "x"}, exitFailed, "compare"},
		"a backend":         {[]string{"--data", data, "--known", "grey", "--backend", "abacus", "--out", "x"}, exitFailed, "abacus"},
		"a negative number": {[]string{"--data", data, "--known", "grey", "--per-class", "-1", "--out", "x"}, exitFailed, "per-class"},
	} {
		code, _, stderr := runSimulate(t, c.args...)
		if code != c.code || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") > 2 {
			t.Errorf("%s: exit code %d: %s", name, code, stderr)
		}
	}
}

func TestTimeLeft(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[float64]string{42: "42 s left", 200: "3 min left", 7800: "2 h 10 min left"} {
		if got := timeLeft(seconds); got != want {
			t.Errorf("%v s: %q, want %q", seconds, got, want)
		}
	}
}
