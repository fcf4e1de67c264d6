package winnow_test

import (
	"testing"
	"time"

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
		"only the query": {winnow.ItemCounts{
			Total: 9, Known: 3, Unknown: 4, AuditTotal: 4, AuditKnown: 0, AuditUnknown: 3,
		}, 7, .75, true},
		"only the audit slice": {winnow.ItemCounts{Total: 9, Known: 1, AuditTotal: 4, AuditKnown: 1}, 1, 0, false},
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

func TestAuditPrecision(t *testing.T) {
	t.Parallel()
	if p, ok := (winnow.ItemCounts{Total: 9, Known: 4, Unknown: 3, AuditTotal: 4, AuditKnown: 1, AuditUnknown: 3}).AuditPrecision(); p != .25 || !ok {
		t.Errorf("got %v, %v, want a quarter", p, ok)
	}
	if _, ok := (winnow.ItemCounts{Total: 9, Known: 4, AuditTotal: 4}).AuditPrecision(); ok {
		t.Error("there is a precision of nothing")
	}
}

func TestLabelsPerHour(t *testing.T) {
	t.Parallel()
	if n, ok := (winnow.AnnotatorFigures{Labels: 100, Active: 6 * time.Minute}).LabelsPerHour(); n != 1000 || !ok {
		t.Errorf("got %v, %v, want 1000", n, ok)
	}
	if _, ok := (winnow.AnnotatorFigures{}).LabelsPerHour(); ok {
		t.Error("there is a rate of no work")
	}
}
