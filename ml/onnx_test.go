//go:build onnx

package ml

import (
	"reflect"
	"testing"

	"winnow"
	"winnow/ml/backend"
)

// A whole round works on ONNX Runtime as it does in pure Go: it learns the same, and the
// same input gives the same query again.
func TestRunRoundONNX(t *testing.T) {
	t.Parallel()
	be, err := backend.Open("onnx")
	if err != nil {
		t.Skip(winnow.ErrorMessage(err))
	}
	t.Cleanup(be.Close)
	in := testRound()
	pool := in.Pool.(held).images
	run := func(be *backend.Backend) *RoundOutput {
		in.Pool = Hold(be, pool)
		out, err := RunRound(t.Context(), be, in, nil)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	first := run(be)
	if first.ColdStart || first.Detector == nil || first.Classifier == nil || len(first.Query) != in.Settings.Budget {
		t.Errorf("cold start %v, networks %v and %v, %d images queried", first.ColdStart, first.Detector, first.Classifier, len(first.Query))
	}
	onGo := *run(open(t)).Metrics.TestAccuracy
	if accuracy := *first.Metrics.TestAccuracy; accuracy < 0.7 || onGo < 0.7 {
		t.Errorf("test accuracy is %v, in pure Go %v, want at least 0.7", accuracy, onGo)
	} else {
		t.Logf("test accuracy %.2f, in pure Go %.2f", accuracy, onGo)
	}
	if second := run(be); !reflect.DeepEqual(first.Query, second.Query) {
		t.Errorf("the same input gives another query:\n%v\n%v", first.Query, second.Query)
	}
}
