package db_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"winnow"
)

// votes is a bench whose items ask for several answers, with people to give them.
func votes(t *testing.T, overlap int, names ...string) (b *bench, people []winnow.UserID) {
	t.Helper()
	b = newBench(t, 8, func(s *winnow.Settings) { s.Overlap = overlap })
	for _, name := range names {
		people = append(people, b.annotator(name))
	}
	return b, people
}

func (b *bench) checkImage(id winnow.ImageID, v winnow.Verdict, class int) {
	b.t.Helper()
	image, err := b.Image(b.t.Context(), b.project, id)
	if err != nil || image.Verdict != v || image.Class != class {
		b.t.Errorf("the image is %q %d, %v; want %q %d", image.Verdict, image.Class, err, v, class)
	}
}

func TestOverlapAsksSeveralPeople(t *testing.T) {
	t.Parallel()
	b, p := votes(t, 2, "bob", "eve", "joe")
	b.open()
	for _, step := range []struct {
		what string
		user winnow.UserID
		n    int
		want []int
	}{
		{"the best first", p[0], 2, []int{1, 2}},
		{"the same once more", p[1], 1, []int{1}},
		{"not three times", p[2], 2, []int{2, 3}},
		{"nobody gets one twice", p[0], 10, []int{1, 2, 3, 4, 5}},
		{"what others left", p[1], 10, []int{1, 4, 5}},
	} {
		if diff := cmp.Diff(step.want, ranks(b.claim(step.user, step.n))); diff != "" {
			t.Errorf("%s: %s", step.what, diff)
		}
	}
	b.checkInvariants()
}

func TestMostVotesLabelTheImage(t *testing.T) {
	t.Parallel()
	b, p := votes(t, 3, "bob", "eve", "joe")
	b.open()
	item := b.claim(p[0], 1)[0]
	res := b.decide(p[0], decision(item.ID, winnow.VerdictKnown, 2, "0"))
	if diff := cmp.Diff(winnow.ItemCounts{Total: 5}, res.Round.Counts); diff != "" {
		t.Error("after one answer:", diff)
	}
	b.decide(p[1], decision(item.ID, winnow.VerdictUnknown, -1, "1"))
	b.checkImage(item.ImageID, "", -1)
	if recent, err := b.Recent(t.Context(), b.project, p[1], 5); err != nil || len(recent) != 1 || recent[0].Verdict != winnow.VerdictUnknown {
		t.Errorf("one's own answer: %+v, %v", recent, err)
	}
	res = b.decide(p[2], decision(item.ID, winnow.VerdictKnown, 2, "2"))
	if diff := cmp.Diff(winnow.ItemCounts{Total: 5, Known: 1}, res.Round.Counts); diff != "" {
		t.Error("after three:", diff)
	}
	b.checkImage(item.ImageID, winnow.VerdictKnown, 2)
	b.checkPool(winnow.PoolCounts{Pool: 8, Known: 1})

	// A fourth answer is too many.
	_, err := b.Decide(t.Context(), b.project, b.admin.ID, decision(item.ID, winnow.VerdictKnown, 2, "3"))
	wantCode(t, err, winnow.CodeConflict)
	if !strings.Contains(winnow.ErrorMessage(err), "Others have decided") {
		t.Error(err)
	}
	// The label is bob's, who was the first to say so.
	items, _, err := b.Items(t.Context(), item.RoundID, winnow.ItemFilter{Verdict: "known"}, winnow.Page{})
	if err != nil || len(items) != 1 || items[0].DecidedBy != p[0] || items[0].Answers != 3 {
		t.Errorf("%+v, %v", items, err)
	}
	b.checkInvariants()

	// Who takes their answer back opens the item.
	if _, err := b.Undo(t.Context(), b.project, p[0], item.ID, "u"); err != nil {
		t.Fatal(err)
	}
	b.checkImage(item.ImageID, "", -1)
	b.checkPool(winnow.PoolCounts{Pool: 8})
	b.decide(p[0], decision(item.ID, winnow.VerdictUnknown, -1, "4"))
	b.checkImage(item.ImageID, winnow.VerdictUnknown, -1)
	b.checkInvariants()
}

func TestATieWaitsForAnAdmin(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, p := votes(t, 2, "bob", "eve")
	round := b.open()
	var tied winnow.Item
	for i, item := range b.claim(p[0], 5) {
		b.decide(p[0], decision(item.ID, winnow.VerdictKnown, 1, "b"+string(rune('0'+i))))
		v := winnow.VerdictUnknown // of the first
		if i > 0 {
			v = winnow.VerdictKnown
		} else {
			tied = item
		}
		b.decide(p[1], decision(item.ID, v, 1, "e"+string(rune('0'+i))))
	}
	r, err := b.RoundByID(ctx, round.ID)
	if err != nil || r.State != winnow.RoundLabeling || r.Counts.Left() != 1 {
		t.Fatalf("%s, %+v, %v: the round waits for the admin", r.State, r.Counts, err)
	}
	queue, _, err := b.ReviewQueue(ctx, b.project, winnow.Page{})
	if err != nil || len(queue) != 1 || queue[0].ID != tied.ID || !queue[0].Review || len(queue[0].AllAnswers) != 2 {
		t.Fatalf("to review: %+v, %v", queue, err)
	}
	want := []winnow.Answer{
		{ItemID: tied.ID, UserID: p[0], User: "bob", Verdict: winnow.VerdictKnown, Class: 1, DurationMS: 700, At: b.clock.Now()},
		{ItemID: tied.ID, UserID: p[1], User: "eve", Verdict: winnow.VerdictUnknown, Class: -1, DurationMS: 700, At: b.clock.Now()},
	}
	for i := range want {
		want[i].Event = queue[0].AllAnswers[i].Event
	}
	if diff := cmp.Diff(want, queue[0].AllAnswers); diff != "" {
		t.Error(diff)
	}
	if _, err := b.Correct(ctx, b.project, b.admin.ID, tied.ImageID, winnow.VerdictUnknown, -1, "c"); err != nil {
		t.Fatal(err)
	}
	b.checkImage(tied.ImageID, winnow.VerdictUnknown, -1)
	if r, err = b.RoundByID(ctx, round.ID); err != nil || r.State != winnow.RoundClosed || *r.Metrics.Precision != 0.8 {
		t.Errorf("%s, %+v, %v: the last decision closes the round", r.State, r.Metrics, err)
	}
	if queue, _, err = b.ReviewQueue(ctx, b.project, winnow.Page{}); err != nil || len(queue) != 0 {
		t.Errorf("to review still: %+v, %v", queue, err)
	}
	// The admin's word stands.
	_, err = b.Undo(ctx, b.project, p[1], tied.ID, "u")
	wantCode(t, err, winnow.CodeConflict)
	if !strings.Contains(winnow.ErrorMessage(err), "An admin has decided") {
		t.Error(err)
	}
	figures, _, err := b.AnnotatorFigures(ctx, b.project, 0, winnow.Page{})
	if err != nil || len(figures) != 2 || figures[0].Shared != 5 || figures[0].Agreed != 4 || figures[1].Agreed != 5 {
		t.Errorf("%+v, %v", figures, err)
	}
	b.checkInvariants()
}

func TestClosingByHandLeavesTiesToThePool(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, p := votes(t, 2, "bob", "eve")
	b.open()
	item := b.claim(p[0], 1)[0]
	b.decide(p[0], decision(item.ID, winnow.VerdictKnown, 1, "b"))
	b.decide(p[1], decision(item.ID, winnow.VerdictUnknown, -1, "e"))
	if _, err := b.CloseRound(ctx, b.admin.ID, b.project, 0); err != nil {
		t.Fatal(err)
	}
	if queue, _, err := b.ReviewQueue(ctx, b.project, winnow.Page{}); err != nil || len(queue) != 0 {
		t.Errorf("to review: %+v, %v", queue, err)
	}
	b.open()
	if again := b.claim(p[0], 1)[0]; again.ImageID != item.ImageID || again.ID == item.ID {
		t.Errorf("the next round asks about image %d first, want %d", again.ImageID, item.ImageID)
	}
	b.checkInvariants()
}

func TestALateAnswerTakesAnySlotThatIsFree(t *testing.T) {
	t.Parallel()
	b, p := votes(t, 2, "bob", "eve", "joe")
	b.open()
	item := b.claim(p[0], 1)[0]
	b.clock.Advance(time.Hour)
	if got := b.claim(p[1], 1)[0]; got.ID != item.ID {
		t.Fatalf("eve got item %d", got.ID)
	}
	// Eve has bob's slot; there is another.
	b.decide(p[0], decision(item.ID, winnow.VerdictSkip, -1, "late"))
	// Now both are taken.
	_, err := b.Decide(t.Context(), b.project, p[2], decision(item.ID, winnow.VerdictSkip, -1, "too late"))
	wantCode(t, err, winnow.CodeConflict)
	b.checkInvariants()
}

func TestSkipsAbstain(t *testing.T) {
	t.Parallel()
	b, p := votes(t, 3, "bob", "eve", "joe")
	b.open()
	items := b.claim(p[0], 2)
	for i, item := range items {
		b.decide(p[0], decision(item.ID, winnow.VerdictSkip, -1, string(rune('a'+i))))
		b.decide(p[1], decision(item.ID, winnow.VerdictSkip, -1, string(rune('a'+i))))
	}
	b.decide(p[2], decision(items[0].ID, winnow.VerdictKnown, 0, "k"))
	b.decide(p[2], decision(items[1].ID, winnow.VerdictSkip, -1, "s"))
	b.checkImage(items[0].ImageID, winnow.VerdictKnown, 0)
	b.checkImage(items[1].ImageID, winnow.VerdictSkip, -1)
	b.checkInvariants()
}
