package nn

import (
	"math/rand/v2"
	"testing"

	"winnow/ml/backend"
)

// openGo opens the pure-Go backend.
func openGo(t testing.TB) *backend.Backend {
	t.Helper()
	be, err := backend.Open(backend.Default)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	return be
}

func noise(n, size int, seed uint64) Images {
	rng := rand.New(rand.NewPCG(seed, 0))
	im := Images{N: n, Size: size, RGB: make([]byte, n*size*size*3)}
	for i := range im.RGB {
		im.RGB[i] = byte(rng.IntN(256))
	}
	return im
}

func TestTrainsTiny(t *testing.T) {
	t.Parallel()
	be := openGo(t)
	images := noise(20, 16, 1)
	labels := make([]int, 20)
	for i := range labels {
		labels[i] = i % 3
	}
	cfg := Config{Outputs: 3, Width: 4, InputSize: 16, Epochs: 30, Batch: 8, LearningRate: 0.05, LRGamma: .5, LRStep: 100, Momentum: .9, Std: [3]float64{1, 1, 1}, Seed: 1}
	net, err := Train(t.Context(), be, cfg, images, labels, func(p Progress) {
		if p.EpochDone {
			t.Log(p.Loss)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := net.Infer(t.Context(), be, images, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(out.Logits[:9])
}

func BenchmarkTrainStep(b *testing.B) {
	be := openGo(b)
	const n = 64
	cfg := Config{
		Outputs: 5, Width: 16, InputSize: 32, Epochs: 1, Batch: n, LearningRate: 0.01, LRGamma: .5, LRStep: 100, Momentum: .9, WeightDecay: 5e-4, Std: [3]float64{1, 1, 1}, Seed: 1,
		Energy: &Energy{.01, -25, -7},
	}
	weights, stats := initialise(cfg, rand.New(rand.NewPCG(1, 1)))
	tr, err := newTrainer(be, cfg, weights, stats)
	if err != nil {
		b.Fatal(err)
	}
	defer tr.close()
	images := noise(n, 32, 1)
	l := tr.form.layout(n, 32)
	data, oneHot := make([]float32, l.size()), make([]float32, n*5)
	table := newNormalizer(cfg.Mean, cfg.Std)
	for i := range n {
		table.place(data, l, i, images.At(i), 32, view{})
		oneHot[i*5+i%5] = 1
	}
	if _, err := tr.step(l, data, oneHot, .01); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := tr.step(l, data, oneHot, .01); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "images/s")
}
