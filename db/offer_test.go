package db_test

import (
	"fmt"
	"testing"

	"winnow"
)

// like makes items of a round clear, all of one predicted class.
func (b *bench) like(items []winnow.Item, class int) {
	b.t.Helper()
	for _, item := range items {
		_, err := b.Pool().Exec(b.t.Context(), `UPDATE query_items SET clean = .9, info = .1, predicted = $2 WHERE id = $1`, item.ID, class)
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// What is offered is what a claim then leases; looking leases nothing.
func TestAlikeSaysWhatClaimAlikeGives(t *testing.T) {
	t.Parallel()
	b := newBench(t, 12, func(s *winnow.Settings) { s.Budget = 12 })
	ann, bob := b.annotator("ann"), b.annotator("bob")
	offered := func(user winnow.UserID, n, class, count int) {
		t.Helper()
		gotClass, got, err := b.Alike(t.Context(), b.project, user, n)
		if err != nil || gotClass != class || got != count {
			t.Errorf("offered: %d of class %d (%v), want %d of class %d", got, gotClass, err, count, class)
		}
	}
	claimed := func(user winnow.UserID, n, class, count int) []winnow.Item {
		t.Helper()
		_, gotClass, items, err := b.ClaimAlike(t.Context(), b.project, user, n)
		if err != nil || gotClass != class || len(items) != count {
			t.Errorf("claimed: %d of class %d (%v), want %d of class %d", len(items), gotClass, err, count, class)
		}
		return items
	}

	offered(ann, 40, -1, 0) // there is no round
	round := b.open()
	offered(ann, 40, -1, 0) // there is nothing clear
	items, _, err := b.Items(t.Context(), round.ID, winnow.ItemFilter{}, winnow.Page{Limit: 12})
	if err != nil {
		t.Fatal(err)
	}
	b.like(items[:7], 1)
	b.like(items[7:10], 2)

	offered(ann, 40, 1, 7)
	offered(ann, 40, 1, 7)
	offered(ann, 5, 1, 5)
	claimed(ann, 4, 1, 4)
	offered(ann, 40, 1, 7) // with those that ann holds
	offered(bob, 40, 1, 3)
	claimed(bob, 40, 1, 3)
	offered(bob, 40, 1, 3)
	offered(ann, 40, 1, 4)
	for _, item := range claimed(ann, 40, 1, 4) {
		b.decide(ann, decision(item.ID, winnow.VerdictKnown, 1, fmt.Sprint(item.ID)))
	}
	offered(ann, 40, 2, 3)
}
