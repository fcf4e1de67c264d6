package db_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"winnow"
)

func TestClaimGivesEachItemToOnePerson(t *testing.T) {
	t.Parallel()
	b := newBench(t, 8, nil)
	bob := b.annotator("bob")
	b.open()
	for _, step := range []struct {
		what string
		user winnow.UserID
		n    int
		want []int
	}{
		{"the best ranks first", b.admin.ID, 2, []int{1, 2}},
		{"another person gets the next", bob, 2, []int{3, 4}},
		{"a reload gets the same", b.admin.ID, 2, []int{1, 2}},
		{"asking for more adds to them", b.admin.ID, 10, []int{1, 2, 5}},
		{"asking for fewer gives the first of them", b.admin.ID, 1, []int{1}},
		{"nothing is left", bob, 10, []int{3, 4}},
		{"none are asked for", bob, 0, []int{}},
		{"fewer than none", bob, -1, []int{}},
	} {
		if diff := cmp.Diff(step.want, ranks(b.claim(step.user, step.n))); diff != "" {
			t.Errorf("%s: %s", step.what, diff)
		}
	}
}

func TestClaimWithoutALabelingRound(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	round, items, err := b.Claim(ctx, b.project, b.admin.ID, 5)
	if round != nil || len(items) != 0 || err != nil {
		t.Errorf("before the first round: %v, %v, %v", round, items, err)
	}
	if _, err := b.StartRound(ctx, b.admin.ID, b.project); err != nil {
		t.Fatal(err)
	}
	round, items, err = b.Claim(ctx, b.project, b.admin.ID, 5)
	if round == nil || round.State != winnow.RoundQueued || len(items) != 0 || err != nil {
		t.Errorf("while the round waits: %v, %v, %v", round, items, err)
	}
}

func TestLeasesExpireAndAreRenewed(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, func(s *winnow.Settings) { s.LeaseSeconds = 60 })
	bob := b.annotator("bob")
	b.open()
	items := b.claim(b.admin.ID, 5)
	if got := items[0].LeaseUntil; !got.Equal(b.clock.Now().Add(time.Minute)) {
		t.Errorf("the lease runs until %v, want a minute", got)
	}
	if got := b.claim(bob, 5); len(got) != 0 {
		t.Fatalf("bob gets %v while all is leased", ranks(got))
	}

	b.clock.Advance(59 * time.Second)
	ids := []winnow.ItemID{items[0].ID, items[1].ID, 1e9}
	kept, err := b.Renew(ctx, b.project, b.admin.ID, ids)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(ids[:2], kept); diff != "" {
		t.Error("renewed:", diff)
	}

	b.clock.Advance(time.Second) // the three others have run out
	if diff := cmp.Diff([]int{3, 4, 5}, ranks(b.claim(bob, 5))); diff != "" {
		t.Error("bob gets what ran out:", diff)
	}
	// The first three: two are mine still, the third is Bob's now.
	kept, err = b.Renew(ctx, b.project, b.admin.ID, []winnow.ItemID{items[0].ID, items[1].ID, items[2].ID})
	if err != nil || len(kept) != 2 {
		t.Errorf("renewed %v, %v, want two", kept, err)
	}
	// A lease that ran out unnoticed is renewed while nobody else has come.
	b.clock.Advance(time.Hour)
	kept, err = b.Renew(ctx, b.project, b.admin.ID, []winnow.ItemID{items[0].ID})
	if err != nil || len(kept) != 1 {
		t.Errorf("renewed %v, %v, want one", kept, err)
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	bob := b.annotator("bob")
	b.open()
	items := b.claim(b.admin.ID, 5)
	asOf := b.clock.Now()
	all := make([]winnow.ItemID, len(items))
	for i, item := range items {
		all[i] = item.ID
	}
	if err := b.Release(ctx, b.project, bob, all, asOf); err != nil {
		t.Fatal(err)
	}
	if got := b.claim(bob, 5); len(got) != 0 {
		t.Errorf("bob released what is not his and got %v", ranks(got))
	}
	// A release that comes after the items were claimed anew does nothing.
	b.clock.Advance(time.Second)
	b.claim(b.admin.ID, 1)
	if err := b.Release(ctx, b.project, b.admin.ID, all, asOf); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{2, 3, 4, 5}, ranks(b.claim(bob, 5))); diff != "" {
		t.Error("bob gets what was released:", diff)
	}
}

func TestRemovedMembersLoseTheirLeases(t *testing.T) {
	t.Parallel()
	b := newBench(t, 8, nil)
	bob := b.annotator("bob")
	b.open()
	b.claim(bob, 5)
	if err := b.RemoveMember(t.Context(), b.admin.ID, b.project, bob); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]int{1, 2, 3, 4, 5}, ranks(b.claim(b.admin.ID, 5))); diff != "" {
		t.Error(diff)
	}
}

func TestItems(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	round := b.open()
	items := b.claim(b.admin.ID, 5)
	b.decide(b.admin.ID, decision(items[0].ID, winnow.VerdictKnown, 2, "d0"))
	b.decide(b.admin.ID, decision(items[1].ID, winnow.VerdictKnown, 0, "d1"))
	b.decide(b.admin.ID, decision(items[2].ID, winnow.VerdictSkip, -1, "d2"))
	two := 2
	for name, tc := range map[string]struct {
		filter winnow.ItemFilter
		page   winnow.Page
		want   []int
		next   string
	}{
		"all":         {winnow.ItemFilter{}, winnow.Page{}, []int{1, 2, 3, 4, 5}, ""},
		"first page":  {winnow.ItemFilter{}, winnow.Page{Limit: 2}, []int{1, 2}, "2"},
		"second page": {winnow.ItemFilter{}, winnow.Page{Limit: 2, After: "2"}, []int{3, 4}, "4"},
		"last page":   {winnow.ItemFilter{}, winnow.Page{Limit: 2, After: "4"}, []int{5}, ""},
		"full page":   {winnow.ItemFilter{}, winnow.Page{Limit: 5}, []int{1, 2, 3, 4, 5}, ""},
		"known":       {winnow.ItemFilter{Verdict: "known"}, winnow.Page{}, []int{1, 2}, ""},
		"a class":     {winnow.ItemFilter{Class: &two}, winnow.Page{}, []int{1}, ""},
		"unlabeled":   {winnow.ItemFilter{Verdict: winnow.Unlabeled}, winnow.Page{}, []int{4, 5}, ""},
	} {
		got, next, err := b.Items(ctx, round.ID, tc.filter, tc.page)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(tc.want, ranks(got)); diff != "" || next != tc.next {
			t.Errorf("%s: next %q, want %q: %s", name, next, tc.next, diff)
		}
	}
	_, _, err := b.Items(ctx, round.ID, winnow.ItemFilter{Verdict: "perhaps"}, winnow.Page{})
	wantCode(t, err, winnow.CodeInvalid)
	_, _, err = b.Items(ctx, round.ID, winnow.ItemFilter{}, winnow.Page{After: "nowhere"})
	wantCode(t, err, winnow.CodeInvalid)

	got, _, err := b.Items(ctx, round.ID, winnow.ItemFilter{Class: &two}, winnow.Page{})
	if err != nil {
		t.Fatal(err)
	}
	want := winnow.Item{
		ID: items[0].ID, RoundID: round.ID, ProjectID: b.project, ImageID: items[0].ImageID, Rank: 1, Slice: winnow.SliceQuery,
		Scores: winnow.Scores{HasScores: true, EUL: 0.1, EUD: 0.2, AU: 0.3, Clean: 0.9, Info: 0.5, Predicted: 0},
		Slots:  1, Answers: 1, Verdict: winnow.VerdictKnown, Class: 2, DecidedBy: b.admin.ID, DecidedAt: b.clock.Now(),
		Width: 8, Height: 8, MediaType: "image/png",
	}
	if diff := cmp.Diff([]winnow.Item{want}, got); diff != "" {
		t.Error(diff)
	}
}
