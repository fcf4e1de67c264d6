package app

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestBackendList(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := runWinnow(t, nil, "backend", "list")
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var row []string
	for line := range strings.Lines(stdout) {
		if f := strings.Fields(line); len(f) > 2 && f[0] == "go" {
			row = f[:3]
		}
	}
	if strings.Join(row, " ") != "go yes yes" {
		t.Errorf("the row of the pure-Go backend is %q in:\n%s", row, stdout)
	}
	for _, name := range []string{"xla:cpu", "xla:cuda", "onnx"} {
		if !strings.Contains(stdout, name) {
			t.Errorf("%s is not listed in:\n%s", name, stdout)
		}
	}
}

func TestBackendInstallUnknown(t *testing.T) {
	t.Parallel()
	code, _, stderr := runWinnow(t, nil, "backend", "install", "abacus")
	if code != exitFailed || !strings.Contains(stderr, "abacus") {
		t.Errorf("exit code %d, standard error %q", code, stderr)
	}
}

// A round of noise is timed and told in one line of JSON.
func TestBackendBench(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := runWinnow(t, nil, "backend", "bench",
		"--labeled", "20", "--pool", "30", "--epochs", "2", "--batch", "8", "--width", "2", "--input-size", "8")
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var got benchReport
	if err := json.Unmarshal([]byte(stdout), &got); err != nil {
		t.Fatalf("%v in %q", err, stdout)
	}
	// Of 20 labels two in five are known: 8, one step of the classifier; the detector's
	// are 20 in 3 steps.
	if got.LabeledKnown+got.LabeledUnknown != 20 || got.Steps != 2*3+2*((got.LabeledKnown+7)/8) || got.Pool != 30 {
		t.Errorf("the report is %+v", got)
	}
	if got.Backend != "go" || got.Precision != "f32" || got.TrainImagesPerS <= 0 || got.ScoreImagesPerS <= 0 || got.TotalSeconds <= 0 {
		t.Errorf("the report is %+v", got)
	}
}
