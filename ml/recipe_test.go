package ml

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow"
	"winnow/ml/nn"
)

func TestRecipe(t *testing.T) {
	t.Parallel()
	s := winnow.DefaultSettings()
	s.Epochs, s.Batch, s.LRStep = 100, 64, 30
	full := nn.Config{
		Width: 16, InputSize: 32, Epochs: 100, Batch: 64, LearningRate: 0.01, LRStep: 30, LRGamma: 0.5,
		Momentum: 0.9, WeightDecay: 5e-4, CropPad: 4, Flip: true,
	}
	if diff := cmp.Diff(full, recipe(s)); diff != "" {
		t.Errorf("full (-want +got):\n%s", diff)
	}
	s.Recipe = "fast"
	fast := recipe(s)
	if !fast.OneCycle || !fast.Nesterov || fast.LearningRate <= s.LearningRate {
		t.Errorf("fast is %+v", fast)
	}
	// The reference protocol: what is labeled in its rounds, about half of it known.
	spent := func(cfg nn.Config) (images int) {
		for labeled := 100; labeled <= 1000; labeled += 150 {
			for _, n := range []int{labeled, 100 + (labeled-100)/2} {
				images += n * cfg.Passes(n)
			}
		}
		return images
	}
	if share := float64(spent(fast)) / float64(spent(full)); share > 0.2 || share < 0.1 {
		t.Errorf("fast trains on %.3f of full's images", share)
	}
	// However few images: never fewer steps than the floor.
	if steps := fast.Passes(10); steps < fast.MinSteps {
		t.Errorf("ten images get %d steps", steps)
	}
	for _, batch := range []int{2, 16, 20, 4096} {
		s.Batch = batch
		if got := recipe(s).Batch; got < 2 || got > batch {
			t.Errorf("batch %d becomes %d", batch, got)
		}
	}
}

// A whole round by the fast recipe.
func TestFastRound(t *testing.T) {
	t.Parallel()
	in := testRound()
	in.Settings.Recipe = "fast"
	out, err := RunRound(t.Context(), open(t), in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if m := out.Metrics.TestAccuracy; m == nil || *m < 0.7 {
		t.Errorf("test accuracy is %v, want at least 0.7", m)
	}
}
