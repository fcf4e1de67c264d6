package nn

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"winnow/ml/backend"
)

// torchCase is one record of testdata/pytorch.py.
type torchCase struct {
	Name                        string
	Size, Batch, Width, Outputs int
	Losses                      []float64
	values                      []float32
}

func torchCases(t testing.TB) []torchCase {
	t.Helper()
	data, err := os.ReadFile("testdata/pytorch.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []torchCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		raw, err := os.ReadFile(filepath.Join("testdata", cases[i].Name+".f32"))
		if err != nil {
			t.Fatal(err)
		}
		cases[i].values = make([]float32, len(raw)/4)
		if err := binary.Read(bytes.NewReader(raw), binary.LittleEndian, cases[i].values); err != nil {
			t.Fatal(err)
		}
	}
	return cases
}

// numbers is the hash of pytorch.py: n numbers in [-1, 1).
func numbers(n int, salt uint64) []float64 {
	out := make([]float64, n)
	for i := range out {
		u := (uint64(i)*2654435761 + salt*40503 + 12345) % (1 << 32)
		u = (u ^ u>>15) * 2246822519 % (1 << 32)
		out[i] = float64(u)/(1<<31) - 1
	}
	return out
}

// torchStart gives the weights and statistics that pytorch.py starts from.
func (c torchCase) start() (weights, stats [][]float32) {
	ws, ss := architecture(c.Outputs, c.Width)
	for salt, s := range ws {
		data := make([]float32, s.size())
		for i, v := range numbers(s.size(), uint64(salt)) {
			switch {
			case s.fanIn > 0:
				data[i] = float32(v / math.Sqrt(float64(s.fanIn)))
			case strings.HasSuffix(s.name, ".weight"):
				data[i] = float32(1 + v/2)
			default:
				data[i] = float32(v / 2)
			}
		}
		weights = append(weights, data)
	}
	for _, s := range ss {
		data := make([]float32, s.size())
		for i := range data {
			data[i] = s.value
		}
		stats = append(stats, data)
	}
	return weights, stats
}

// batch lays out pytorch.py's images and labels.
func (c torchCase) batch(l layout) (data, oneHot []float32) {
	data, oneHot = make([]float32, l.size()), make([]float32, c.Batch*c.Outputs)
	pixels := numbers(c.Batch*c.Size*c.Size*3, 1000)
	for i := range c.Batch {
		for y := range c.Size {
			for x := range c.Size {
				for ch := range 3 {
					data[l.offset+ch*l.channel+i*l.image+y*l.row+x*l.pixel] = float32(pixels[((i*c.Size+y)*c.Size+x)*3+ch])
				}
			}
		}
		oneHot[i*c.Outputs+i%c.Outputs] = 1
	}
	return data, oneHot
}

// TestStepEqualsPyTorch takes two training steps and one scoring pass from PyTorch's
// start and compares every weight, statistic, logit and feature.
func TestStepEqualsPyTorch(t *testing.T) {
	t.Parallel()
	for _, be := range append(others(t), openGo(t)) {
		for _, c := range torchCases(t) {
			t.Run(be.Name()+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				compareWithTorch(t, be, c)
			})
		}
	}
}

const torchTolerance = 1e-4

func compareWithTorch(t *testing.T, be *backend.Backend, c torchCase) {
	cfg := Config{
		Outputs: c.Outputs, Width: c.Width, InputSize: c.Size, Momentum: 0.9, WeightDecay: 5e-4,
		Energy: &Energy{Weight: 0.01, MarginKnown: -25, MarginUnknown: -7},
	}
	weights, stats := c.start()
	tr, err := newTrainer(be, cfg, weights, stats)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	l := tr.form.layout(c.Batch, inputChannels, c.Size)
	data, oneHot := c.batch(l)
	for i, want := range c.Losses {
		got, err := tr.step(l, data, oneHot, 0.05)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(got-want) > torchTolerance*want {
			t.Errorf("step %d: the loss is %v, want %v", i+1, got, want)
		}
	}
	weights, stats, err = tr.weightsAndStats()
	if err != nil {
		t.Fatal(err)
	}

	rest := c.values
	compare := func(name string, got []float32) {
		t.Helper()
		worst, at := 0.0, 0
		for i, want := range rest[:len(got)] {
			if d := math.Abs(float64(got[i]-want)) / max(1, math.Abs(float64(want))); !(d <= worst) {
				worst, at = d, i
			}
		}
		if !(worst <= torchTolerance) {
			t.Errorf("%s: value %d is %v, want %v", name, at, got[at], rest[at])
		}
		rest = rest[len(got):]
	}
	ws, ss := architecture(c.Outputs, c.Width)
	for i, s := range ws {
		compare(s.name, weights[i])
	}
	for i, s := range ss {
		compare(s.name, stats[i])
	}

	n := &Network{Outputs: c.Outputs, Width: c.Width, InputSize: c.Size, weights: weights, stats: stats}
	how := planFor(be)
	how.resident = false // data is laid out by the host
	s, err := n.newScorer(be, how, c.Batch)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	results, err := s.exec.Call(append(anys(s.state), tensors.FromFlatDataAndDimensions(data, l.dims...))...)
	if err != nil {
		t.Fatal(err)
	}
	compare("logits", tensors.MustCopyFlatData[float32](results[0]))
	compare("features", tensors.MustCopyFlatData[float32](results[1]))
	if len(rest) != 0 {
		t.Errorf("%d recorded values are left over", len(rest))
	}
}

func anys(ts []*tensors.Tensor) []any {
	out := make([]any, len(ts))
	for i, t := range ts {
		out[i] = t
	}
	return out
}
