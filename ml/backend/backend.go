// Package backend chooses what computes: GoMLX's pure-Go backend by default, XLA
// (CPU, CUDA or any PJRT plugin) when built with -tags xla, and ONNX Runtime when
// built with -tags onnx. It is the only package that knows the names of backends,
// and it never downloads anything unless Install is called.
package backend

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/gomlx/support/exceptions"

	"winnow"
)

// Default is the name of the backend that is always there.
const Default = "go"

// Kind says which family a backend is of: package nn writes its graphs in the form
// that suits the family.
type Kind string

const (
	Go   Kind = "go"
	XLA  Kind = "xla"
	ONNX Kind = "onnx"
)

// Precision is what matrix products and convolutions multiply in. Weights, sums and
// results are in float32 in each.
type Precision string

const (
	Float32  Precision = "f32"
	TF32     Precision = "tf32" // of float32, ten bits of the mantissa: NVIDIA's tensor cores
	BFloat16 Precision = "bf16" // and activations are held so, too: half the memory traffic
)

// Backend is an open compute backend. It may be used by several goroutines.
type Backend struct {
	name      string
	kind      Kind
	precision Precision
	compute   compute.Backend
}

// Name returns the name that the backend was opened by.
func (b *Backend) Name() string { return b.name }

// Kind returns the family of the backend.
func (b *Backend) Kind() Kind { return b.kind }

// Precision returns that which the backend was opened with. TF32 is what a GPU makes of
// float32 when it may; other devices compute in float32 then.
func (b *Backend) Precision() Precision { return b.precision }

// Compute returns the GoMLX backend.
func (b *Backend) Compute() compute.Backend { return b.compute }

// Close releases what the backend holds; it must not be used afterwards.
func (b *Backend) Close() { b.compute.Finalize() }

// Open opens a backend by name: "go" (also ""), "xla:cpu", "xla:cuda",
// "xla:/path/to/plugin.so", "onnx" or "onnx:/path/to/libonnxruntime.so". XLA's names
// take a precision: "xla:cuda,precision=bf16"; without one it is TF32. An unknown name
// is a CodeInvalid error; a known one that is not there is CodeUnavailable with the
// remedy.
func Open(name string) (*Backend, error) {
	if name == "" {
		name = Default
	}
	family, config, hasConfig := strings.Cut(name, ":")
	var open func(config string) (compute.Backend, error)
	precision := Float32
	switch Kind(family) {
	case Go:
		if hasConfig {
			return nil, unknown(name)
		}
		open = openGo
	case XLA:
		var valid bool
		if config, precision, valid = cutPrecision(config); !valid {
			return nil, unknown(name)
		}
		if config != "cpu" && config != "cuda" && !strings.HasPrefix(config, "/") {
			return nil, unknown(name)
		}
		open = func(config string) (compute.Backend, error) { return openXLA(config, precision) }
	case ONNX:
		if hasConfig && !strings.HasPrefix(config, "/") {
			return nil, unknown(name)
		}
		open = openONNX
	default:
		return nil, unknown(name)
	}
	c, err := safely(func() (compute.Backend, error) { return open(config) })
	if err != nil {
		return nil, &winnow.Error{
			Code: winnow.CodeUnavailable, Field: "backend",
			Message: fmt.Sprintf("The backend %q cannot be opened. %s", name, remedy(Kind(family), config)), Err: err,
		}
	}
	return &Backend{name: name, kind: Kind(family), precision: precision, compute: c}, nil
}

// cutPrecision takes the precision off XLA's configuration.
func cutPrecision(config string) (rest string, p Precision, valid bool) {
	rest, option, has := strings.Cut(config, ",precision=")
	if !has {
		return config, TF32, true
	}
	p = Precision(option)
	return rest, p, p == Float32 || p == TF32 || p == BFloat16
}

func unknown(name string) error {
	return winnow.Invalid("backend", "%.80q is not a backend; use go, xla:cpu, xla:cuda, xla:/path/to/plugin.so, onnx or onnx:/path/to/libonnxruntime.so. "+
		"XLA takes ,precision=f32, tf32 or bf16 after its name.", name)
}

// openGo opens the pure-Go backend. Its operations run one after another
// ("ops_sequential") and only split themselves over the workers: when operations,
// too, are workers, as by default, each may hold a worker while it waits for one,
// and on few cores all of them wait for ever.
func openGo(string) (compute.Backend, error) { return gobackend.New("ops_sequential") }

// Info is one row of the list of backends.
type Info struct {
	Name        string
	Description string
	Version     string // of the library that computes, when it is a separate one and present
	Present     bool
	Remedy      string // how to get it; empty when present
}

// List says of each backend whether it could be opened here. Only ONNX Runtime is
// opened for that: its library may be there and of another machine's kind.
func List() []Info {
	list := []Info{{Name: Default, Description: "GoMLX, pure Go, on the CPU", Present: true}}
	xla := xlaPlugins()
	for _, p := range []struct{ plugin, description string }{
		{"cpu", "XLA on the CPU (PJRT plugin)"},
		{"cuda", "XLA on NVIDIA GPUs (PJRT plugin)"},
	} {
		list = append(list, Info{Name: "xla:" + p.plugin, Description: p.description, Present: slices.Contains(xla, p.plugin)})
	}
	version, err := onnxVersion()
	list = append(list, Info{Name: "onnx", Description: "ONNX Runtime on the CPU or GPU", Version: version, Present: err == nil})
	for i := range list {
		if in := &list[i]; !in.Present {
			family, config, _ := strings.Cut(in.Name, ":")
			in.Remedy = remedy(Kind(family), config)
		}
	}
	return list
}

// onnxEnv is the variable that names ONNX Runtime's shared library.
const onnxEnv = "ONNXRUNTIME_SHARED_LIBRARY_PATH"

// onnxByHand says where else the library is to be had. The versions that the backend
// was run with are in docs/gpu.md.
const onnxByHand = "With npm: `npm pack onnxruntime-node@1.30.0 && tar xzf onnxruntime-node-1.30.0.tgz` " +
	"gives package/bin/napi-v6/linux/x64/libonnxruntime.so.1 (linux/arm64 on Arm)."

// remedy says how to get a backend that is not there.
func remedy(kind Kind, config string) string {
	switch {
	case kind == XLA && !xlaBuilt:
		return "This program was built without XLA: build it with -tags xla (needs a C++ toolchain)."
	case kind == XLA && strings.HasPrefix(config, "/"):
		return "Check that the path is a PJRT plugin for this machine."
	case kind == XLA:
		return "Run `winnow backend install xla:" + config + "`, or name a plugin: xla:/path/to/plugin.so."
	case kind == ONNX && !onnxBuilt:
		return "This program was built without ONNX Runtime: build it with -tags onnx (needs a C compiler)."
	case kind == ONNX && config != "":
		return "Check that the path is ONNX Runtime's libonnxruntime.so for this machine."
	case kind == ONNX:
		return "Run `winnow backend install onnx`, or set " + onnxEnv + " to the path of a libonnxruntime.so you have. " + onnxByHand
	}
	return ""
}

// Install downloads what the named backend needs, reporting to log. The pure-Go
// backend needs nothing. It is a CodeUnavailable error when this program was built
// without the backend or the download does not work.
func Install(ctx context.Context, name string, log io.Writer) error {
	family, config, _ := strings.Cut(name, ":")
	var install func(config string) error
	switch {
	case name == Default:
		fmt.Fprintln(log, "The pure-Go backend is built in.")
		return nil
	case name == "xla:cpu" || name == "xla:cuda":
		install = installXLA
	case name == "onnx":
		install = installONNX
	default:
		return winnow.Invalid("backend", "%.80q cannot be installed; choose xla:cpu, xla:cuda or onnx.", name)
	}
	fmt.Fprintf(log, "Installing %s ...\n", name)
	done := make(chan error, 1)
	go func() {
		_, err := safely(func() (struct{}, error) { return struct{}{}, install(config) })
		done <- err
	}()
	select {
	case <-ctx.Done():
		return ctx.Err() // the downloader takes no context; it ends with the process
	case err := <-done:
		if err == nil {
			fmt.Fprintf(log, "Installed %s.\n", name)
			return nil
		}
		message := "The download of the backend " + name + " did not work. Check the network and try again."
		if name == "onnx" {
			message += " Or bring the library: set " + onnxEnv + " to the path of libonnxruntime.so from a release archive of ONNX Runtime. " + onnxByHand
		}
		if family == string(XLA) && !xlaBuilt || family == string(ONNX) && !onnxBuilt {
			message = remedy(Kind(family), config)
		}
		return &winnow.Error{Code: winnow.CodeUnavailable, Field: "backend", Message: message, Err: err}
	}
}

// safely turns the panics of a backend's constructor into errors.
func safely[T any](fn func() (T, error)) (v T, err error) {
	caught := exceptions.Try(func() { v, err = fn() })
	if caught != nil {
		if e, ok := caught.(error); ok {
			return v, e
		}
		return v, fmt.Errorf("panic: %v", caught)
	}
	return v, err
}
