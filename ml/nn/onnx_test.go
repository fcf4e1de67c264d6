//go:build onnx

package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"winnow"
	"winnow/ml/backend"
)

// openONNX opens ONNX Runtime, or skips the test where its library is not installed.
func openONNX(t testing.TB) *backend.Backend {
	t.Helper()
	be, err := backend.Open("onnx")
	if err != nil {
		t.Skip(winnow.ErrorMessage(err))
	}
	t.Cleanup(be.Close)
	return be
}

// One training step and one scoring pass give the same on ONNX Runtime as in pure Go:
// the loss within 1e-5 of itself, every weight, statistic, logit and feature within
// 1e-4 of the largest of its kind.
func TestONNXEqualsGo(t *testing.T) {
	t.Parallel()
	for _, width := range []int{8, 16} { // half a block of channels, and whole ones
		t.Run(fmt.Sprintf("width=%d", width), func(t *testing.T) { testONNXEqualsGo(t, width) })
	}
}

func testONNXEqualsGo(t *testing.T, width int) {
	cfg := benchConfig()
	cfg.Width, cfg.InputSize = width, 20 // 20, 10, 5, 3: even and odd
	const batch = 24
	images := noise(batch, cfg.InputSize, 1)

	type result struct {
		loss    float64
		weights [][]float32
		stats   [][]float32
		out     Output
	}
	compute := func(be *backend.Backend) result {
		weights, stats := initialise(cfg, rand.New(rand.NewPCG(1, 1)))
		tr, err := newTrainer(be, cfg, weights, stats)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.close()
		l := tr.form.layout(batch, inputChannels, cfg.InputSize)
		data, oneHot := make([]float32, l.size()), make([]float32, batch*cfg.Outputs)
		table := newNormalizer(cfg.Mean, cfg.Std)
		for i := range batch {
			table.place(data, l, i, images.At(i), cfg.InputSize, view{})
			oneHot[i*cfg.Outputs+i%cfg.Outputs] = 1
		}
		var r result
		if r.loss, err = tr.step(l, data, oneHot, cfg.LearningRate); err != nil {
			t.Fatal(err)
		}
		if r.weights, r.stats, err = tr.weightsAndStats(); err != nil {
			t.Fatal(err)
		}
		net := &Network{Outputs: cfg.Outputs, Width: cfg.Width, InputSize: cfg.InputSize, Std: cfg.Std, weights: r.weights, stats: r.stats}
		if r.out, err = net.Infer(t.Context(), be, images, nil); err != nil {
			t.Fatal(err)
		}
		return r
	}
	want, got := compute(openGo(t)), compute(openONNX(t))

	if math.Abs(got.loss-want.loss) > 1e-5*want.loss {
		t.Errorf("the loss is %v, want %v", got.loss, want.loss)
	}
	compare := func(what string, got, want []float32) {
		t.Helper()
		largest, apart := 0.0, 0.0
		for i := range want {
			largest = max(largest, math.Abs(float64(want[i])))
			apart = max(apart, math.Abs(float64(got[i]-want[i])))
		}
		if len(got) != len(want) || !(apart <= 1e-4*largest) {
			t.Errorf("%s: values are up to %g apart, the largest is %g", what, apart, largest)
		}
	}
	weights, stats := architecture(cfg.Outputs, cfg.Width)
	for i, s := range weights {
		compare(s.name, got.weights[i], want.weights[i])
	}
	for i, s := range stats {
		compare(s.name, got.stats[i], want.stats[i])
	}
	compare("logits", got.out.Logits, want.out.Logits)
	compare("features", got.out.Feature, want.out.Feature)
}

// The same seed gives the same network again on ONNX Runtime, and two trainings at
// once do not disturb each other.
func TestONNXReproducible(t *testing.T) {
	t.Parallel()
	be := openONNX(t)
	images, labels := noise(10, 8, 2), cycle(10, 3)
	networks := make(chan *Network, 2)
	for range 2 {
		go func() {
			net, err := Train(t.Context(), be, tiny(), images, labels, nil)
			if err != nil {
				t.Error(err)
			}
			networks <- net
		}()
	}
	a, b := <-networks, <-networks
	if a != nil && b != nil && string(checkpoint(t, a)) != string(checkpoint(t, b)) {
		t.Error("the same seed gives another network")
	}
}

// Steps leave nothing behind: what ONNX Runtime holds of a batch is outside the reach of
// Go's collector, and a round has thousands of batches.
func TestONNXStepsFreeTheirBatches(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	be := openONNX(t)
	cfg := benchConfig()
	cfg.Width, cfg.InputSize = 2, 64 // a large batch, little to compute
	const batch, steps = 64, 60
	weights, stats := initialise(cfg, rand.New(rand.NewPCG(1, 1)))
	tr, err := newTrainer(be, cfg, weights, stats)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	l := tr.form.layout(batch, inputChannels, cfg.InputSize)
	data, oneHot := make([]float32, l.size()), make([]float32, batch*cfg.Outputs)
	for i := range batch {
		oneHot[i*cfg.Outputs] = 1
	}
	run := func(n int) {
		for range n {
			if _, err := tr.step(l, data, oneHot, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	run(20) // the runtime's own memory
	before := residentBytes(t)
	run(steps)
	grown, held := residentBytes(t)-before, 4*int64(len(data))*steps
	if grown > held/2 {
		t.Errorf("%d steps grew the process by %d MB; their batches are %d MB", steps, grown>>20, held>>20)
	}
}

func residentBytes(t *testing.T) int64 {
	t.Helper()
	debug.FreeOSMemory()
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(statm), &size, &pages); err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// What a GPU runs, steps that make their batches in the graph, gives the same on ONNX
// Runtime.
func TestONNXResident(t *testing.T) {
	t.Parallel()
	be := openONNX(t)
	cfg, images, labels := deviceConfig()
	compute := func(how plan) *Network {
		net, err := train(t.Context(), be, how, cfg, images, labels, nil)
		if err != nil {
			t.Fatal(err)
		}
		return net
	}
	how := planFor(be)
	want := compute(how)
	how.resident = true
	got := compute(how)
	for i, name := range architectureOf(want) {
		nearby(t, name, weightsOf(got)[i], weightsOf(want)[i], 1e-3)
	}
}
