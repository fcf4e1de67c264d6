package nn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"winnow"
	"winnow/ml/backend"
)

// Train trains a network from scratch on the images and their labels, 0..Outputs-1.
// The same configuration, images and seed give the same network on one backend.
//
// Progress, if not nil, is called after every step. Errors: winnow.CodeInvalid when the
// images are too small, there are none, an output has no example (unless
// cfg.AllowEmpty), or the loss is not finite, with the step; ctx's error between steps.
func Train(ctx context.Context, be *backend.Backend, cfg Config, images Images, labels []int, progress func(Progress)) (*Network, error) {
	if err := cfg.validate(images, labels); err != nil {
		return nil, err
	}
	// Weights, order and augmentation draw from streams of their own, so that one
	// setting does not change what another draws.
	stream := func(i uint64) *rand.Rand { return rand.New(rand.NewPCG(uint64(cfg.Seed), i)) }
	weights, stats := initialise(cfg, stream(1))
	order, views := stream(2), stream(3)

	t, err := newTrainer(be, cfg, weights, stats)
	if err != nil {
		return nil, fmt.Errorf("prepare training: %w", err)
	}
	defer t.close()

	n := images.N
	stepsPerEpoch := (n + cfg.Batch - 1) / cfg.Batch
	report := Progress{Epochs: cfg.Passes(n)}
	report.Steps = report.Epochs * stepsPerEpoch
	table := newNormalizer(cfg.Mean, cfg.Std)
	perm := make([]int, n)
	for i := range perm {
		perm[i] = i
	}
	var batch batcher
	for epoch := range report.Epochs {
		order.Shuffle(n, func(i, j int) { perm[i], perm[j] = perm[j], perm[i] })
		sum := 0.0
		for from := 0; from < n; from += cfg.Batch {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			chosen := perm[from:min(from+cfg.Batch, n)]
			l := t.form.layout(len(chosen), inputChannels, cfg.InputSize)
			data, oneHot := batch.buffers(l, len(chosen), cfg.Outputs)
			for i, image := range chosen {
				table.place(data, l, i, images.At(image), images.Size, draw(views, cfg.CropPad, cfg.Flip))
				oneHot[i*cfg.Outputs+labels[image]] = 1
			}
			rate := cfg.rate(report.Step, report.Steps, epoch)
			loss, err := t.step(l, data, oneHot, rate)
			if err != nil {
				return nil, fmt.Errorf("training step %d: %w", report.Step+1, err)
			}
			report.Step++
			if math.IsNaN(loss) || math.IsInf(loss, 0) {
				return nil, winnow.Errorf(winnow.CodeInvalid,
					"Training diverged: the loss is %v at step %d of %d (epoch %d, learning rate %g). Try a smaller learning rate.",
					loss, report.Step, report.Steps, epoch+1, rate)
			}
			sum += loss * float64(len(chosen))
			report.EpochDone = from+cfg.Batch >= n
			if report.EpochDone {
				report.Epoch, report.Loss = epoch+1, sum/float64(n)
			}
			if progress != nil {
				progress(report)
			}
		}
	}
	if weights, stats, err = t.weightsAndStats(); err != nil {
		return nil, fmt.Errorf("read the trained weights: %w", err)
	}
	net := &Network{
		Outputs: cfg.Outputs, Width: cfg.Width, InputSize: cfg.InputSize, Mean: cfg.Mean, Std: cfg.Std,
		weights: weights, stats: stats,
	}
	if !net.finite() {
		return nil, winnow.Errorf(winnow.CodeInvalid,
			"Training diverged: weights are not finite after step %d. Try a smaller learning rate.", report.Step)
	}
	return net, nil
}

func (cfg *Config) validate(images Images, labels []int) error {
	if err := checkShape(cfg.Outputs, cfg.Width, cfg.InputSize); err != nil {
		return err
	}
	if err := images.validate(); err != nil {
		return err
	}
	switch {
	case images.N == 0:
		return winnow.Errorf(winnow.CodeInvalid, "There are no labeled images to train on.")
	case images.Size != cfg.InputSize:
		return winnow.Errorf(winnow.CodeInternal, "The images are %d pixels a side, the network sees %d.", images.Size, cfg.InputSize)
	case len(labels) != images.N:
		return winnow.Errorf(winnow.CodeInternal, "%d images have %d labels.", images.N, len(labels))
	case cfg.Epochs < 1 || cfg.Batch < 1:
		return winnow.Invalid("epochs", "Training needs at least one epoch and a batch of one image.")
	case cfg.Std[0] <= 0 || cfg.Std[1] <= 0 || cfg.Std[2] <= 0:
		return winnow.Errorf(winnow.CodeInternal, "The standard deviations %v are not positive.", cfg.Std)
	}
	examples := make([]int, cfg.Outputs)
	for i, label := range labels {
		if label < 0 || label >= cfg.Outputs {
			return winnow.Errorf(winnow.CodeInternal, "Image %d has label %d; the network has %d outputs.", i, label, cfg.Outputs)
		}
		examples[label]++
	}
	if i := slices.Index(examples, 0); i >= 0 && !cfg.AllowEmpty {
		return winnow.Errorf(winnow.CodeInvalid, "Class %d of %d has no example to train on.", i, cfg.Outputs)
	}
	return nil
}

// initialise draws PyTorch's initial weights: uniform in +-1/sqrt(fan in).
func initialise(cfg Config, rng *rand.Rand) (weights, stats [][]float32) {
	ws, ss := architecture(cfg.Outputs, cfg.Width)
	fill := func(s tensorSpec) []float32 {
		data := make([]float32, s.size())
		for i := range data {
			data[i] = s.value
			if s.fanIn > 0 {
				data[i] = float32((2*rng.Float64() - 1) / math.Sqrt(float64(s.fanIn)))
			}
		}
		return data
	}
	for _, s := range ws {
		weights = append(weights, fill(s))
	}
	for _, s := range ss {
		stats = append(stats, fill(s))
	}
	return weights, stats
}

// batcher keeps the host's buffers between steps.
type batcher struct {
	data, oneHot []float32
}

// buffers returns zeroed labels, and data that is zero wherever no pixel goes.
func (b *batcher) buffers(l layout, n, outputs int) (data, oneHot []float32) {
	if len(b.data) != l.size() { // another batch size: pixels went elsewhere
		b.data = make([]float32, l.size())
		b.oneHot = make([]float32, n*outputs)
	}
	clear(b.oneHot)
	return b.data, b.oneHot
}
