package db_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow"
	"winnow/db/dbtest"
)

func (b *bench) correct(image winnow.ImageID, v winnow.Verdict, class int, key string) winnow.EventID {
	b.t.Helper()
	event, err := b.Correct(b.t.Context(), b.project, b.admin.ID, image, v, class, key)
	if err != nil {
		b.t.Fatal(err)
	}
	return event
}

func TestCorrectAClosedRound(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	bob := b.annotator("bob")
	b.open()
	image := b.claim(bob, 1)[0].ImageID
	b.drain(bob, always(winnow.VerdictKnown))
	next := b.open()

	event := b.correct(image, winnow.VerdictUnknown, -1, "c")
	if again := b.correct(image, winnow.VerdictUnknown, -1, "c"); again != event {
		t.Errorf("a retry is event %d, not %d", again, event)
	}
	b.checkImage(image, winnow.VerdictUnknown, -1)
	b.checkPool(winnow.PoolCounts{Pool: 8, Known: 4, Unknown: 1})
	r, err := b.Round(ctx, b.project, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(winnow.ItemCounts{Total: 5, Known: 4, Unknown: 1}, r.Counts); diff != "" {
		t.Error(diff)
	}
	if *r.Metrics.Precision != 0.8 || *r.Metrics.NextK != next.K || next.K != 6 {
		t.Errorf("precision %v, next k %v, and round 1 has %v", *r.Metrics.Precision, *r.Metrics.NextK, next.K)
	}
	history, err := b.ImageHistory(ctx, b.project, image)
	if err != nil || len(history) != 2 || history[0].Kind != winnow.EventCorrection || history[0].Supersedes != history[1].ID || history[0].UserID != b.admin.ID {
		t.Errorf("%+v, %v", history, err)
	}
	b.checkInvariants()

	// A second thought.
	b.correct(image, winnow.VerdictKnown, 2, "d")
	b.checkImage(image, winnow.VerdictKnown, 2)
	b.checkInvariants()
	// The key stands for the first.
	_, err = b.Correct(ctx, b.project, b.admin.ID, image, winnow.VerdictKnown, 2, "c")
	wantCode(t, err, winnow.CodeConflict)
}

func TestCorrectRefuses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	bob := b.annotator("bob")
	b.open()
	items := b.claim(bob, 2)
	b.decide(bob, decision(items[0].ID, winnow.VerdictKnown, 1, "d"))
	other := dbtest.Project(t, b.Store, bob, dbtest.Settings(), 2, 1)
	for name, tc := range map[string]struct {
		project winnow.ProjectID
		image   winnow.ImageID
		verdict winnow.Verdict
		class   int
		key     string
		code    winnow.Code
	}{
		"nobody has decided it": {b.project, items[1].ImageID, winnow.VerdictKnown, 1, "a", winnow.CodeConflict},
		"no such image":         {b.project, 1e9, winnow.VerdictKnown, 1, "b", winnow.CodeNotFound},
		"another project's":     {other.ID, items[0].ImageID, winnow.VerdictKnown, 1, "c", winnow.CodeNotFound},
		"no such class":         {b.project, items[0].ImageID, winnow.VerdictKnown, 3, "e", winnow.CodeInvalid},
		"no such verdict":       {b.project, items[0].ImageID, "perhaps", 0, "f", winnow.CodeInvalid},
		"no key":                {b.project, items[0].ImageID, winnow.VerdictSkip, -1, "", winnow.CodeInvalid},
	} {
		_, err := b.Correct(ctx, tc.project, b.admin.ID, tc.image, tc.verdict, tc.class, tc.key)
		if winnow.ErrorCode(err) != tc.code {
			t.Errorf("%s: %v, want %s", name, err, tc.code)
		}
	}
	// Bob's own key is another matter than the admin's.
	if _, err := b.Correct(ctx, b.project, bob, items[0].ImageID, winnow.VerdictSkip, -1, "d"); winnow.ErrorCode(err) != winnow.CodeConflict {
		t.Errorf("a decision's key: %v", err)
	}
	b.checkInvariants()
}

func TestCorrectAnImport(t *testing.T) {
	t.Parallel()
	b := newBench(t, 8, nil)
	bob := b.annotator("bob")
	b.open()
	held := b.claim(bob, 2)
	dbtest.AddImages(t, b.Store, b.project, dbtest.Labeled(dbtest.Images(1, 8, 8), 0)) // all of them
	// One that the open round asks about: the admin's word ends the question.
	b.correct(held[0].ImageID, winnow.VerdictKnown, 1, "a")
	if kept, err := b.Renew(t.Context(), b.project, bob, idsOf(held)); err != nil || len(kept) != 1 || kept[0] != held[1].ID {
		t.Errorf("bob still holds %v, %v", kept, err)
	}
	_, err := b.Decide(t.Context(), b.project, bob, decision(held[0].ID, winnow.VerdictSkip, -1, "late"))
	wantCode(t, err, winnow.CodeConflict)
	if !strings.Contains(winnow.ErrorMessage(err), "admin has decided this image already (known)") {
		t.Error(err)
	}
	// One that no round asked about.
	images, _, err := b.Images(t.Context(), b.project, winnow.ImageFilter{}, winnow.Page{})
	if err != nil {
		t.Fatal(err)
	}
	b.correct(images[7].ID, winnow.VerdictUnreadable, -1, "b")
	b.checkImage(images[7].ID, winnow.VerdictUnreadable, -1)
	b.checkPool(winnow.PoolCounts{Pool: 8, Known: 7, Unreadable: 1})
	b.checkInvariants()
}

func TestWhoTakesOverSeesLabelsBeforeTheirCorrection(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 12, nil)
	b.open()
	item := b.claim(b.admin.ID, 1)[0]
	b.drain(b.admin.ID, always(winnow.VerdictKnown))
	r, err := b.StartRound(ctx, b.admin.ID, b.project)
	if err != nil {
		t.Fatal(err)
	}
	if r, err = b.BeginRound(ctx, r.ID, 1, "go"); err != nil {
		t.Fatal(err)
	}
	read := func() (ids []winnow.ImageID, labels []int, pool []winnow.ImageID) {
		t.Helper()
		ids, labels, err := b.TrainingSet(ctx, b.project, r.LabelVersion, 3)
		if err != nil {
			t.Fatal(err)
		}
		if pool, err = b.PoolSet(ctx, b.project, r.LabelVersion, r.ImageVersion); err != nil {
			t.Fatal(err)
		}
		return ids, labels, pool
	}
	ids, labels, pool := read()
	b.correct(item.ImageID, winnow.VerdictUnknown, -1, "c")
	dbtest.AddImages(t, b.Store, b.project, dbtest.Labeled(dbtest.Images(1, 12, 8), 2))
	b.correct(pool[0], winnow.VerdictKnown, 1, "d") // what the import labeled
	gotIDs, gotLabels, gotPool := read()
	if diff := cmp.Diff([]any{ids, labels, pool}, []any{gotIDs, gotLabels, gotPool}); diff != "" {
		t.Error(diff)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	bob, eve := b.annotator("bob"), b.annotator("eve")
	b.open()
	items := b.claim(bob, 2)
	for _, step := range []struct {
		user winnow.UserID
		item winnow.ItemID
		note string
		code winnow.Code
	}{
		{bob, items[0].ID, "  a fish, or a boat?\n", ""},
		{bob, items[0].ID, "a boat, I think", ""}, // instead
		{eve, items[0].ID, "not mine", winnow.CodeNotFound},
		{bob, 1e9, "no such", winnow.CodeNotFound},
		{bob, items[0].ID, strings.Repeat("ä", winnow.MaxFlagNote+1), winnow.CodeInvalid},
		{bob, items[0].ID, "\x00", winnow.CodeInvalid},
		{bob, items[0].ID, "\xff", winnow.CodeInvalid},
	} {
		if err := b.Flag(ctx, b.project, step.user, step.item, step.note); winnow.ErrorCode(err) != step.code {
			t.Errorf("%q: %v, want %q", step.note, err, step.code)
		}
	}
	b.decide(bob, decision(items[1].ID, winnow.VerdictKnown, 1, "d"))
	if err := b.Flag(ctx, b.project, bob, items[1].ID, ""); err != nil {
		t.Fatal(err)
	}
	b.checkInvariants()
	queue, _, err := b.ReviewQueue(ctx, b.project, winnow.Page{})
	if err != nil || len(queue) != 2 {
		t.Fatalf("to review: %+v, %v", queue, err)
	}
	want := []winnow.Flag{{ItemID: items[0].ID, UserID: bob, User: "bob", Note: "a boat, I think", At: b.clock.Now()}}
	if diff := cmp.Diff(want, queue[0].Flags); diff != "" {
		t.Error(diff)
	}
	if queue[1].Label != winnow.VerdictKnown || queue[1].LabelClass != 1 || len(queue[1].AllAnswers) != 1 || queue[1].Review {
		t.Errorf("%+v", queue[1])
	}
	if n, err := b.ReviewCount(ctx, b.project, 100); err != nil || n != 2 {
		t.Errorf("%d to review, %v", n, err)
	}
	// One page at a time.
	first, next, err := b.ReviewQueue(ctx, b.project, winnow.Page{Limit: 1})
	if err != nil || len(first) != 1 || next == "" {
		t.Fatalf("%+v, %q, %v", first, next, err)
	}
	if rest, next, err := b.ReviewQueue(ctx, b.project, winnow.Page{Limit: 1, After: next}); err != nil || len(rest) != 1 || rest[0].ID != items[1].ID || next != "" {
		t.Errorf("%+v, %q, %v", rest, next, err)
	}
	if err := b.ResolveFlags(ctx, b.project, b.admin.ID, items[0].ID); err != nil {
		t.Fatal(err)
	}
	b.correct(items[1].ImageID, winnow.VerdictUnknown, -1, "c") // looks at the flag, too
	if queue, _, err = b.ReviewQueue(ctx, b.project, winnow.Page{}); err != nil || len(queue) != 0 {
		t.Errorf("to review still: %+v, %v", queue, err)
	}
	wantCode(t, b.ResolveFlags(ctx, b.project, b.admin.ID, 1e9), winnow.CodeNotFound)
	b.checkInvariants()
}
