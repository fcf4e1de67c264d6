package db_test

import (
	"fmt"
	"testing"

	"winnow"
	"winnow/db/dbtest"
)

// goldBench has a round with 20 items and 4 gold images: 2 of class 1, 2 unknown.
func goldBench(t *testing.T, every int) (*bench, map[winnow.ImageID]winnow.Verdict) {
	t.Helper()
	b := newBench(t, 30, func(s *winnow.Settings) { s.Budget, s.GoldEvery = 20, every })
	labeled := dbtest.Labeled(dbtest.Images(2, 4, 8), 1)
	for i := range 2 {
		labeled[i].Verdict = winnow.VerdictUnknown
	}
	dbtest.AddImages(t, b.Store, b.project, labeled)
	gold := map[winnow.ImageID]winnow.Verdict{}
	for _, v := range []string{"known", "unknown"} {
		images, _, err := b.Images(t.Context(), b.project, winnow.ImageFilter{Verdict: v}, winnow.Page{})
		if err != nil {
			t.Fatal(err)
		}
		for _, image := range images {
			gold[image.ID] = image.Verdict
			if err := b.SetGold(t.Context(), b.project, b.admin.ID, image.ID, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.open()
	return b, gold
}

func TestGoldComesNowAndThen(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, gold := goldBench(t, 5)
	bob := b.annotator("bob")
	seen := map[winnow.ImageID]bool{}
	var done int
	for n := 0; ; n++ {
		round, items, err := b.Claim(ctx, b.project, bob, 4)
		if err != nil {
			t.Fatal(err)
		}
		if len(items) == 0 {
			break
		}
		if len(items) > 4 {
			t.Fatalf("%d items for 4", len(items))
		}
		// What is left, to bob, is what he will be shown.
		if left := round.Counts.Left() + round.GoldGiven - round.GoldAnswered; left < len(items) {
			t.Errorf("%d items, and only %d left", len(items), left)
		}
		for _, item := range items {
			_, isGold := gold[item.ImageID]
			if isGold && (seen[item.ImageID] || item.Slice != winnow.SliceGold) {
				t.Errorf("gold image %d again, as %s", item.ImageID, item.Slice)
			}
			seen[item.ImageID] = true
			res := b.decide(bob, decision(item.ID, winnow.VerdictUnknown, -1, fmt.Sprint(item.ID)))
			done++
			if got := res.Round.Counts.Done() + res.Round.GoldAnswered; got != done {
				t.Errorf("after %d answers the count is %d: it tells that this was gold: %v", done, got, isGold)
			}
			b.checkInvariants()
		}
	}
	round, err := b.Round(ctx, b.project, 0)
	if err != nil || round.State != winnow.RoundClosed || round.Counts.Total != 20 || round.Counts.Unknown != 20 {
		t.Errorf("%s, %+v, %v", round.State, round.Counts, err)
	}
	figures, _, err := b.AnnotatorFigures(ctx, b.project, bob, winnow.Page{})
	if err != nil || len(figures) != 1 {
		t.Fatal(figures, err)
	}
	f := figures[0]
	if f.Gold < 3 || f.Gold != f.GoldRight+f.GoldFalseUnknown || f.Labels != 20+f.Gold {
		t.Errorf("%+v", f)
	}
	for id, v := range gold {
		class := -1
		if v == winnow.VerdictKnown {
			class = 1
		}
		b.checkImage(id, v, class)
	}
}

func TestGoldAnswersAreCompared(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, gold := goldBench(t, 1)
	given := map[winnow.Verdict]int{}
	said := map[winnow.Verdict][]winnow.Decision{
		winnow.VerdictKnown:   {{Verdict: winnow.VerdictKnown, Class: 1}, {Verdict: winnow.VerdictKnown, Class: 2}},
		winnow.VerdictUnknown: {{Verdict: winnow.VerdictKnown, Class: 2}, {Verdict: winnow.VerdictSkip, Class: -1}},
	}
	bob := b.annotator("bob")
	var last winnow.ItemID
	for n := 0; n < 4; {
		for _, item := range b.claim(bob, 1) {
			d := decision(item.ID, winnow.VerdictUnknown, -1, fmt.Sprint(item.ID))
			if truth, ok := gold[item.ImageID]; ok {
				how := said[truth][given[truth]]
				given[truth]++
				d.Verdict, d.Class, last = how.Verdict, how.Class, item.ID
				n++
			}
			b.decide(bob, d)
		}
	}
	figures, _, err := b.AnnotatorFigures(ctx, b.project, bob, winnow.Page{})
	if err != nil {
		t.Fatal(err)
	}
	if f := figures[0]; f.Gold != 4 || f.GoldRight != 1 || f.GoldWrongClass != 1 || f.GoldFalseKnown != 1 || f.GoldFalseUnknown != 0 {
		t.Errorf("%+v", f)
	}
	b.checkInvariants()
	// It is undone like any other, and comes back to the same person only.
	item, err := b.Undo(ctx, b.project, bob, last, "u")
	if err != nil || item.ID != last || item.LeasedBy != bob {
		t.Errorf("%+v, %v", item, err)
	}
	b.checkInvariants()
	_, err = b.Decide(ctx, b.project, b.admin.ID, decision(last, winnow.VerdictSkip, -1, "forged"))
	wantCode(t, err, winnow.CodeConflict)
	if err := b.RemoveMember(ctx, b.admin.ID, b.project, bob); err != nil {
		t.Fatal(err)
	}
	b.checkInvariants()
}

// The last item closes the round while a gold item is still on the screen.
func TestGoldMayOutlastItsRound(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, gold := goldBench(t, 4)
	var held winnow.Item
	for n := 0; n < 20; {
		for _, item := range b.claim(b.admin.ID, 5) {
			if _, ok := gold[item.ImageID]; ok {
				held = item
				continue
			}
			b.decide(b.admin.ID, decision(item.ID, winnow.VerdictUnknown, -1, fmt.Sprint(item.ID)))
			n++
		}
	}
	if r, err := b.Round(ctx, b.project, 0); err != nil || r.State != winnow.RoundClosed {
		t.Fatalf("%s, %v", r.State, err)
	}
	b.decide(b.admin.ID, decision(held.ID, winnow.VerdictUnknown, -1, "late"))
	b.checkInvariants()
	// It does not reopen the round either.
	if _, err := b.Undo(ctx, b.project, b.admin.ID, held.ID, "u"); err != nil {
		t.Fatal(err)
	}
	if r, err := b.Round(ctx, b.project, 0); err != nil || r.State != winnow.RoundClosed {
		t.Errorf("%s, %v", r.State, err)
	}
	b.open()
	_, err := b.Decide(ctx, b.project, b.admin.ID, decision(held.ID, winnow.VerdictUnknown, -1, "too late"))
	wantCode(t, err, winnow.CodeConflict)
	b.checkInvariants()
}

// Neither the ids of items nor the order in which a reload shows them tells gold.
func TestGoldLooksLikeTheRest(t *testing.T) {
	t.Parallel()
	b, gold := goldBench(t, 2)
	rows, err := b.Pool().Query(t.Context(), `SELECT slice FROM query_items ORDER BY id`)
	if err != nil {
		t.Fatal(err)
	}
	var order []winnow.Slice
	for rows.Next() {
		var s winnow.Slice
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		order = append(order, s)
	}
	after := 0
	for _, s := range order[20:] {
		if s == winnow.SliceGold {
			after++
		}
	}
	if len(order) != 24 || after == 4 {
		t.Errorf("items by id: %v", order)
	}
	for range 2 {
		item := b.claim(b.admin.ID, 1)[0]
		b.decide(b.admin.ID, decision(item.ID, winnow.VerdictUnknown, -1, fmt.Sprint(item.ID)))
	}
	first := b.claim(b.admin.ID, 6)
	again := b.claim(b.admin.ID, 6)
	if fmt.Sprint(idsOf(first)) != fmt.Sprint(idsOf(again)) {
		t.Errorf("a reload shows %v, not %v", idsOf(again), idsOf(first))
	}
	n := 0
	for _, item := range first {
		if _, ok := gold[item.ImageID]; ok {
			n++
		}
	}
	if n != 1 || len(first) != 6 {
		t.Errorf("%d of %d are gold", n, len(first))
	}
	// Released, it stays the person's, and comes back.
	if err := b.Release(t.Context(), b.project, b.admin.ID, idsOf(first), b.clock.Now()); err != nil {
		t.Fatal(err)
	}
	bob := b.annotator("bob")
	for _, item := range b.claim(bob, 100) {
		if _, ok := gold[item.ImageID]; ok {
			t.Errorf("bob got gold item %d", item.ID)
		}
	}
	if left := b.claim(b.admin.ID, 6); len(left) != 1 || gold[left[0].ImageID] == "" {
		t.Errorf("the admin gets %v", idsOf(left))
	}
}

func TestSetGold(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 5, nil)
	b.open()
	items := b.claim(b.admin.ID, 3)
	b.decide(b.admin.ID, decision(items[0].ID, winnow.VerdictKnown, 1, "a"))
	b.decide(b.admin.ID, decision(items[1].ID, winnow.VerdictSkip, -1, "b"))
	set := func(image winnow.ImageID, on bool) error { return b.SetGold(ctx, b.project, b.admin.ID, image, on) }
	wantCode(t, set(items[1].ImageID, true), winnow.CodeConflict) // skipped
	wantCode(t, set(items[2].ImageID, true), winnow.CodeConflict) // not decided
	wantCode(t, set(1e9, true), winnow.CodeNotFound)
	for range 2 {
		if err := set(items[0].ImageID, true); err != nil {
			t.Fatal(err)
		}
	}
	gold, _, err := b.GoldImages(ctx, b.project, winnow.Page{})
	if err != nil || len(gold) != 1 || gold[0].ID != items[0].ImageID {
		t.Errorf("%+v, %v", gold, err)
	}
	if on, err := b.IsGold(ctx, b.project, items[0].ImageID); !on || err != nil {
		t.Error(on, err)
	}
	if err := set(items[0].ImageID, false); err != nil {
		t.Fatal(err)
	}
	if on, err := b.IsGold(ctx, b.project, items[0].ImageID); on || err != nil {
		t.Error(on, err)
	}
}
