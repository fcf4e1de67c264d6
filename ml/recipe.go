package ml

import (
	"math"

	"winnow"
	"winnow/ml/nn"
)

// The fast recipe, in terms of the project's settings. It spends about a fifth of the
// full recipe's images: fewer passes, each with more and bolder steps.
const (
	fastPasses   = 0.15 // share of the epochs
	fastBatch    = 0.5  // share of the batch: twice the steps for the same images
	fastRate     = 3    // peak of the cycle, in learning rates
	fastMinSteps = 160  // for few images
	leastBatch   = 16   // that the recipe makes of a larger one
)

// recipe says how the settings' networks are trained. "full" is the settings as they
// stand: the method's published training. "fast" is one cycle of the learning rate with
// Nesterov's momentum. Neither smooths labels: smoothing pulls logits towards each
// other, and the energies are made of logits.
func recipe(s winnow.Settings) nn.Config {
	cfg := nn.Config{
		Width: s.Width, InputSize: s.InputSize, Epochs: s.Epochs, Batch: s.Batch,
		LearningRate: s.LearningRate, LRStep: s.LRStep, LRGamma: s.LRGamma,
		Momentum: s.Momentum, WeightDecay: s.WeightDecay, CropPad: s.CropPad, Flip: s.Flip,
	}
	if s.Recipe != "fast" {
		return cfg
	}
	share := func(of float64, n int) int { return max(1, int(math.Round(of*float64(n)))) }
	cfg.Epochs = share(fastPasses, s.Epochs)
	cfg.Batch = min(s.Batch, max(leastBatch, share(fastBatch, s.Batch)))
	cfg.MinSteps = fastMinSteps
	cfg.LearningRate = fastRate * s.LearningRate
	cfg.OneCycle, cfg.Nesterov = true, true
	return cfg
}
