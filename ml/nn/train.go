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
// Progress, if not nil, is called after every step; on XLA, which runs many at once,
// after every call of them. Errors: winnow.CodeInvalid when the images are too small,
// there are none, an output has no example (unless cfg.AllowEmpty), or the loss is not
// finite, with the step; ctx's error between steps or calls.
func Train(ctx context.Context, be *backend.Backend, cfg Config, images Images, labels []int, progress func(Progress)) (*Network, error) {
	return train(ctx, be, planFor(be), cfg, images, labels, progress)
}

// plan is how a backend trains.
type plan struct {
	form form
	// resident says that the images lie on the device and many steps are one call.
	resident bool
	// loops says that the backend can run a loop within a graph.
	loops bool
	// constants says that scoring is faster with the weights as constants of the
	// graph: ONNX Runtime then folds the normalisation into them and packs them.
	constants bool
}

func planFor(be *backend.Backend) plan {
	xla := be.Kind() == backend.XLA
	return plan{form: formFor(be), resident: xla, loops: xla, constants: be.Kind() == backend.ONNX}
}

func train(ctx context.Context, be *backend.Backend, how plan, cfg Config, images Images, labels []int, progress func(Progress)) (*Network, error) {
	if err := cfg.validate(images, labels); err != nil {
		return nil, err
	}
	// Weights, order and augmentation draw from streams of their own, so that one
	// setting does not change what another draws.
	stream := func(i uint64) *rand.Rand { return rand.New(rand.NewPCG(uint64(cfg.Seed), i)) }
	weights, stats := initialise(cfg, stream(1))
	t, err := newTrainer(be, cfg, weights, stats)
	if err != nil {
		return nil, fmt.Errorf("prepare training: %w", err)
	}
	defer t.close()
	t.form = how.form

	n := images.N
	c := &course{
		trainer: t, images: images, labels: labels, order: make([]int, n), views: stream(3), progress: progress,
		table: newNormalizer(cfg.Mean, cfg.Std), report: Progress{Epochs: cfg.Passes(n)},
	}
	c.report.Steps = c.report.Epochs * ((n + cfg.Batch - 1) / cfg.Batch)
	for i := range c.order {
		c.order[i] = i
	}
	pass := c.onHost
	// A device counts pixels in 32 bits.
	if how.resident && n*images.Size*images.Size <= math.MaxInt32 {
		r, err := newResident(t, how.loops, images, labels)
		if err != nil {
			return nil, fmt.Errorf("prepare training: %w", err)
		}
		defer r.close()
		pass = func(ctx context.Context) (float64, error) { return c.onDevice(ctx, r) }
	}
	shuffle := stream(2)
	for range c.report.Epochs {
		shuffle.Shuffle(n, func(i, j int) { c.order[i], c.order[j] = c.order[j], c.order[i] })
		c.report.EpochDone = false
		loss, err := pass(ctx)
		if err != nil {
			return nil, err
		}
		c.report.Epoch, c.report.Loss, c.report.EpochDone = c.report.Epoch+1, loss, true
		c.tell()
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
			"Training diverged: weights are not finite after step %d. Try a smaller learning rate.", c.report.Step)
	}
	return net, nil
}

// course is a training on its way through the epochs.
type course struct {
	*trainer
	images   Images
	labels   []int
	order    []int // of the images in this epoch
	views    *rand.Rand
	table    *normalizer
	batch    batcher
	report   Progress
	progress func(Progress)
}

func (c *course) tell() {
	if c.progress != nil {
		c.progress(c.report)
	}
}

// rate is that of the step that is so many after those done.
func (c *course) rate(ahead int) float64 {
	return c.cfg.rate(c.report.Step+ahead, c.report.Steps, c.report.Epoch)
}

// onHost runs an epoch step by step, its batches made by the host, and returns the mean
// loss over its images. It leaves telling of the last step to the caller.
func (c *course) onHost(ctx context.Context) (float64, error) {
	n, sum := c.images.N, 0.0
	for from := 0; from < n; from += c.cfg.Batch {
		if from > 0 {
			c.tell()
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		chosen := c.order[from:min(from+c.cfg.Batch, n)]
		l := c.form.layout(len(chosen), inputChannels, c.cfg.InputSize)
		data, oneHot := c.batch.buffers(l, len(chosen), c.cfg.Outputs)
		for i, image := range chosen {
			c.table.place(data, l, i, c.images.At(image), c.images.Size, draw(c.views, c.cfg.CropPad, c.cfg.Flip))
			oneHot[i*c.cfg.Outputs+c.labels[image]] = 1
		}
		rate := c.rate(0)
		loss, err := c.step(l, data, oneHot, rate)
		if err != nil {
			return 0, fmt.Errorf("training step %d: %w", c.report.Step+1, err)
		}
		c.report.Step++
		if err := c.checkLoss(loss, rate); err != nil {
			return 0, err
		}
		sum += loss * float64(len(chosen))
	}
	return sum / float64(n), nil
}

// onDevice runs an epoch in calls of many steps.
func (c *course) onDevice(ctx context.Context, r *resident) (float64, error) {
	looks := make([]int32, 0, len(c.order)*lookLen)
	for _, image := range c.order {
		v := draw(c.views, c.cfg.CropPad, c.cfg.Flip)
		look := [lookLen]int32{lookImage: int32(image), lookRow: int32(v.dy), lookColumn: int32(v.dx)}
		if v.flip {
			look[lookFlip] = 1
		}
		looks = append(looks, look[:]...)
	}
	rates := make([]float32, (len(c.order)+c.cfg.Batch-1)/c.cfg.Batch)
	for i := range rates {
		rates[i] = float32(c.rate(i))
	}
	last := c.report.Step + len(rates)
	loss, err := r.epoch(ctx, looks, rates, func(steps int) {
		if c.report.Step += steps; c.report.Step < last {
			c.tell()
		}
	})
	if err != nil {
		if ctx.Err() != nil {
			return 0, err
		}
		return 0, fmt.Errorf("training after step %d: %w", c.report.Step, err)
	}
	return loss, c.checkLoss(loss, float64(rates[len(rates)-1]))
}

func (c *course) checkLoss(loss, rate float64) error {
	if !math.IsNaN(loss) && !math.IsInf(loss, 0) {
		return nil
	}
	return winnow.Errorf(winnow.CodeInvalid,
		"Training diverged: the loss is %v at step %d of %d (epoch %d, learning rate %g). Try a smaller learning rate.",
		loss, c.report.Step, c.report.Steps, c.report.Epoch+1, rate)
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
