package nn

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"winnow/ml/backend"
)

// The benchmarks' network: the default width, CIFAR's size, batches of 64.
const (
	benchBatch = 64
	benchSize  = 32
)

func benchConfig() Config {
	return Config{
		Outputs: 5, Width: 16, InputSize: benchSize, Epochs: 1, Batch: benchBatch,
		LearningRate: 0.01, LRGamma: 0.5, LRStep: 60, Momentum: 0.9, WeightDecay: 5e-4,
		Energy: &Energy{Weight: 0.01, MarginKnown: -25, MarginUnknown: -7}, Std: [3]float64{1, 1, 1}, Seed: 1,
	}
}

// BenchmarkTrainStep measures training steps on each backend that is present, of one
// network alone and of two at once as in a round.
func BenchmarkTrainStep(b *testing.B) {
	for _, be := range append([]*backend.Backend{openGo(b)}, others(b)...) {
		for _, networks := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/networks=%d", be.Name(), networks), func(b *testing.B) { benchmarkSteps(b, be, networks) })
		}
	}
}

func benchmarkSteps(b *testing.B, be *backend.Backend, networks int) {
	cfg := benchConfig()
	images := noise(benchBatch, benchSize, 1)
	var steps []func() error
	for range networks {
		weights, stats := initialise(cfg, rand.New(rand.NewPCG(1, 1)))
		tr, err := newTrainer(be, cfg, weights, stats)
		if err != nil {
			b.Fatal(err)
		}
		defer tr.close()
		l := tr.form.layout(benchBatch, inputChannels, benchSize)
		data, oneHot := make([]float32, l.size()), make([]float32, benchBatch*cfg.Outputs)
		table := newNormalizer(cfg.Mean, cfg.Std)
		for i := range benchBatch {
			table.place(data, l, i, images.At(i), benchSize, view{})
			oneHot[i*cfg.Outputs+i%cfg.Outputs] = 1
		}
		steps = append(steps, func() error {
			_, err := tr.step(l, data, oneHot, cfg.LearningRate)
			return err
		})
		if err := steps[len(steps)-1](); err != nil { // compiles
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	var wg sync.WaitGroup
	for _, step := range steps {
		wg.Go(func() {
			for range b.N {
				if err := step(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(networks*benchBatch*b.N)/b.Elapsed().Seconds(), "images/s")
}

// BenchmarkInfer measures scoring on each backend that is present.
func BenchmarkInfer(b *testing.B) {
	for _, be := range append([]*backend.Backend{openGo(b)}, others(b)...) {
		b.Run(be.Name(), func(b *testing.B) {
			cfg := benchConfig()
			weights, stats := initialise(cfg, rand.New(rand.NewPCG(1, 1)))
			net := &Network{Outputs: cfg.Outputs, Width: cfg.Width, InputSize: benchSize, Std: cfg.Std, weights: weights, stats: stats}
			images := noise(16*benchBatch, benchSize, 1)
			for b.Loop() {
				if _, err := net.Infer(b.Context(), be, images, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(images.N*b.N)/b.Elapsed().Seconds(), "images/s")
		})
	}
}
