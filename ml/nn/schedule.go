package nn

import "math"

// warmUp is the share of a cycle's steps in which the learning rate rises.
const warmUp = 0.3

// Passes says how often training passes over n images: Epochs times, or as often as
// MinSteps steps take where these are more. A few images make few steps an epoch, and
// a network that has hardly moved has learned nothing.
func (cfg *Config) Passes(n int) int {
	batch := max(cfg.Batch, 1)
	perEpoch := max((n+batch-1)/batch, 1)
	return max(cfg.Epochs, (cfg.MinSteps+perEpoch-1)/perEpoch)
}

// rate is the learning rate of a step, counted from 0, of a training of so many.
//
// In one cycle (Smith and Topin 2019) it rises in a straight line to LearningRate and
// falls to nothing by a cosine: large steps are safe once training is on its way, and
// the last steps settle. Otherwise it starts at LearningRate and drops every LRStep
// epochs.
func (cfg *Config) rate(step, steps, epoch int) float64 {
	if !cfg.OneCycle {
		return cfg.LearningRate * math.Pow(cfg.LRGamma, float64(epoch/max(cfg.LRStep, 1)))
	}
	// The middle of the step: neither the first nor the last has a rate of nothing.
	at := (float64(step) + 0.5) / float64(steps)
	if at < warmUp {
		return cfg.LearningRate * at / warmUp
	}
	return cfg.LearningRate * (1 + math.Cos(math.Pi*(at-warmUp)/(1-warmUp))) / 2
}
