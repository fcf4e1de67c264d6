//go:build onnx

package backend

import (
	"os"
	"strings"
	"testing"

	"winnow"
)

// A library that is found is listed with its version and opens, also by its path; one
// that is not found, or is none, is listed with what to do.
func TestONNX(t *testing.T) {
	path, err := onnxLibrary()
	if err != nil {
		t.Skipf("ONNX Runtime is not here: %v", err)
	}
	find := func() Info {
		for _, in := range List() {
			if in.Name == "onnx" {
				return in
			}
		}
		t.Fatal("onnx is not listed")
		return Info{}
	}
	if in := find(); !in.Present || !strings.Contains(in.Version, ".") {
		t.Errorf("with a library, onnx is listed as %+v", in)
	}
	for _, name := range []string{"onnx", "onnx:" + path} {
		be, err := Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if be.Kind() != ONNX {
			t.Errorf("%s is of kind %s", name, be.Kind())
		}
		be.Close()
	}

	t.Setenv(onnxEnv, "/no/such/libonnxruntime.so")
	if in := find(); in.Present || !strings.Contains(in.Remedy, onnxEnv) || !strings.Contains(in.Remedy, "npm pack") {
		t.Errorf("without a library, onnx is listed as %+v", in)
	}
	_, err = Open("onnx")
	if winnow.ErrorCode(err) != winnow.CodeUnavailable || !strings.Contains(winnow.ErrorMessage(err), "winnow backend install onnx") {
		t.Errorf("without a library, opening fails with %v", err)
	}
	t.Setenv(onnxEnv, "")
	t.Setenv("HOME", t.TempDir())
	if _, err := os.Stat(path); err != nil {
		t.Fatal(err)
	}
	if in := find(); in.Present {
		t.Errorf("with an empty home, onnx is listed as %+v", in)
	}
}
