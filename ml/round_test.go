package ml

import (
	"math/rand/v2"
	"slices"
	"testing"

	"winnow"
	"winnow/ml/backend"
	"winnow/ml/nn"
)

// shapes draws images that a small network tells apart: each class has a colour of
// its own and a stripe at its own height, on noise.
func shapes(labels []int, size int, seed uint64) nn.Images {
	rng := rand.New(rand.NewPCG(seed, 0))
	im := nn.Images{N: len(labels), Size: size, RGB: make([]byte, len(labels)*size*size*3)}
	for i, label := range labels {
		px := im.At(i)
		for j := range px {
			px[j] = byte(rng.IntN(120))
		}
		for x := range size {
			for dy := range 3 {
				y := (2 + label*3 + dy + rng.IntN(2)) % size
				px[(y*size+x)*3+label%3] = 250
			}
		}
	}
	return im
}

// repeat gives n labels 0, 1, ..., classes-1, 0, ...
func repeat(n, classes int) []int {
	labels := make([]int, n)
	for i := range labels {
		labels[i] = i % classes
	}
	return labels
}

func testSettings() winnow.Settings {
	s := winnow.DefaultSettings()
	s.Budget, s.Neighbours = 10, 20
	s.Width, s.InputSize, s.Epochs, s.Batch, s.LRStep, s.LearningRate = 4, 16, 12, 8, 8, 0.05
	s.CropPad, s.Flip = 1, false
	return s
}

func testRound() RoundInput {
	const classes = 3
	labels, pool, test := repeat(32, classes+1), repeat(80, classes+2), repeat(30, classes)
	return RoundInput{
		Settings: testSettings(), Classes: classes, Number: 1, K: 3, Seed: 7,
		Labeled: shapes(labels, 16, 1), Labels: labels,
		Pool: shapes(pool, 16, 2), Test: shapes(test, 16, 3), TestLabels: test,
	}
}

func open(t *testing.T) *backend.Backend {
	t.Helper()
	be, err := backend.Open(backend.Default)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	return be
}

func TestRunRound(t *testing.T) {
	t.Parallel()
	in := testRound()
	var last winnow.Progress
	stages := []string{}
	out, err := RunRound(t.Context(), open(t), in, func(p winnow.Progress) {
		if p.Fraction < last.Fraction {
			t.Errorf("progress goes back from %v to %v", last.Fraction, p.Fraction)
		}
		if p.Stage != last.Stage {
			stages = append(stages, p.Stage)
		}
		last = p
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.ColdStart || out.Detector == nil || out.Classifier == nil {
		t.Fatalf("cold start %v, networks %v %v", out.ColdStart, out.Detector, out.Classifier)
	}
	if want := []string{"training", "scoring", "querying"}; !slices.Equal(stages, want) {
		t.Errorf("stages are %q, want %q", stages, want)
	}
	if last.Fraction != 1 || len(last.Curves) != 2 || len(last.Curves[0].Loss) != in.Settings.Epochs {
		t.Errorf("the last progress is %+v", last)
	}
	seen := map[int]bool{}
	for _, c := range out.Query {
		if c.Index < 0 || c.Index >= in.Pool.N || seen[c.Index] || !c.Scores.HasScores {
			t.Errorf("bad choice %+v", c)
		}
		seen[c.Index] = true
	}
	if len(out.Query) != in.Settings.Budget {
		t.Errorf("%d images queried, want %d", len(out.Query), in.Settings.Budget)
	}
	m := out.Metrics
	if m.TestAccuracy == nil || *m.TestAccuracy < 0.7 {
		t.Errorf("test accuracy is %v, want at least 0.7", m.TestAccuracy)
	} else {
		t.Logf("test accuracy %.2f", *m.TestAccuracy)
	}
	if m.LabeledKnown != 24 || m.LabeledUnknown != 8 || m.PoolSize != 80 || m.TestImages != 30 {
		t.Errorf("metrics are %+v", m)
	}

	again, err := RunRound(t.Context(), open(t), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(out.Query, again.Query) {
		t.Error("the same round queries other images the second time")
	}
}
