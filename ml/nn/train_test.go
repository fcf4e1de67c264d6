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
