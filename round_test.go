package winnow_test

import (
	"testing"

	"winnow"
)

func TestRoundStateOpen(t *testing.T) {
	t.Parallel()
	want := map[winnow.RoundState]bool{
		winnow.RoundQueued: true, winnow.RoundTraining: true, winnow.RoundScoring: true, winnow.RoundLabeling: true,
		winnow.RoundClosed: false, winnow.RoundFailed: false, winnow.RoundCancelled: false, "": false,
	}
	for state, open := range want {
		if state.Open() != open {
			t.Errorf("%q is open: %v", state, state.Open())
		}
	}
}

// Skipped and unreadable images are done, and count in precision neither way.
func TestItemCounts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		counts    winnow.ItemCounts
		done      int
		precision float64
		ok        bool
	}{
		"nothing decided":     {winnow.ItemCounts{Total: 5}, 0, 0, false},
		"only skipped":        {winnow.ItemCounts{Total: 5, Skipped: 2, Unreadable: 1}, 3, 0, false},
		"all known":           {winnow.ItemCounts{Total: 5, Known: 5}, 5, 1, true},
		"all unknown":         {winnow.ItemCounts{Total: 5, Unknown: 5}, 5, 0, true},
		"skipped are neither": {winnow.ItemCounts{Total: 9, Known: 3, Unknown: 1, Skipped: 4, Unreadable: 1}, 9, .75, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tt.counts.Done(); got != tt.done {
				t.Errorf("Done = %d, want %d", got, tt.done)
			}
			if got := tt.counts.Left(); got != tt.counts.Total-tt.done {
				t.Errorf("Left = %d of %d with %d done", got, tt.counts.Total, tt.done)
			}
			if p, ok := tt.counts.Precision(); p != tt.precision || ok != tt.ok {
				t.Errorf("Precision = %v, %v; want %v, %v", p, ok, tt.precision, tt.ok)
			}
		})
	}
}
