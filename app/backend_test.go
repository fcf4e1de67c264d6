package app

import (
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
