package db_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"winnow"
	"winnow/db/dbtest"
)

func TestDecideRecordsTheLabel(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		verdict winnow.Verdict
		class   int
		items   winnow.ItemCounts
		pool    winnow.PoolCounts
	}{
		{winnow.VerdictKnown, 2, winnow.ItemCounts{Total: 5, Known: 1}, winnow.PoolCounts{Pool: 8, Known: 1}},
		{winnow.VerdictUnknown, -1, winnow.ItemCounts{Total: 5, Unknown: 1}, winnow.PoolCounts{Pool: 8, Unknown: 1}},
		{winnow.VerdictSkip, -1, winnow.ItemCounts{Total: 5, Skipped: 1}, winnow.PoolCounts{Pool: 8, Skipped: 1}},
		{winnow.VerdictUnreadable, -1, winnow.ItemCounts{Total: 5, Unreadable: 1}, winnow.PoolCounts{Pool: 8, Unreadable: 1}},
	} {
		t.Run(string(tc.verdict), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			b := newBench(t, 8, nil)
			b.open()
			item := b.claim(b.admin.ID, 1)[0]
			res := b.decide(b.admin.ID, decision(item.ID, tc.verdict, tc.class, "key"))
			if diff := cmp.Diff(tc.items, res.Round.Counts); diff != "" {
				t.Error("round:", diff)
			}
			p, err := b.Project(ctx, b.project)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.pool, p.Counts); diff != "" {
				t.Error("pool:", diff)
			}
			image, err := b.Image(ctx, b.project, item.ImageID)
			if err != nil {
				t.Fatal(err)
			}
			if image.Verdict != tc.verdict || image.Class != tc.class {
				t.Errorf("the image is %s %d, want %s %d", image.Verdict, image.Class, tc.verdict, tc.class)
			}
			history, err := b.ImageHistory(ctx, b.project, item.ImageID)
			if err != nil {
				t.Fatal(err)
			}
			want := []winnow.HistoryEntry{{
				LabelEvent: winnow.LabelEvent{
					ID: res.Event, ProjectID: b.project, ImageID: item.ImageID, ItemID: item.ID, RoundID: item.RoundID,
					UserID: b.admin.ID, Kind: winnow.EventLabel, Verdict: tc.verdict, Class: tc.class, ClientKey: "key",
					DurationMS: 700, ClassVersion: 1, At: b.clock.Now(),
				},
				User: "admin", Round: 0, Slice: winnow.SliceQuery, Stands: true,
			}}
			if diff := cmp.Diff(want, history); diff != "" {
				t.Error("history:", diff)
			}
			recent, err := b.Recent(ctx, b.project, b.admin.ID, 10)
			if err != nil || len(recent) != 1 || recent[0].ID != item.ID || recent[0].Verdict != tc.verdict {
				t.Errorf("recent decisions: %v, %v", recent, err)
			}
			b.checkInvariants()
		})
	}
}

func TestDecideRefuses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 12, nil)
	bob := b.annotator("bob")
	b.open()
	mine := b.claim(b.admin.ID, 3)
	his := b.claim(bob, 2)
	b.decide(bob, decision(his[0].ID, winnow.VerdictUnknown, -1, "his"))
	b.decide(b.admin.ID, decision(mine[0].ID, winnow.VerdictUnknown, -1, "mine"))

	other := dbtest.Project(t, b.Store, bob, dbtest.Settings(), 2, 5)
	dbtest.OpenRound(t, b.Store, bob, other.ID)
	_, foreign, err := b.Claim(ctx, other.ID, bob, 1)
	if err != nil {
		t.Fatal(err)
	}

	for name, tc := range map[string]struct {
		d       winnow.Decision
		code    winnow.Code
		message string
		late    bool
	}{
		"no such item":           {decision(1e9, winnow.VerdictSkip, -1, "a"), winnow.CodeNotFound, "no such item", false},
		"an item of another":     {decision(foreign[0].ID, winnow.VerdictSkip, -1, "b"), winnow.CodeNotFound, "no such item", false},
		"no such class":          {decision(mine[1].ID, winnow.VerdictKnown, 3, "c"), winnow.CodeInvalid, "Class 3", false},
		"no such verdict":        {decision(mine[1].ID, "perhaps", 0, "d"), winnow.CodeInvalid, "perhaps", false},
		"no key":                 {decision(mine[1].ID, winnow.VerdictSkip, -1, ""), winnow.CodeInvalid, "client key", false},
		"leased to another":      {decision(his[1].ID, winnow.VerdictSkip, -1, "e"), winnow.CodeConflict, "somebody else has it now", true},
		"decided by another":     {decision(his[0].ID, winnow.VerdictKnown, 1, "f"), winnow.CodeConflict, "bob has decided this image already (unknown)", true},
		"decided by oneself":     {decision(mine[0].ID, winnow.VerdictSkip, -1, "g"), winnow.CodeConflict, "You have decided this image already (unknown)", true},
		"a key of another image": {decision(mine[1].ID, winnow.VerdictUnknown, -1, "mine"), winnow.CodeConflict, "client key", false},
		"a replay that differs":  {decision(mine[0].ID, winnow.VerdictSkip, -1, "mine"), winnow.CodeConflict, "client key", false},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 { // the answer to a retry is the same
				_, err := b.Decide(ctx, b.project, b.admin.ID, tc.d)
				wantCode(t, err, tc.code)
				if !strings.Contains(winnow.ErrorMessage(err), tc.message) {
					t.Errorf("the message is %q, want it to say %q", winnow.ErrorMessage(err), tc.message)
				}
			}
			var kept int
			if err := b.Pool().QueryRow(ctx, `SELECT count(*) FROM late_decisions WHERE client_key = $1`, tc.d.ClientKey).Scan(&kept); err != nil {
				t.Fatal(err)
			}
			if (kept == 1) != tc.late || kept > 1 {
				t.Errorf("the decision is on record %d times, want it there: %v", kept, tc.late)
			}
		})
	}
	b.checkInvariants()
}

func TestDecideAgainIsTheSameEvent(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	b.open()
	item := b.claim(b.admin.ID, 1)[0]
	d := decision(item.ID, winnow.VerdictKnown, 1, "key")
	first := b.decide(b.admin.ID, d)
	again := b.decide(b.admin.ID, d)
	if first.Replayed || !again.Replayed || first.Event != again.Event {
		t.Errorf("first %+v, again %+v", first, again)
	}
	if diff := cmp.Diff(first.Round.Counts, again.Round.Counts); diff != "" {
		t.Error(diff)
	}
	// It stays so when the round is over, which is when a queue that was offline sends it.
	if _, err := b.CloseRound(ctx, b.admin.ID, b.project, 0); err != nil {
		t.Fatal(err)
	}
	if again := b.decide(b.admin.ID, d); !again.Replayed || again.Round.State != winnow.RoundClosed {
		t.Errorf("after closing: %+v", again)
	}
	b.checkInvariants()
}

func TestDecideTwiceAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, 8, nil)
	b.open()
	item := b.claim(b.admin.ID, 1)[0]
	d := decision(item.ID, winnow.VerdictKnown, 1, "key")
	var wg sync.WaitGroup
	results := make([]winnow.DecideResult, 8)
	for i := range results {
		wg.Go(func() {
			res, err := b.Decide(t.Context(), b.project, b.admin.ID, d)
			if err != nil {
				t.Error(err)
			}
			results[i] = res
		})
	}
	wg.Wait()
	fresh := 0
	for _, res := range results {
		if res.Event != results[0].Event {
			t.Errorf("events %d and %d for one decision", res.Event, results[0].Event)
		}
		if !res.Replayed {
			fresh++
		}
	}
	if fresh != 1 {
		t.Errorf("%d of the decisions were new, want 1", fresh)
	}
	b.checkInvariants()
}

func TestDecideAfterTheLease(t *testing.T) {
	t.Parallel()
	b := newBench(t, 8, nil)
	bob := b.annotator("bob")
	b.open()
	items := b.claim(b.admin.ID, 2)
	b.clock.Advance(time.Hour)
	// Nobody else came: the decision counts.
	b.decide(b.admin.ID, decision(items[0].ID, winnow.VerdictSkip, -1, "late"))
	// Bob took the other one.
	if got := b.claim(bob, 1); got[0].ID != items[1].ID {
		t.Fatalf("bob got item %d, want the expired %d", got[0].ID, items[1].ID)
	}
	_, err := b.Decide(t.Context(), b.project, b.admin.ID, decision(items[1].ID, winnow.VerdictSkip, -1, "too late"))
	wantCode(t, err, winnow.CodeConflict)
	b.decide(bob, decision(items[1].ID, winnow.VerdictUnknown, -1, "bob's"))
	b.checkInvariants()
}

func TestDecideOnWhatAnImportLabeled(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 5, nil)
	b.open()
	item := b.claim(b.admin.ID, 1)[0]
	// The first item is the first image by id; label every image by import.
	dbtest.AddImages(t, b.Store, b.project, dbtest.Labeled(dbtest.Images(1, 5, 8), 0))
	b.checkPool(winnow.PoolCounts{Pool: 5, Known: 5})

	b.decide(b.admin.ID, decision(item.ID, winnow.VerdictUnknown, -1, "d"))
	b.checkPool(winnow.PoolCounts{Pool: 5, Known: 4, Unknown: 1})
	if _, err := b.Undo(ctx, b.project, b.admin.ID, 0, "u"); err != nil {
		t.Fatal(err)
	}
	b.checkPool(winnow.PoolCounts{Pool: 5, Known: 5})
	image, err := b.Image(ctx, b.project, item.ImageID)
	if err != nil || image.Verdict != winnow.VerdictKnown || image.Class != 0 {
		t.Errorf("after the undo the image is %s %d, %v: want the import's label back", image.Verdict, image.Class, err)
	}
	b.checkInvariants()
}

func (b *bench) checkPool(want winnow.PoolCounts) {
	b.t.Helper()
	p, err := b.Project(b.t.Context(), b.project)
	if err != nil {
		b.t.Fatal(err)
	}
	if diff := cmp.Diff(want, p.Counts); diff != "" {
		b.t.Error("pool:", diff)
	}
}

func TestUndo(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	b.open()
	items := b.claim(b.admin.ID, 2)
	b.decide(b.admin.ID, decision(items[0].ID, winnow.VerdictKnown, 1, "d0"))
	b.decide(b.admin.ID, decision(items[1].ID, winnow.VerdictUnknown, -1, "d1"))

	undo := func(key string, want winnow.Item) {
		t.Helper()
		got, err := b.Undo(ctx, b.project, b.admin.ID, 0, key)
		if err != nil {
			t.Fatal(err)
		}
		if got.ID != want.ID || got.Verdict != "" || got.LeasedBy != b.admin.ID || !got.LeaseUntil.After(b.clock.Now()) {
			t.Errorf("undo %s gives %+v, want item %d open and leased", key, got, want.ID)
		}
		b.checkInvariants()
	}
	undo("u1", items[1])
	undo("u1", items[1]) // a retry takes nothing more back
	undo("u0", items[0])
	_, err := b.Undo(ctx, b.project, b.admin.ID, 0, "u-none")
	wantCode(t, err, winnow.CodeConflict)
	_, err = b.Undo(ctx, b.project, b.admin.ID, 0, "d0")
	wantCode(t, err, winnow.CodeInvalid)
	_, err = b.Undo(ctx, b.project, b.admin.ID, 0, "")
	wantCode(t, err, winnow.CodeInvalid)

	// The decision may be made anew, and the history keeps all of it.
	b.decide(b.admin.ID, decision(items[0].ID, winnow.VerdictKnown, 2, "d0 again"))
	history, err := b.ImageHistory(ctx, b.project, items[0].ImageID)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []winnow.EventKind
	for _, h := range history {
		kinds = append(kinds, h.Kind)
	}
	if diff := cmp.Diff([]winnow.EventKind{winnow.EventLabel, winnow.EventUndo, winnow.EventLabel}, kinds); diff != "" {
		t.Error(diff)
	}
	b.checkInvariants()
}

func TestUndoReopensTheNewestRound(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 20, nil)
	b.open()
	if r := b.drain(b.admin.ID, always(winnow.VerdictKnown)); r.State != winnow.RoundClosed {
		t.Fatalf("the round is %s after its last item", r.State)
	}
	if _, err := b.Undo(ctx, b.project, b.admin.ID, 0, "u"); err != nil {
		t.Fatal(err)
	}
	r, err := b.Round(ctx, b.project, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r.State != winnow.RoundLabeling || r.Metrics.Precision != nil || r.Metrics.NextK != nil || !r.ClosedAt.IsZero() {
		t.Errorf("after the undo: %s, %+v, closed %v", r.State, r.Metrics, r.ClosedAt)
	}
	b.checkInvariants()

	// Closed once more, and another round begun: now the labels stand.
	if r := b.drain(b.admin.ID, always(winnow.VerdictSkip)); r.State != winnow.RoundClosed {
		t.Fatalf("the round is %s", r.State)
	}
	if _, err := b.StartRound(ctx, b.admin.ID, b.project); err != nil {
		t.Fatal(err)
	}
	_, err = b.Undo(ctx, b.project, b.admin.ID, 0, "u2")
	wantCode(t, err, winnow.CodeConflict)
	if !strings.Contains(winnow.ErrorMessage(err), "Round 1 has started") {
		t.Errorf("the message is %q", winnow.ErrorMessage(err))
	}
	b.checkInvariants()
}

func TestLabelEventsAreAppendOnly(t *testing.T) {
	t.Parallel()
	b := newBench(t, 8, nil)
	b.open()
	b.decide(b.admin.ID, decision(b.claim(b.admin.ID, 1)[0].ID, winnow.VerdictSkip, -1, "d"))
	for _, sql := range []string{
		"UPDATE label_events SET verdict = 'unknown'", "DELETE FROM label_events", "TRUNCATE label_events CASCADE",
		"UPDATE audit_events SET action = ''", "DELETE FROM audit_events", "TRUNCATE audit_events",
	} {
		if _, err := b.Pool().Exec(t.Context(), sql); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v, want it refused", sql, err)
		}
	}
}

func TestListenHearsOfChanges(t *testing.T) {
	t.Parallel()
	b := newBench(t, 8, nil)
	heard := make(chan winnow.Notice, 100)
	done := make(chan error)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- b.Listen(ctx, func(n winnow.Notice) { heard <- n }) }()
	if n := <-heard; n != (winnow.Notice{}) {
		t.Fatalf("heard %+v before anything moved", n)
	}
	hear := func(want winnow.Notice) {
		for n := range heard {
			if n == want {
				return
			}
		}
	}
	round := b.open()
	hear(winnow.Notice{Project: b.project, Round: round.ID})

	imp, err := b.CreateImport(ctx, b.admin.ID, winnow.Import{ProjectID: b.project, Split: winnow.SplitPool})
	if err != nil {
		t.Fatal(err)
	}
	hear(winnow.Notice{Project: b.project, Import: imp})
	b.silence(time.Hour)
	if _, err := b.InterruptDeadImports(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	hear(winnow.Notice{Project: b.project, Import: imp}) // its page says what became of it
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Listen ends with %v, want nil", err)
	}
}
