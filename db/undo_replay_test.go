package db_test

import (
	"testing"
	"time"

	"winnow"
)

// TestUndoAgainAfterTheLease repeats an undo whose answer was lost on the way, when
// somebody else has the item already.
func TestUndoAgainAfterTheLease(t *testing.T) {
	t.Parallel()
	b := newBench(t, 5, nil)
	ann, bob := b.annotator("ann"), b.annotator("bob")
	b.open()
	item := b.claim(ann, 1)[0].ID
	if _, err := b.Decide(t.Context(), b.project, ann, decision(item, winnow.VerdictUnknown, -1, "decide")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Undo(t.Context(), b.project, ann, item, "undo"); err != nil {
		t.Fatal(err)
	}
	b.clock.Advance(time.Hour)
	if got := b.claim(bob, 1); len(got) != 1 || got[0].ID != item {
		t.Fatalf("bob claims %v, want item %d", got, item)
	}
	again, err := b.Undo(t.Context(), b.project, ann, item, "undo")
	if err != nil || again.ID != item || again.LeasedBy == ann {
		t.Errorf("the undo again: %+v, %v; want item %d, not leased to %d", again, err, item, ann)
	}
	if kept, err := b.Renew(t.Context(), b.project, bob, []winnow.ItemID{item}); err != nil || len(kept) != 1 {
		t.Errorf("bob keeps %v, %v", kept, err)
	}
	b.checkInvariants()
}
