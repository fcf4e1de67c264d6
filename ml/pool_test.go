package ml

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow/ml/nn"
	"winnow/ml/strategy"
)

// A pool that is scored in pieces, by other scorers, and whose scores are stored and
// read again, has the same scores to the bit, and so the same query.
func TestScoresOfAPoolInPieces(t *testing.T) {
	t.Parallel()
	in, be := testRound(), open(t)
	in.Settings.Epochs, in.Settings.Width = 1, 2
	images := shapes(repeat(300, 5), 16, 2)
	in.Pool = Hold(be, images)
	out, err := RunRound(t.Context(), be, in, nil)
	if err != nil {
		t.Fatal(err)
	}
	needs := strategy.Needs{DetectorLogits: true, DetectorFeatures: true, ClassifierLogits: true, ClassifierFeatures: true}
	whole, err := in.Pool.Score(t.Context(), out.Networks, needs, nil)
	if err != nil {
		t.Fatal(err)
	}
	pieces := out.NewScores(images.N, needs)
	for from := 0; from < images.N; from += 128 {
		to := min(from+128, images.N)
		s, err := NewScorer(be, out.Networks, needs)
		if err != nil {
			t.Fatal(err)
		}
		last := 0
		scores, err := s.Score(t.Context(), nn.Images{N: to - from, Size: 16, RGB: images.RGB[from*16*16*3 : to*16*16*3]}, func(n int) { last = n })
		s.Close()
		if err != nil || last != to-from {
			t.Fatalf("%d of %d images reported, %v", last, to-from, err)
		}
		data, err := scores.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := pieces.Rows(from, to).UnmarshalBinary(data); err != nil {
			t.Fatal(err)
		}
		if err := pieces.Rows(from, to).UnmarshalBinary(data[1:]); err == nil {
			t.Error("a value too few is no error")
		}
	}
	if diff := cmp.Diff(whole, pieces); diff != "" {
		t.Errorf("scores (-whole +in pieces):\n%s", diff)
	}
}

// Networks that are there already are neither trained nor kept again, and give the
// same query.
func TestTrainedNetworksAreUsed(t *testing.T) {
	t.Parallel()
	in, be := testRound(), open(t)
	in.Settings.Epochs, in.Settings.Width = 1, 2
	kept := 0
	in.Keep = func(_ context.Context, nets Networks) error {
		kept++
		in.Trained = nets
		return nil
	}
	first, err := RunRound(t.Context(), be, in, nil)
	if err != nil || kept != 1 || in.Trained != first.Networks {
		t.Fatalf("kept %d times, %v", kept, err)
	}
	in.Settings.LearningRate = 1e30 // would diverge
	second, err := RunRound(t.Context(), be, in, nil)
	if err != nil || kept != 1 {
		t.Fatalf("kept %d times, %v", kept, err)
	}
	if diff := cmp.Diff(first.Query, second.Query); diff != "" {
		t.Errorf("query (-first +with its networks):\n%s", diff)
	}

	in.Trained, in.Settings = Networks{}, testSettings()
	in.Settings.Epochs = 1
	full := errors.New("disk full")
	in.Keep = func(context.Context, Networks) error { return full }
	if _, err := RunRound(t.Context(), be, in, nil); !errors.Is(err, full) {
		t.Errorf("networks that cannot be kept: %v", err)
	}
}
