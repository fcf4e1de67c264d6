package db_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow"
)

func TestDecideAllTakesWhatItCan(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 12, func(s *winnow.Settings) { s.Budget = 8 })
	bob := b.annotator("bob")
	b.open()
	mine, his := b.claim(b.admin.ID, 4), b.claim(bob, 2)
	b.decide(b.admin.ID, decision(mine[0].ID, winnow.VerdictSkip, -1, "first"))
	ds := []winnow.Decision{
		decision(mine[2].ID, winnow.VerdictKnown, 1, "b2"), // not in the order of the items
		decision(mine[1].ID, winnow.VerdictUnknown, -1, "b1"),
		decision(mine[0].ID, winnow.VerdictSkip, -1, "first"), // again
		decision(mine[1].ID, winnow.VerdictUnknown, -1, "b1"), // twice in one batch
		decision(mine[1].ID, winnow.VerdictSkip, -1, "b1 differs"),
		decision(his[0].ID, winnow.VerdictSkip, -1, "his"),
		decision(mine[3].ID, winnow.VerdictKnown, 9, "class"),
		decision(mine[3].ID, winnow.VerdictKnown, 1, "b2"), // another's key
		decision(1e9, winnow.VerdictSkip, -1, "none"),
		decision(mine[3].ID, winnow.VerdictSkip, -1, ""),
	}
	want := []string{"new", "new", "replayed", "replayed", "conflict", "conflict", "invalid", "conflict", "not_found", "invalid"}
	for try := range 2 {
		outcomes, round, err := b.DecideAll(ctx, b.project, b.admin.ID, ds)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, o := range outcomes {
			switch {
			case o.Err != nil:
				got = append(got, string(winnow.ErrorCode(o.Err)))
			case o.Replayed:
				got = append(got, "replayed")
			default:
				got = append(got, "new")
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("try %d: %s", try, diff)
		}
		if diff := cmp.Diff(winnow.ItemCounts{Total: 8, Known: 1, Unknown: 1, Skipped: 1}, round.Counts); diff != "" {
			t.Error(diff)
		}
		want[0], want[1] = "replayed", "replayed"
	}
	b.checkInvariants()
	if outcomes, round, err := b.DecideAll(ctx, b.project, b.admin.ID, nil); len(outcomes) != 0 || round != nil || err != nil {
		t.Errorf("nothing: %v, %v, %v", outcomes, round, err)
	}
	_, _, err := b.DecideAll(ctx, b.project, b.admin.ID, make([]winnow.Decision, 201))
	wantCode(t, err, winnow.CodeInvalid)
}

func TestABatchClosesTheRound(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 12, nil)
	b.open()
	var ds []winnow.Decision
	var undos []winnow.UndoRequest
	for i, item := range b.claim(b.admin.ID, 5) {
		ds = append(ds, decision(item.ID, winnow.VerdictKnown, 0, fmt.Sprint(i)))
		undos = append(undos, winnow.UndoRequest{ItemID: item.ID, ClientKey: fmt.Sprint("u", i)})
	}
	_, round, err := b.DecideAll(ctx, b.project, b.admin.ID, ds)
	if err != nil || round.State != winnow.RoundClosed || *round.Metrics.Precision != 1 {
		t.Fatalf("%+v, %v", round, err)
	}
	b.checkInvariants()
	for range 2 { // the second time is a retry
		items, err := b.UndoAll(ctx, b.project, b.admin.ID, undos)
		if err != nil || len(items) != 5 || items[4].ID != undos[4].ItemID || items[0].LeasedBy != b.admin.ID {
			t.Fatalf("%+v, %v", items, err)
		}
	}
	if r, err := b.Round(ctx, b.project, 0); err != nil || r.State != winnow.RoundLabeling || r.Counts.Done() != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	b.checkInvariants()

	// All or none: an admin has corrected one of them.
	ds = ds[:0]
	for i, u := range undos {
		ds = append(ds, decision(u.ItemID, winnow.VerdictKnown, 0, fmt.Sprint("again", i)))
		undos[i].ClientKey = fmt.Sprint("v", i)
	}
	if _, _, err := b.DecideAll(ctx, b.project, b.admin.ID, ds); err != nil {
		t.Fatal(err)
	}
	items, _, err := b.Items(ctx, round.ID, winnow.ItemFilter{}, winnow.Page{})
	if err != nil {
		t.Fatal(err)
	}
	b.correct(items[2].ImageID, winnow.VerdictUnknown, -1, "c")
	_, err = b.UndoAll(ctx, b.project, b.admin.ID, undos)
	wantCode(t, err, winnow.CodeConflict)
	if r, err := b.Round(ctx, b.project, 0); err != nil || r.Counts.Done() != 5 {
		t.Errorf("%+v, %v", r, err)
	}
	b.checkInvariants()
}

// openLike opens a round of which the model takes the items for the classes given;
// the negative ones are not clear.
func (b *bench) openLike(classes ...int) *winnow.Round {
	b.t.Helper()
	ctx := b.t.Context()
	round, err := b.StartRound(ctx, b.admin.ID, b.project)
	if err != nil {
		b.t.Fatal(err)
	}
	if round, err = b.BeginRound(ctx, round.ID, 1, "test"); err != nil {
		b.t.Fatal(err)
	}
	pool, err := b.PoolSet(ctx, b.project, round.LabelVersion, round.ImageVersion)
	if err != nil {
		b.t.Fatal(err)
	}
	var items []winnow.Item
	for i, c := range classes {
		scores := winnow.Scores{HasScores: true, Clean: 0.9, Info: 0.1, Predicted: c}
		if c < 0 {
			scores.Info, scores.Predicted = 0.9, -c
		}
		items = append(items, winnow.Item{ImageID: pool[i], Rank: i + 1, Scores: scores})
	}
	if err := b.OpenLabeling(ctx, round.ID, 1, items, winnow.Metrics{}, false); err != nil {
		b.t.Fatal(err)
	}
	return round
}

func (b *bench) alike(user winnow.UserID, n int) (int, []int) {
	b.t.Helper()
	_, class, items, err := b.ClaimAlike(b.t.Context(), b.project, user, n)
	if err != nil {
		b.t.Fatal(err)
	}
	return class, ranks(items)
}

func TestClaimAlike(t *testing.T) {
	t.Parallel()
	b := newBench(t, 20, nil)
	bob, eve := b.annotator("bob"), b.annotator("eve")
	b.openLike(0, 1, 1, -2, -2, -2, 1, 0, 1)
	for _, step := range []struct {
		what  string
		user  winnow.UserID
		n     int
		class int
		want  []int
	}{
		{"the class with the most that are clear", bob, 2, 1, []int{2, 3}},
		{"a reload shows the same", bob, 2, 1, []int{2, 3}},
		{"others get what is free, the first class of two", eve, 3, 0, []int{1, 8}},
		{"bob stays with his class", bob, 10, 1, []int{2, 3, 7, 9}},
		{"nothing clear is left", b.admin.ID, 10, -1, []int{}},
	} {
		class, got := b.alike(step.user, step.n)
		if diff := cmp.Diff(step.want, got); diff != "" || class != step.class {
			t.Errorf("%s: class %d, want %d: %s", step.what, class, step.class, diff)
		}
	}
	// The page for single images shows others than those in the grid.
	if diff := cmp.Diff([]int{4, 5}, ranks(b.claim(bob, 2))); diff != "" {
		t.Error(diff)
	}
	b.checkInvariants()
}

func TestAClassThatTheModelKnowsIsShownWhole(t *testing.T) {
	t.Parallel()
	b := newBench(t, 30, nil)
	classes := make([]int, 20)
	for i := range classes {
		classes[i] = -1
	}
	b.openLike(classes...)
	if class, got := b.alike(b.admin.ID, 5); class != -1 || len(got) != 0 {
		t.Errorf("class %d: %v", class, got)
	}
	for i, item := range b.claim(b.admin.ID, 10) {
		said := 1
		if i >= 8 {
			said = 2 // eight of ten were right
		}
		b.decide(b.admin.ID, decision(item.ID, winnow.VerdictKnown, said, fmt.Sprint(i)))
	}
	if class, got := b.alike(b.admin.ID, 5); class != 1 || cmp.Diff([]int{11, 12, 13, 14, 15}, got) != "" {
		t.Errorf("class %d: %v", class, got)
	}
}
