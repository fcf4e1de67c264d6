package ml

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
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
		Pool: inMemory(shapes(pool, 16, 2)), Test: shapes(test, 16, 3), TestLabels: test,
	}
}

// inMemory is a pool on the default backend, which needs no closing.
func inMemory(images nn.Images) Pool {
	be, err := backend.Open(backend.Default)
	if err != nil {
		panic(err)
	}
	return Hold(be, images)
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
		if c.Index < 0 || c.Index >= in.Pool.Len() || seen[c.Index] || !c.Scores.HasScores {
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

// subset keeps the labeled images for which keep says so.
func (in *RoundInput) subset(keep func(label int) bool) {
	images := nn.Images{Size: in.Labeled.Size}
	var labels []int
	for i, label := range in.Labels {
		if keep(label) {
			images.RGB = append(images.RGB, in.Labeled.At(i)...)
			labels = append(labels, label)
		}
	}
	images.N = len(labels)
	in.Labeled, in.Labels = images, labels
}

func TestRoundShapes(t *testing.T) {
	t.Parallel()
	none := func(int) bool { return false }
	tests := []struct {
		name                 string
		change               func(in *RoundInput)
		cold                 bool
		detector, classifier bool
	}{
		{"nothing labeled", func(in *RoundInput) { in.subset(none) }, true, false, false},
		{"only unknowns labeled", func(in *RoundInput) { in.subset(func(l int) bool { return l == 3 }) }, true, false, false},
		{"no unknown labeled", func(in *RoundInput) { in.subset(func(l int) bool { return l < 3 }); in.Number = 0 }, false, true, true},
		{"a class without labels", func(in *RoundInput) { in.subset(func(l int) bool { return l != 1 }) }, false, true, true},
		{"one class", func(in *RoundInput) {
			in.Classes = 1
			in.subset(func(l int) bool { return l <= 1 })
			in.Test, in.TestLabels = nn.Images{}, nil
		}, false, true, true},
		{"no test images", func(in *RoundInput) { in.Test, in.TestLabels = nn.Images{}, nil }, false, true, true},
		{"random", func(in *RoundInput) { in.Settings.Strategy = "random" }, false, false, true},
		{"random without test images", func(in *RoundInput) {
			in.Settings.Strategy = "random"
			in.Test, in.TestLabels = nn.Images{}, nil
		}, false, false, false},
		{"uncertainty", func(in *RoundInput) { in.Settings.Strategy = "uncertainty" }, false, false, true},
		{"badge", func(in *RoundInput) { in.Settings.Strategy = "badge" }, false, false, true},
		{"coreset", func(in *RoundInput) { in.Settings.Strategy = "coreset" }, false, false, true},
		{"budget above the pool", func(in *RoundInput) { in.Settings.Budget = 1000 }, false, true, true},
	}
	be := open(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := testRound()
			in.Settings.Epochs, in.Settings.Width = 1, 2
			tt.change(&in)
			out, err := RunRound(t.Context(), be, in, nil)
			if err != nil {
				t.Fatal(err)
			}
			if out.ColdStart != tt.cold || (out.Detector != nil) != tt.detector || (out.Classifier != nil) != tt.classifier {
				t.Errorf("cold start %v, detector %v, classifier %v; want %v, %v, %v",
					out.ColdStart, out.Detector != nil, out.Classifier != nil, tt.cold, tt.detector, tt.classifier)
			}
			if want := min(in.Settings.Budget, in.Pool.Len()); len(out.Query) != want {
				t.Errorf("%d images queried, want %d", len(out.Query), want)
			}
			if got, want := out.Metrics.TestAccuracy != nil, in.Test.N > 0 && !tt.cold; got != want {
				t.Errorf("there is a test accuracy: %v, want %v", got, want)
			}
		})
	}
}

func TestRoundErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(in *RoundInput)
		code   winnow.Code
		says   string
	}{
		{"empty pool", func(in *RoundInput) { in.Pool = inMemory(nn.Images{}) }, winnow.CodeInvalid, "No unlabeled image"},
		{"unknown strategy", func(in *RoundInput) { in.Settings.Strategy = "tarot" }, winnow.CodeInvalid, "tarot"},
		{"diverging", func(in *RoundInput) { in.Settings.LearningRate = 1e30 }, winnow.CodeInvalid, "diverged"},
		{"too small", func(in *RoundInput) {
			in.Settings.InputSize = 4
			in.Pool, in.Labeled, in.Test = inMemory(nn.Images{N: 80, Size: 4, RGB: make([]byte, 80*48)}), nn.Images{N: 32, Size: 4, RGB: make([]byte, 32*48)}, nn.Images{N: 30, Size: 4, RGB: make([]byte, 30*48)}
		}, winnow.CodeInvalid, "at least 8 pixels"},
		{"label out of range", func(in *RoundInput) { in.Labels[0] = 9 }, winnow.CodeInternal, "out of range"},
		{"labels missing", func(in *RoundInput) { in.Labels = in.Labels[1:] }, winnow.CodeInternal, "labels"},
	}
	be := open(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := testRound()
			tt.change(&in)
			_, err := RunRound(t.Context(), be, in, nil)
			if winnow.ErrorCode(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the error is %v (%s), want %q (%s)", err, winnow.ErrorCode(err), tt.says, tt.code)
			}
		})
	}
}

func TestRoundCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := RunRound(ctx, open(t), testRound(), func(p winnow.Progress) {
		if p.Epoch == 1 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the round ends with %v, want %v", err, context.Canceled)
	}
}
