package nn

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestPasses(t *testing.T) {
	t.Parallel()
	tests := []struct {
		n, epochs, batch, min, want int
	}{
		{100, 10, 64, 0, 10},
		{100, 10, 64, 20, 10}, // two steps an epoch
		{100, 10, 64, 21, 11},
		{100, 10, 64, 200, 100},
		{1000, 10, 64, 160, 10},
		{1, 1, 64, 3, 3},
	}
	for _, tt := range tests {
		cfg := Config{Epochs: tt.epochs, Batch: tt.batch, MinSteps: tt.min}
		if got := cfg.Passes(tt.n); got != tt.want {
			t.Errorf("%+v: %d passes", tt, got)
		}
	}
}

func TestRates(t *testing.T) {
	t.Parallel()
	steps := Config{LearningRate: 0.1, LRGamma: 0.5, LRStep: 3}
	for epoch, want := range []float64{0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025} {
		if got := steps.rate(0, 1, epoch); math.Abs(got-want) > 1e-12 {
			t.Errorf("epoch %d has rate %v, want %v", epoch, got, want)
		}
	}

	cycle := Config{LearningRate: 0.1, LRGamma: 0.5, LRStep: 1, OneCycle: true}
	for _, n := range []int{1, 2, 7, 1000} {
		sum, top, turns, last := 0.0, 0.0, 0, 0.0
		for i := range n {
			r := cycle.rate(i, n, i)
			if r <= 0 || r > cycle.LearningRate {
				t.Fatalf("step %d of %d has rate %v", i, n, r)
			}
			if r < last && top == last {
				turns++
			}
			sum, top, last = sum+r, max(top, r), r
		}
		if turns > 1 {
			t.Errorf("the rate of %d steps turns %d times", n, turns)
		}
		if n == 1000 {
			// The straight and the cosine part each average half of the peak.
			if math.Abs(sum/float64(n)-0.05) > 1e-3 || top < 0.0999 || last > 1e-3 {
				t.Errorf("mean %v, peak %v, end %v", sum/float64(n), top, last)
			}
		}
	}
}

// From rest, Nesterov's step is 1 + momentum times the plain one, and the velocity it
// leaves is the same.
func TestNesterov(t *testing.T) {
	t.Parallel()
	be := openGo(t)
	cfg := tiny()
	images, labels := noise(6, cfg.InputSize, 1), cycle(6, cfg.Outputs)
	first := func(nesterov bool) (before [][]float32, t2 *trainer) {
		cfg.Nesterov = nesterov
		weights, stats := initialise(cfg, rand.New(rand.NewPCG(1, 1)))
		tr, err := newTrainer(be, cfg, weights, stats)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(tr.close)
		l := tr.form.layout(images.N, inputChannels, cfg.InputSize)
		data, oneHot := make([]float32, l.size()), make([]float32, images.N*cfg.Outputs)
		table := newNormalizer(cfg.Mean, cfg.Std)
		for i, label := range labels {
			table.place(data, l, i, images.At(i), cfg.InputSize, view{})
			oneHot[i*cfg.Outputs+label] = 1
		}
		if _, err := tr.step(l, data, oneHot, 0.01); err != nil {
			t.Fatal(err)
		}
		return weights, tr
	}
	start, plain := first(false)
	_, ahead := first(true)
	after := func(tr *trainer) [][]float32 {
		weights, _, err := tr.weightsAndStats()
		if err != nil {
			t.Fatal(err)
		}
		return weights
	}
	p, a := after(plain), after(ahead)
	moved := 0.0
	for i := range start {
		for j := range start[i] {
			want := (1 + cfg.Momentum) * float64(p[i][j]-start[i][j])
			got := float64(a[i][j] - start[i][j])
			moved = max(moved, math.Abs(want))
			if math.Abs(got-want) > 1e-6+1e-3*math.Abs(want) {
				t.Fatalf("weight %d of tensor %d moves by %v, want %v", j, i, got, want)
			}
		}
	}
	if moved < 1e-4 {
		t.Errorf("the largest move is %v", moved)
	}
}
