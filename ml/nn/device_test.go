package nn

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// onDevice is how a GPU trains, but for the loop: a body as large as a step confuses the
// pure-Go backend, which frees what it broadcasts too early. repeat is tested by itself.
func onDevice(half bool) plan {
	return plan{form: native{dilated: true, half: half}, resident: true}
}

// deviceConfig trains for two epochs of two whole batches and a short one, cropped and
// mirrored. Its batches and its last stage are large enough for batch normalisation not
// to magnify rounding.
func deviceConfig() (cfg Config, images Images, labels []int) {
	cfg = tiny()
	cfg.InputSize, cfg.LearningRate, cfg.Nesterov = 16, 0.01, true
	cfg.Epochs, cfg.Batch, cfg.CropPad, cfg.Flip, cfg.LRStep = 2, 8, 2, true, 1
	cfg.Mean, cfg.Std = [3]float64{.4, .5, .6}, [3]float64{.2, .25, .3}
	return cfg, noise(22, cfg.InputSize, 3), cycle(22, cfg.Outputs)
}

// Many steps in one call on data that lies on the device give what single steps give
// from the host's batches.
func TestResidentEqualsSteps(t *testing.T) {
	t.Parallel()
	be := openGo(t)
	cfg, images, labels := deviceConfig()
	compute := func(how plan) (*Network, []Progress) {
		var told []Progress
		net, err := train(t.Context(), be, how, cfg, images, labels, func(p Progress) { told = append(told, p) })
		if err != nil {
			t.Fatal(err)
		}
		return net, told
	}
	want, steps := compute(planFor(be))
	got, calls := compute(onDevice(false))
	for i, s := range architectureOf(want) {
		nearby(t, s, weightsOf(got)[i], weightsOf(want)[i], 1e-4)
	}
	last, wantLast := calls[len(calls)-1], steps[len(steps)-1]
	if math.Abs(last.Loss-wantLast.Loss) > 1e-5*wantLast.Loss {
		t.Errorf("the loss is %v, want %v", last.Loss, wantLast.Loss)
	}
	if last.Loss = wantLast.Loss; last != wantLast {
		t.Errorf("the last progress is %+v, want %+v", last, wantLast)
	}
}

// In bfloat16 the same training comes near, and learns as much.
func TestHalfPrecision(t *testing.T) {
	t.Parallel()
	be := openGo(t)
	cfg, images, labels := deviceConfig()
	loss := func(how plan) float64 {
		var last Progress
		if _, err := train(t.Context(), be, how, cfg, images, labels, func(p Progress) { last = p }); err != nil {
			t.Fatal(err)
		}
		return last.Loss
	}
	want := loss(onDevice(false))
	if got := loss(onDevice(true)); math.Abs(got-want) > 0.05*want {
		t.Errorf("the loss is %v, want about %v", got, want)
	}
}

// Scoring bytes that the device normalises gives what scoring the host's values gives,
// and in bfloat16 comes near.
func TestResidentScores(t *testing.T) {
	t.Parallel()
	be := openGo(t)
	cfg, images, labels := deviceConfig()
	net, err := Train(t.Context(), be, cfg, images, labels, nil)
	if err != nil {
		t.Fatal(err)
	}
	scores := func(how plan) Output {
		s, err := net.newScorer(be, how, 16) // one whole batch and a short one
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		out, err := s.Infer(t.Context(), images, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	want := scores(planFor(be))
	for _, tt := range []struct {
		half      bool
		tolerance float64
	}{{false, 1e-4}, {true, 0.05}} {
		got := scores(onDevice(tt.half))
		nearby(t, "logits", got.Logits, want.Logits, tt.tolerance)
		nearby(t, "features", got.Feature, want.Feature, tt.tolerance)
	}
}

// Training on the device ends at the next call when its context does.
func TestResidentCancel(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cfg, images, labels := deviceConfig()
	_, err := train(ctx, openGo(t), onDevice(false), cfg, images, labels, func(Progress) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled training gives %v", err)
	}
}

func architectureOf(n *Network) []string {
	weights, stats := architecture(n.Outputs, n.Width)
	var names []string
	for _, s := range append(weights, stats...) {
		names = append(names, s.name)
	}
	return names
}

func weightsOf(n *Network) [][]float32 {
	return append(n.weights[:len(n.weights):len(n.weights)], n.stats...)
}

// nearby wants values apart by no more than a share of the largest.
func nearby(t *testing.T, what string, got, want []float32, tolerance float64) {
	t.Helper()
	largest, apart := 0.0, 0.0
	for i := range want {
		largest = max(largest, math.Abs(float64(want[i])))
		apart = max(apart, math.Abs(float64(got[i]-want[i])))
	}
	if len(got) != len(want) || !(apart <= tolerance*largest) {
		t.Errorf("%s: values are up to %g apart, the largest is %g", what, apart, largest)
	}
}

func TestRepeat(t *testing.T) {
	t.Parallel()
	out := run(t, openGo(t), func(in []*graph.Node) []*graph.Node {
		return repeat(in[0], in[1], in[2:], func(step *graph.Node, v []*graph.Node) []*graph.Node {
			at := graph.Gather(v[1], step)
			return []*graph.Node{graph.Add(graph.Mul(v[0], v[0]), at), v[1]}
		})[:1]
	}, int32(1), int32(4), float32(2), []float32{100, 1, 2, 3, 100})
	// 2² + 1 = 5, 5² + 2 = 27, 27² + 3
	if got := tensors.ToScalar[float32](out[0]); got != 732 {
		t.Errorf("the loop gives %v, want 732", got)
	}
}

// Images made on the device are those that the host makes: every crop, mirrored or not.
func TestLooks(t *testing.T) {
	t.Parallel()
	const size, n = 4, 3
	mean, std := [3]float64{.4, .5, .6}, [3]float64{.2, .25, .3}
	images := noise(n, size, 1)
	f := native{}
	var looks []int32
	var want []float32
	table := newNormalizer(mean, std)
	for image := range n {
		for _, v := range []view{{}, {flip: true}, {dy: -2, dx: 1}, {dy: 1, dx: -1, flip: true}, {dy: 4, dx: 4}} {
			look := [lookLen]int32{lookImage: int32(image), lookRow: int32(v.dy), lookColumn: int32(v.dx)}
			if v.flip {
				look[lookFlip] = 1
			}
			looks = append(looks, look[:]...)
			l := f.layout(1, inputChannels, size)
			data := make([]float32, l.size())
			table.place(data, l, 0, images.At(image), size, v)
			want = append(want, data...)
		}
	}
	out := run(t, openGo(t), func(in []*graph.Node) []*graph.Node {
		return []*graph.Node{normalise(view4(in[0], in[1], size), mean, std)}
	}, tensors.FromFlatDataAndDimensions(images.RGB, n*size*size, 3), tensors.FromFlatDataAndDimensions(looks, len(looks)/lookLen, lookLen))
	got := tensors.MustCopyFlatData[float32](out[0])
	nearby(t, "pixels", got, want, 1e-6)
	for i := range want {
		if math.Abs(float64(got[i]-want[i])) > 1e-5 {
			t.Fatalf("value %d is %v, want %v", i, got[i], want[i])
		}
	}
}
