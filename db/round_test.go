package db_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
)

func TestRoundsFollowEachOther(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 30, func(s *winnow.Settings) { s.K, s.Seed = 3, 10 })
	for n, tc := range []struct {
		verdict   func(int) winnow.Verdict
		k, next   float64
		precision *float64
	}{
		{always(winnow.VerdictKnown), 3, 4, new(1.0)},
		{func(i int) winnow.Verdict { // what was skipped counts in neither
			return []winnow.Verdict{winnow.VerdictSkip, winnow.VerdictKnown, winnow.VerdictUnknown, winnow.VerdictKnown, winnow.VerdictUnknown}[i]
		}, 4, 4.5, new(0.5)},
		{always(winnow.VerdictUnknown), 4.5, 4.5, new(0.0)},
		{always(winnow.VerdictSkip), 4.5, 4.5, nil},
	} {
		opened := b.open()
		if opened.Number != n || opened.K != tc.k || opened.Seed != 10+int64(n) {
			t.Fatalf("round %d has number %d, k %v, seed %d", n, opened.Number, opened.K, opened.Seed)
		}
		b.drain(b.admin.ID, tc.verdict)
		r, err := b.Round(ctx, b.project, n)
		if err != nil {
			t.Fatal(err)
		}
		if r.State != winnow.RoundClosed || !r.ClosedAt.Equal(b.clock.Now()) {
			t.Errorf("round %d is %s since %v", n, r.State, r.ClosedAt)
		}
		if diff := cmp.Diff(&tc.next, r.Metrics.NextK); diff != "" {
			t.Errorf("round %d, next k: %s", n, diff)
		}
		if diff := cmp.Diff(tc.precision, r.Metrics.Precision); diff != "" {
			t.Errorf("round %d, precision: %s", n, diff)
		}
		b.checkInvariants()
	}
	var numbers []int
	page := winnow.Page{Limit: 3}
	for {
		rounds, next, err := b.Rounds(ctx, b.project, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rounds {
			numbers = append(numbers, r.Number)
		}
		if page.After = next; next == "" {
			break
		}
	}
	if diff := cmp.Diff([]int{3, 2, 1, 0}, numbers); diff != "" {
		t.Error("newest first:", diff)
	}
}

func TestStartRound(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 5, nil)
	round, err := b.StartRound(ctx, b.admin.ID, b.project)
	if err != nil {
		t.Fatal(err)
	}
	want := &winnow.Round{
		ID: round.ID, ProjectID: b.project, State: winnow.RoundQueued, Strategy: "eaoa", Seed: 1, K: 5,
		Settings: dbtest.Settings(), ClassVersion: 1, Classes: 3, Attempt: 1, CreatedAt: b.clock.Now(),
	}
	if diff := cmp.Diff(want, round); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{fmt.Sprintf("%d/1", round.ID)}, b.jobs.list); diff != "" {
		t.Error("jobs:", diff)
	}
	_, err = b.StartRound(ctx, b.admin.ID, b.project)
	wantCode(t, err, winnow.CodeConflict)
	_, err = b.StartRound(ctx, b.admin.ID, 1e9)
	wantCode(t, err, winnow.CodeNotFound)

	dbtest.WorkRound(t, b.Store, round)
	b.drain(b.admin.ID, always(winnow.VerdictKnown))
	_, err = b.StartRound(ctx, b.admin.ID, b.project)
	wantCode(t, err, winnow.CodeInvalid) // the pool is empty
}

func TestStartRoundManyAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, 5, nil)
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() { _, errs[i] = b.StartRound(t.Context(), b.admin.ID, b.project) })
	}
	wg.Wait()
	started := 0
	for _, err := range errs {
		if err == nil {
			started++
		} else {
			wantCode(t, err, winnow.CodeConflict)
		}
	}
	if started != 1 {
		t.Errorf("%d rounds started", started)
	}
}

func TestAutoNext(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 12, func(s *winnow.Settings) { s.AutoNext = true })
	b.open()
	closed := b.drain(b.admin.ID, always(winnow.VerdictKnown))
	next, err := b.Round(ctx, b.project, 1)
	if err != nil {
		t.Fatal(err)
	}
	if closed.State != winnow.RoundClosed || next.State != winnow.RoundQueued || next.K != *closed.Metrics.NextK {
		t.Errorf("round 0 is %s with next k %v, round 1 %s with k %v", closed.State, *closed.Metrics.NextK, next.State, next.K)
	}
	if diff := cmp.Diff([]string{fmt.Sprintf("%d/1", closed.ID), fmt.Sprintf("%d/1", next.ID)}, b.jobs.list); diff != "" {
		t.Error("jobs:", diff)
	}
	// It ends when the pool does.
	dbtest.WorkRound(t, b.Store, next)
	b.drain(b.admin.ID, always(winnow.VerdictUnknown))
	last, err := b.Round(ctx, b.project, 2)
	if err != nil {
		t.Fatal(err)
	}
	dbtest.WorkRound(t, b.Store, last)
	b.drain(b.admin.ID, always(winnow.VerdictUnknown))
	_, err = b.Round(ctx, b.project, 3)
	wantCode(t, err, winnow.CodeNotFound)
	b.checkPool(winnow.PoolCounts{Pool: 12, Known: 5, Unknown: 7})
	b.checkInvariants()
}

func TestCloseRoundByHand(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	b.open()
	items := b.claim(b.admin.ID, 3)
	b.decide(b.admin.ID, decision(items[0].ID, winnow.VerdictKnown, 0, "a"))
	b.decide(b.admin.ID, decision(items[1].ID, winnow.VerdictUnknown, -1, "b"))
	r, err := b.CloseRound(ctx, b.admin.ID, b.project, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r.State != winnow.RoundClosed || *r.Metrics.Precision != 0.5 {
		t.Errorf("%s, precision %v", r.State, *r.Metrics.Precision)
	}
	_, err = b.Decide(ctx, b.project, b.admin.ID, decision(items[2].ID, winnow.VerdictSkip, -1, "c"))
	wantCode(t, err, winnow.CodeConflict)
	_, err = b.CloseRound(ctx, b.admin.ID, b.project, 0)
	wantCode(t, err, winnow.CodeConflict)
	_, err = b.CloseRound(ctx, b.admin.ID, b.project, 9)
	wantCode(t, err, winnow.CodeNotFound)
	// What was not decided may be asked again.
	b.open()
	if got := b.claim(b.admin.ID, 1); got[0].ImageID != items[2].ImageID {
		t.Errorf("the next round asks about image %d first, want the undecided %d", got[0].ImageID, items[2].ImageID)
	}
	b.checkInvariants()
}

func TestCancelAndRetry(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	round, err := b.StartRound(ctx, b.admin.ID, b.project)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = b.BeginRound(ctx, round.ID, 1, "go"); err != nil {
		t.Fatal(err)
	}
	_, err = b.RetryRound(ctx, b.admin.ID, b.project, 0)
	wantCode(t, err, winnow.CodeConflict)
	r, err := b.CancelRound(ctx, b.admin.ID, b.project, 0)
	if err != nil || r.State != winnow.RoundCancelled {
		t.Fatalf("%v, %v", r, err)
	}
	err = b.RoundProgress(ctx, round.ID, 1, winnow.RoundTraining, winnow.Progress{})
	wantCode(t, err, winnow.CodeCanceled)
	_, err = b.CancelRound(ctx, b.admin.ID, b.project, 0)
	wantCode(t, err, winnow.CodeConflict)

	if r, err = b.RetryRound(ctx, b.admin.ID, b.project, 0); err != nil {
		t.Fatal(err)
	}
	if r.State != winnow.RoundQueued || r.Attempt != 2 || r.Seed != round.Seed {
		t.Errorf("the retry is %s in attempt %d with seed %d", r.State, r.Attempt, r.Seed)
	}
	if diff := cmp.Diff([]string{fmt.Sprintf("%d/1", r.ID), fmt.Sprintf("%d/2", r.ID)}, b.jobs.list); diff != "" {
		t.Error("jobs:", diff)
	}
	// The worker of the first attempt is out.
	err = b.RoundProgress(ctx, round.ID, 1, winnow.RoundTraining, winnow.Progress{})
	wantCode(t, err, winnow.CodeConflict)

	dbtest.WorkRound(t, b.Store, r)
	_, err = b.CancelRound(ctx, b.admin.ID, b.project, 0)
	wantCode(t, err, winnow.CodeConflict) // labels may exist: it is closed, not cancelled
}

func TestRetryOnlyTheNewest(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	r, err := b.StartRound(ctx, b.admin.ID, b.project)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.FailRound(ctx, r.ID, 1, "The loss diverged at step 12."); err != nil {
		t.Fatal(err)
	}
	if r, err = b.Round(ctx, b.project, 0); err != nil || r.State != winnow.RoundFailed || r.Error != "The loss diverged at step 12." {
		t.Fatalf("%+v, %v", r, err)
	}
	b.open()
	_, err = b.RetryRound(ctx, b.admin.ID, b.project, 0)
	wantCode(t, err, winnow.CodeConflict)
}

func TestWorkerIsFenced(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	round, err := b.StartRound(ctx, b.admin.ID, b.project)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.BeginRound(ctx, round.ID, 1, "go"); err != nil {
		t.Fatal(err)
	}
	_, err = b.BeginRound(ctx, round.ID, 1, "go")
	wantCode(t, err, winnow.CodeConflict) // the same job twice

	// It reports in time, so it keeps the round.
	b.silence(15 * time.Second)
	progress := winnow.Progress{Stage: "training", Network: "detector", Epoch: 1, Epochs: 2, Loss: 0.5, Fraction: 0.25}
	if err := b.RoundProgress(ctx, round.ID, 1, winnow.RoundScoring, progress); err != nil {
		t.Fatal(err)
	}
	r, err := b.RoundByID(ctx, round.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(progress, r.Progress); diff != "" || r.State != winnow.RoundScoring || r.Backend != "go" {
		t.Errorf("%s on %s: %s", r.State, r.Backend, diff)
	}
	b.silence(15 * time.Second)
	b.clock.Advance(time.Hour) // one machine's clock goes wrong
	if n, err := b.RequeueStaleRounds(ctx, 20*time.Second); n != 0 || err != nil {
		t.Fatalf("requeued %d, %v", n, err)
	}

	// Then it is silent for too long, and another takes the round.
	b.silence(6 * time.Second)
	b.clock.Advance(-2 * time.Hour)
	if n, err := b.RequeueStaleRounds(ctx, 20*time.Second); n != 1 || err != nil {
		t.Fatalf("requeued %d, %v", n, err)
	}
	if diff := cmp.Diff([]string{fmt.Sprintf("%d/1", round.ID), fmt.Sprintf("%d/2", round.ID)}, b.jobs.list); diff != "" {
		t.Error("jobs:", diff)
	}
	if _, err := b.BeginRound(ctx, round.ID, 2, "xla"); err != nil {
		t.Fatal(err)
	}
	pool, err := b.PoolSet(ctx, b.project, math.MaxInt64, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	items := []winnow.Item{{ImageID: pool[3], Rank: 1}}
	for name, err := range map[string]error{
		"begin":    func() error { _, err := b.BeginRound(ctx, round.ID, 1, "go"); return err }(),
		"progress": b.RoundProgress(ctx, round.ID, 1, winnow.RoundTraining, progress),
		"open":     b.OpenLabeling(ctx, round.ID, 1, items, winnow.Metrics{}, false),
		"fail":     b.FailRound(ctx, round.ID, 1, "lost"),
		"requeue":  b.RequeueRound(ctx, round.ID, 1),
	} {
		if winnow.ErrorCode(err) != winnow.CodeConflict {
			t.Errorf("%s of the lost worker: %v, want a conflict", name, err)
		}
	}
	accuracy := 0.75
	metrics := winnow.Metrics{TestAccuracy: &accuracy, PoolSize: 8}
	if err := b.OpenLabeling(ctx, round.ID, 2, items, metrics, true); err != nil {
		t.Fatal(err)
	}
	if r, err = b.RoundByID(ctx, round.ID); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(metrics, r.Metrics); diff != "" || !r.ColdStart || r.State != winnow.RoundLabeling || r.Counts.Total != 1 || r.Backend != "xla" {
		t.Errorf("%+v: %s", r, diff)
	}
	if n, err := b.RequeueStaleRounds(ctx, -time.Hour); n != 0 || err != nil {
		t.Errorf("a round that is being labeled was requeued: %d, %v", n, err)
	}
}

func TestARoundThatKillsItsWorkersFails(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 8, nil)
	round, err := b.StartRound(ctx, b.admin.ID, b.project)
	if err != nil {
		t.Fatal(err)
	}
	for attempt := 1; attempt <= 6; attempt++ {
		if _, err := b.BeginRound(ctx, round.ID, attempt, "go"); err != nil {
			t.Fatalf("attempt %d: %v", attempt, err)
		}
		b.silence(time.Minute)
		if _, err := b.RequeueStaleRounds(ctx, 20*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	r, err := b.RoundByID(ctx, round.ID)
	if err != nil {
		t.Fatal(err)
	}
	if r.State != winnow.RoundFailed || !strings.Contains(r.Error, "stopped before it was done") {
		t.Errorf("%s: %s", r.State, r.Error)
	}
	// By hand it may be tried again.
	if r, err = b.RetryRound(ctx, b.admin.ID, b.project, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.BeginRound(ctx, r.ID, r.Attempt, "go"); err != nil {
		t.Fatal(err)
	}
	if err := b.RequeueRound(ctx, r.ID, r.Attempt); err != nil {
		t.Fatal(err)
	}
	if r, err = b.RoundByID(ctx, r.ID); err != nil || r.State != winnow.RoundQueued {
		t.Errorf("after the worker gave it back: %v, %v", r, err)
	}
}

func TestOpenLabelingRefuses(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 3, nil)
	other := dbtest.Project(t, b.Store, b.annotator("bob"), dbtest.Settings(), 2, 3)
	foreign, err := b.PoolSet(ctx, other.ID, math.MaxInt64, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	round, err := b.StartRound(ctx, b.admin.ID, b.project)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.BeginRound(ctx, round.ID, 1, "go"); err != nil {
		t.Fatal(err)
	}
	pool, err := b.PoolSet(ctx, b.project, math.MaxInt64, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	// Two of the three are labeled by an import while the worker trains.
	labeled := dbtest.Images(1, 3, 8)[:2]
	dbtest.AddImages(t, b.Store, b.project, dbtest.Labeled(labeled, 1))
	err = b.OpenLabeling(ctx, round.ID, 1, []winnow.Item{{ImageID: foreign[0], Rank: 1}}, winnow.Metrics{}, false)
	wantCode(t, err, winnow.CodeInvalid)
	var items []winnow.Item
	for i, id := range pool {
		items = append(items, winnow.Item{ImageID: id, Rank: i + 1})
	}
	if err := b.OpenLabeling(ctx, round.ID, 1, items, winnow.Metrics{}, false); err != nil {
		t.Fatal(err)
	}
	if r, err := b.RoundByID(ctx, round.ID); err != nil || r.Counts.Total != 1 {
		t.Errorf("%d items are open, %v: want the one that nobody has labeled", r.Counts.Total, err)
	}
	b.checkInvariants()
}

// TestWhoTakesARoundOverSeesTheSame imports images, with and without labels, while a
// round is in training and its worker dies.
func TestWhoTakesARoundOverSeesTheSame(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 6, nil)
	dbtest.AddImages(t, b.Store, b.project, dbtest.Labeled(dbtest.Images(2, 2, 8), 1))
	type sets struct {
		Pool, Labeled, Test []winnow.ImageID
		Labels, TestLabels  []int
	}
	read := func(r *winnow.Round) (s sets) {
		t.Helper()
		var errs [3]error
		s.Pool, errs[0] = b.PoolSet(ctx, b.project, r.LabelVersion, r.ImageVersion)
		s.Labeled, s.Labels, errs[1] = b.TrainingSet(ctx, b.project, r.LabelVersion, r.Classes)
		s.Test, s.TestLabels, errs[2] = b.TestSet(ctx, b.project, r.LabelVersion)
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatal(err)
		}
		return s
	}
	begin := func(r *winnow.Round) *winnow.Round {
		t.Helper()
		r, err := b.BeginRound(ctx, r.ID, r.Attempt, "go")
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	queued, err := b.StartRound(ctx, b.admin.ID, b.project)
	if err != nil {
		t.Fatal(err)
	}
	first := begin(queued)
	want := read(first)
	if len(want.Pool) != 6 || len(want.Labeled) != 2 || len(want.Test) != 0 {
		t.Errorf("the round begins with %+v", want)
	}

	dbtest.AddImages(t, b.Store, b.project, dbtest.Images(3, 4, 8))
	dbtest.AddImages(t, b.Store, b.project, dbtest.Labeled(dbtest.Images(1, 3, 8), 0)) // three of the pool
	dbtest.AddImages(t, b.Store, b.project, dbtest.Labeled(dbtest.Images(4, 1, 8), 0))
	held := dbtest.Labeled(dbtest.Images(5, 2, 8), 2)
	for i := range held {
		held[i].Split = winnow.SplitTest
	}
	dbtest.AddImages(t, b.Store, b.project, held)
	b.silence(time.Minute)
	if n, err := b.RequeueStaleRounds(ctx, time.Second); n != 1 || err != nil {
		t.Fatalf("%d taken over, %v", n, err)
	}
	if queued, err = b.RoundByID(ctx, queued.ID); err != nil {
		t.Fatal(err)
	}
	second := begin(queued)
	if diff := cmp.Diff(want, read(second)); diff != "" {
		t.Error("who takes it over sees something else:", diff)
	}

	// A retry by hand is a new beginning.
	if _, err := b.CancelRound(ctx, b.admin.ID, b.project, second.Number); err != nil {
		t.Fatal(err)
	}
	if queued, err = b.RetryRound(ctx, b.admin.ID, b.project, second.Number); err != nil {
		t.Fatal(err)
	}
	if got := read(begin(queued)); len(got.Pool) != 7 || len(got.Labeled) != 6 || len(got.Test) != 2 {
		t.Errorf("a retry begins with %+v", got)
	}
}

func TestSetsOfARound(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 6, nil)
	dbtest.AddImages(t, b.Store, b.project, dbtest.Labeled(dbtest.Images(2, 2, 8), 1))
	test := dbtest.Labeled(dbtest.Images(3, 2, 8), 2)
	strangers := dbtest.Images(4, 1, 8)
	strangers[0].Verdict = winnow.VerdictUnknown
	held := append(test, strangers...)
	for i := range held {
		held[i].Split = winnow.SplitTest
	}
	dbtest.AddImages(t, b.Store, b.project, held)
	first := b.open()
	b.drain(b.admin.ID, func(i int) winnow.Verdict {
		return []winnow.Verdict{winnow.VerdictUnknown, winnow.VerdictSkip, winnow.VerdictUnreadable, winnow.VerdictKnown, winnow.VerdictKnown}[i]
	})
	second, err := b.StartRound(ctx, b.admin.ID, b.project)
	if err != nil {
		t.Fatal(err)
	}
	if second, err = b.BeginRound(ctx, second.ID, 1, "go"); err != nil {
		t.Fatal(err)
	}

	labelsOf := func(r *winnow.Round, classes int) map[int]int {
		t.Helper()
		started, err := b.RoundByID(ctx, r.ID)
		if err != nil {
			t.Fatal(err)
		}
		_, labels, err := b.TrainingSet(ctx, b.project, started.LabelVersion, classes)
		if err != nil {
			t.Fatal(err)
		}
		count := make(map[int]int)
		for _, l := range labels {
			count[l]++
		}
		return count
	}
	if diff := cmp.Diff(map[int]int{1: 2}, labelsOf(first, 3)); diff != "" {
		t.Error("the first round trains on:", diff)
	}
	if diff := cmp.Diff(map[int]int{0: 2, 1: 2, 3: 1}, labelsOf(second, 3)); diff != "" {
		t.Error("the second round trains on:", diff)
	}
	if pool, err := b.PoolSet(ctx, b.project, math.MaxInt64, math.MaxInt64); err != nil || len(pool) != 1 {
		t.Errorf("the pool is %v, %v, want one image", pool, err)
	}
	if _, labels, err := b.TestSet(ctx, b.project, math.MaxInt64); err != nil || cmp.Diff([]int{2, 2}, labels) != "" {
		t.Errorf("the test set is %v, %v", labels, err)
	}
}

func TestEnqueueFailureLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 5, nil)
	broken, err := db.Open(ctx, b.Pool().Config().ConnString(), db.Options{
		Enqueue: func(context.Context, pgx.Tx, winnow.RoundID, int) error { return errors.New("no queue") },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	if _, err := broken.StartRound(ctx, b.admin.ID, b.project); err == nil {
		t.Fatal("the round started without its job")
	}
	_, err = b.Round(ctx, b.project, 0)
	wantCode(t, err, winnow.CodeNotFound)
}
