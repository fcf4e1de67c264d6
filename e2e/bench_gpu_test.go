package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What make bench-gpu packs runs, on the CPU and in little: a line of JSON for each
// backend, and one from eager PyTorch where that is here.
func TestBenchGPU(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"../scripts/bench_gpu/run.sh", "../scripts/bench_gpu/eager.py", "../ml/nn/testdata/pytorch.py"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	winnow, err := program()
	if err != nil {
		t.Fatal(err)
	}
	if winnow, err = filepath.Abs(winnow); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(winnow, filepath.Join(dir, "winnow")); err != nil {
		t.Fatal(err)
	}
	want := []string{"go"}
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "run.sh"),
		"--labeled", "20", "--pool", "30", "--epochs", "1", "--batch", "8", "--width", "2", "--input-size", "8")
	cmd.Env = append(os.Environ(), "BACKENDS=go")
	if exec.Command("python3", "-c", "import torch").Run() == nil {
		cmd.Env = append(cmd.Env, "EAGER_ARGS=--device cpu --labeled 16 --knowns 8 --pool 16 --epochs 1 --batch 8 --width 2 --size 8 --steps 2 --warm 1")
		want = append(want, "")
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v; it printed:\n%s%s", err, out, stderr.String())
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), out)
	}
	for i, line := range lines {
		var report struct {
			Backend string  `json:"backend"`
			Train   float64 `json:"train_images_per_s"`
			Score   float64 `json:"score_images_per_s"`
		}
		if err := json.Unmarshal([]byte(line), &report); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		if report.Backend != want[i] || report.Train <= 0 || report.Score <= 0 {
			t.Errorf("line %d is %s", i, line)
		}
	}
}

// Without a plugin the script says what to install.
func TestBenchGPUWithoutPlugin(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "../scripts/bench_gpu/run.sh")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+t.TempDir())
	if err := exec.Command("python3", "-c", "import jax_plugins").Run(); err == nil {
		t.Skip("JAX's plugins are here")
	}
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "pip install") {
		t.Errorf("it ends with %v and says:\n%s", err, out)
	}
}
