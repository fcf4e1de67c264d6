package backend

import (
	"io"
	"strings"
	"testing"

	"winnow"
)

func TestOpen(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "go"} {
		be, err := Open(name)
		if err != nil {
			t.Fatalf("Open(%q): %v", name, err)
		}
		if be.Name() != "go" || be.Kind() != Go || be.Precision() != Float32 {
			t.Errorf("Open(%q) is %q of kind %q", name, be.Name(), be.Kind())
		}
		be.Close()
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		code winnow.Code
		says string
	}{
		{"abacus", winnow.CodeInvalid, "abacus"},
		{"go:fast", winnow.CodeInvalid, "go:fast"},
		{"xla", winnow.CodeInvalid, "xla:cpu"},
		{"xla:tpu", winnow.CodeInvalid, "xla:tpu"},
		{"xla:cpu,precision=f8", winnow.CodeInvalid, "precision"},
		{"xla:/no/such/plugin.so,precision=bf16", winnow.CodeUnavailable, "xla"},
		{"onnx:fast", winnow.CodeInvalid, "onnx:fast"},
		{"xla:/no/such/plugin.so", winnow.CodeUnavailable, "xla"},
		{"onnx:/no/such/libonnxruntime.so", winnow.CodeUnavailable, "onnx"},
		{strings.Repeat("x", 100_000), winnow.CodeInvalid, "is not a backend"},
	}
	for _, tt := range tests {
		be, err := Open(tt.name)
		if err == nil {
			be.Close()
			t.Errorf("Open(%.40q) succeeds", tt.name)
			continue
		}
		if message := winnow.ErrorMessage(err); winnow.ErrorCode(err) != tt.code || !strings.Contains(message, tt.says) || len(message) > 1000 {
			t.Errorf("Open(%.40q) fails with %s %.300q, want %s and %q", tt.name, winnow.ErrorCode(err), message, tt.code, tt.says)
		}
	}
}

func TestCutPrecision(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]struct {
		rest  string
		p     Precision
		valid bool
	}{
		"cuda":                    {"cuda", TF32, true},
		"cuda,precision=f32":      {"cuda", Float32, true},
		"/a/plug,in.so":           {"/a/plug,in.so", TF32, true},
		"/a/b.so,precision=bf16":  {"/a/b.so", BFloat16, true},
		"cuda,precision=":         {"cuda", "", false},
		"cuda,precision=bf16,x=1": {"cuda", "bf16,x=1", false},
	} {
		if rest, p, valid := cutPrecision(config); rest != want.rest || p != want.p || valid != want.valid {
			t.Errorf("%q is cut to %q, %q, %v; want %v", config, rest, p, valid, want)
		}
	}
}

// Whatever a build has, a backend that is not present says how to get it.
func TestList(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, in := range List() {
		names[in.Name] = true
		if in.Present == (in.Remedy != "") {
			t.Errorf("%s: present is %v with remedy %q", in.Name, in.Present, in.Remedy)
		}
		if in.Name == Default && !in.Present {
			t.Error("the default backend is not present")
		}
	}
	for _, want := range []string{"go", "xla:cpu", "xla:cuda", "onnx"} {
		if !names[want] {
			t.Errorf("%s is not listed", want)
		}
	}
}

func TestInstall(t *testing.T) {
	t.Parallel()
	if err := Install(t.Context(), "go", io.Discard); err != nil {
		t.Errorf("installing the built-in backend: %v", err)
	}
	if err := Install(t.Context(), "abacus", io.Discard); winnow.ErrorCode(err) != winnow.CodeInvalid {
		t.Errorf("installing an unknown backend gives %v, want %s", err, winnow.CodeInvalid)
	}
}

// A constructor that panics must not take the process down.
func TestSafely(t *testing.T) {
	t.Parallel()
	if _, err := safely(func() (int, error) { panic("no such plugin") }); err == nil || !strings.Contains(err.Error(), "no such plugin") {
		t.Errorf("a panic becomes %v", err)
	}
	if v, err := safely(func() (int, error) { return 7, nil }); v != 7 || err != nil {
		t.Errorf("no panic becomes %v, %v", v, err)
	}
}
