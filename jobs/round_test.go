package jobs

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
	"winnow/imaging"
	"winnow/ml"
	"winnow/ml/backend"
	"winnow/ml/nn"
	"winnow/ml/strategy"
)

// fakeTrainer stands in for hours of training.
type fakeTrainer func(ctx context.Context, in ml.RoundInput, progress func(winnow.Progress)) (*ml.RoundOutput, error)

func (fakeTrainer) Name() string { return "fake" }

func (f fakeTrainer) RunRound(ctx context.Context, in ml.RoundInput, progress func(winnow.Progress)) (*ml.RoundOutput, error) {
	return f(ctx, in, progress)
}

func (fakeTrainer) NewScorer(ml.Networks, strategy.Needs) (Scorer, error) {
	return nil, errors.New("the fake trains no networks to score with")
}

// firstImages queries the first images of the pool.
func firstImages(_ context.Context, in ml.RoundInput, progress func(winnow.Progress)) (*ml.RoundOutput, error) {
	progress(winnow.Progress{Stage: "training", Network: "detector", Epoch: 1, Epochs: 2, Loss: 0.5})
	out := &ml.RoundOutput{Metrics: winnow.Metrics{PoolSize: in.Pool.Len(), LabeledKnown: in.Labeled.N}}
	for i := range min(in.Settings.Budget, in.Pool.Len()) {
		out.Query = append(out.Query, ml.Choice{Index: i, Scores: winnow.Scores{Predicted: -1}})
	}
	return out, nil
}

// lastImages queries the last images of the pool.
func lastImages(ctx context.Context, in ml.RoundInput, progress func(winnow.Progress)) (*ml.RoundOutput, error) {
	out, err := firstImages(ctx, in, progress)
	for i := range out.Query {
		out.Query[i].Index = in.Pool.Len() - 1 - i
	}
	return out, err
}

// quick is a pace for tests: everything within milliseconds, and no worker is ever
// taken for dead.
var quick = pace{
	write: 10 * time.Millisecond, heartbeat: 20 * time.Millisecond, logEvery: time.Hour,
	reap: 20 * time.Millisecond, stale: time.Hour, poll: 5 * time.Millisecond, stall: time.Hour, chunk: 64,
}

// bundle is a project whose rounds are worked.
type bundle struct {
	store   *db.Store
	admin   winnow.User
	project *winnow.Project
}

const (
	bundleClasses = 2
	bundlePool    = 12
)

// newBundle makes a project with unlabeled images, and with images of both classes
// to train on and to be tested with.
func newBundle(t *testing.T) *bundle {
	t.Helper()
	return newBundleOf(t, bundlePool)
}

// newBundleOf is newBundle with so many images in the pool.
func newBundleOf(t *testing.T, pool int) *bundle {
	t.Helper()
	enqueue, err := NewEnqueue()
	if err != nil {
		t.Fatal(err)
	}
	enqueueScoring, err := NewEnqueueScoring()
	if err != nil {
		t.Fatal(err)
	}
	b := &bundle{store: dbtest.New(t, db.Options{Enqueue: enqueue, EnqueueScoring: enqueueScoring})}
	b.admin = dbtest.User(t, b.store, "admin")
	settings := dbtest.Settings()
	b.project = dbtest.Project(t, b.store, b.admin.ID, settings, bundleClasses, pool)
	for class := range bundleClasses {
		labeled := dbtest.Labeled(dbtest.Images(uint64(10+class), 4, settings.InputSize), class)
		dbtest.AddImages(t, b.store, b.project.ID, labeled)
		test := dbtest.Labeled(dbtest.Images(uint64(20+class), 3, settings.InputSize), class)
		for i := range test {
			test[i].Split = winnow.SplitTest
		}
		dbtest.AddImages(t, b.store, b.project.ID, test)
	}
	return b
}

// work runs a worker until the returned function is called, or the test ends.
func (b *bundle) work(t *testing.T, trainer Trainer, p pace) (stop func()) {
	t.Helper()
	runner := b.runner(t, trainer, p)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- runner.Run(ctx) }()
	var stopped atomic.Bool
	stop = func() {
		if stopped.Swap(true) {
			return
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run worker: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func (b *bundle) runner(t *testing.T, trainer Trainer, p pace) *Runner {
	t.Helper()
	runner, err := newRunner(b.store.Pool(), Options{
		Store: b.store, Trainer: trainer, Concurrency: 1, RoundTimeout: time.Hour,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}, p)
	if err != nil {
		t.Fatal(err)
	}
	return runner
}

func (b *bundle) start(t *testing.T) *winnow.Round {
	t.Helper()
	round, err := b.store.StartRound(t.Context(), b.admin.ID, b.project.ID)
	if err != nil {
		t.Fatal(err)
	}
	return round
}

// await polls until the round is in the state.
func (b *bundle) await(t *testing.T, id winnow.RoundID, state winnow.RoundState) *winnow.Round {
	t.Helper()
	return b.awaitRound(t, id, string(state), func(r *winnow.Round) bool { return r.State == state })
}

func (b *bundle) awaitRound(t *testing.T, id winnow.RoundID, what string, ok func(*winnow.Round) bool) *winnow.Round {
	t.Helper()
	deadline := time.After(5 * time.Minute)
	for {
		round, err := b.store.RoundByID(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if ok(round) {
			return round
		}
		select {
		case <-deadline:
			t.Fatalf("the round is %s in attempt %d, error %q; waited for: %s", round.State, round.Attempt, round.Error, what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// queried returns the round's images in rank order.
func (b *bundle) queried(t *testing.T, id winnow.RoundID) []winnow.ImageID {
	t.Helper()
	items, _, err := b.store.Items(t.Context(), id, winnow.ItemFilter{}, winnow.Page{Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(items, func(a, b winnow.Item) int { return a.Rank - b.Rank })
	images := make([]winnow.ImageID, len(items))
	for i, item := range items {
		images[i] = item.ImageID
	}
	return images
}

func (b *bundle) pool(t *testing.T) []winnow.ImageID {
	t.Helper()
	pool, err := b.store.PoolSet(t.Context(), b.project.ID, math.MaxInt64, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	return pool
}

// addImages adds images to the pool.
func (b *bundle) addImages(t *testing.T, n int) {
	t.Helper()
	dbtest.AddImages(t, b.store, b.project.ID, dbtest.Images(99, n, dbtest.Settings().InputSize))
}

// originals returns what the bundle made the pool's images of.
func (b *bundle) originals(t *testing.T, ids []winnow.ImageID) []winnow.NewImage {
	t.Helper()
	all := dbtest.Images(1, bundlePool, dbtest.Settings().InputSize)
	made := make([]winnow.NewImage, len(ids))
	for i, id := range ids {
		image, err := b.store.Image(t.Context(), b.project.ID, id)
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(all, func(n winnow.NewImage) bool { return n.SHA256 == image.SHA256 })
		if at < 0 {
			t.Fatalf("image %d is not of the pool", id)
		}
		made[i] = all[at]
	}
	return made
}

// allOf reads a whole pool.
func allOf(t *testing.T, pool ml.Pool) nn.Images {
	t.Helper()
	at := make([]int, pool.Len())
	for i := range at {
		at[i] = i
	}
	images, err := pool.Images(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	return images
}

func TestRoundOpensForLabeling(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	var got ml.RoundInput
	b.work(t, fakeTrainer(func(ctx context.Context, in ml.RoundInput, progress func(winnow.Progress)) (*ml.RoundOutput, error) {
		got = in
		return lastImages(ctx, in, progress)
	}), quick)
	pool := b.pool(t)
	round := b.await(t, b.start(t).ID, winnow.RoundLabeling)

	want := slices.Clone(pool)
	slices.Reverse(want)
	want = want[:round.Settings.Budget]
	if diff := cmp.Diff(want, b.queried(t, round.ID)); diff != "" {
		t.Errorf("queried images (-want +got):\n%s", diff)
	}
	if round.Backend != "fake" || round.Counts.Total != len(want) || round.Metrics.PoolSize != bundlePool {
		t.Errorf("backend %q, %d items, metrics %+v", round.Backend, round.Counts.Total, round.Metrics)
	}
	if got.Classes != bundleClasses || got.Seed != round.Seed || got.K != round.K || got.Number != 0 {
		t.Errorf("input: %d classes, seed %d, k %v, number %d", got.Classes, got.Seed, got.K, got.Number)
	}
	if diff := cmp.Diff([]int{0, 0, 0, 0, 1, 1, 1, 1}, got.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{0, 0, 0, 1, 1, 1}, got.TestLabels); diff != "" {
		t.Errorf("test labels (-want +got):\n%s", diff)
	}
	size := round.Settings.InputSize
	pixels := allOf(t, got.Pool)
	for i, made := range b.originals(t, pool) {
		if !slices.Equal(pixels.At(i), made.Pixels) {
			t.Errorf("pixels of image %d of the pool are another's", i)
		}
	}
	for class := range bundleClasses {
		for name, set := range map[string]struct {
			images nn.Images
			labels []int
			want   []winnow.NewImage
		}{
			"labeled": {got.Labeled, got.Labels, dbtest.Images(uint64(10+class), 4, size)},
			"test":    {got.Test, got.TestLabels, dbtest.Images(uint64(20+class), 3, size)},
		} {
			for i := range set.images.N {
				of := slices.ContainsFunc(set.want, func(made winnow.NewImage) bool { return slices.Equal(made.Pixels, set.images.At(i)) })
				if of != (set.labels[i] == class) {
					t.Errorf("%s image %d has label %d; it is of class %d: %v", name, i, set.labels[i], class, of)
				}
			}
		}
	}
}

// The whole way once, with real networks.
func TestRoundTrains(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	be, err := backend.Open(backend.Default)
	if err != nil {
		t.Fatal(err)
	}
	defer be.Close()
	b.work(t, NewTrainer(be), quick)
	round := b.await(t, b.start(t).ID, winnow.RoundLabeling)
	if round.Metrics.TestAccuracy == nil || round.Metrics.LabeledKnown != 8 || round.ColdStart {
		t.Errorf("metrics %+v, cold start %v", round.Metrics, round.ColdStart)
	}
	names := query[string](t, b, `SELECT name FROM round_checkpoints WHERE length(data) > 0 ORDER BY name`)
	if diff := cmp.Diff([]string{"classifier", "detector"}, names); diff != "" {
		t.Errorf("checkpoints (-want +got):\n%s", diff)
	}
}

func query[T any](t *testing.T, b *bundle, sql string) []T {
	t.Helper()
	rows, err := b.store.Pool().Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []T
	for rows.Next() {
		var v T
		if err := rows.Scan(&v); err != nil {
			t.Fatal(err)
		}
		all = append(all, v)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRoundFails(t *testing.T) {
	t.Parallel()
	const inner = "dial tcp 10.0.0.1: secret detail"
	tests := []struct {
		name string
		fail func() error
		want string
	}{
		{"with words for people", func() error { return winnow.Invalid("batch", "It is too large.") }, "batch: It is too large."},
		{"inside", func() error { return errors.New(inner) }, "its log says why"},
		{"by a panic", func() error { panic(inner) }, "its log says why"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBundle(t)
			b.work(t, fakeTrainer(func(context.Context, ml.RoundInput, func(winnow.Progress)) (*ml.RoundOutput, error) {
				return nil, tt.fail()
			}), quick)
			round := b.await(t, b.start(t).ID, winnow.RoundFailed)
			if !strings.Contains(round.Error, tt.want) || strings.Contains(round.Error, "secret") {
				t.Errorf("the round says %q, want %q in it and nothing of the cause", round.Error, tt.want)
			}
		})
	}
}

// obstinate trains until its context ends, the first time; then it queries. Entered
// gets a value each time it begins.
func obstinate(entered chan struct{}, then fakeTrainer) fakeTrainer {
	var calls atomic.Int32
	return func(ctx context.Context, in ml.RoundInput, progress func(winnow.Progress)) (*ml.RoundOutput, error) {
		entered <- struct{}{}
		if calls.Add(1) > 1 {
			return then(ctx, in, progress)
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

func TestCancelledRoundStopsAndCanBeRetried(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	entered := make(chan struct{}, 2)
	b.work(t, obstinate(entered, firstImages), quick)
	round := b.start(t)
	<-entered
	if _, err := b.store.CancelRound(t.Context(), b.admin.ID, b.project.ID, round.Number); err != nil {
		t.Fatal(err)
	}
	// The worker is free again only once the first attempt has stopped.
	if _, err := b.store.RetryRound(t.Context(), b.admin.ID, b.project.ID, round.Number); err != nil {
		t.Fatal(err)
	}
	<-entered
	round = b.await(t, round.ID, winnow.RoundLabeling)
	if round.Attempt != 2 {
		t.Errorf("attempt %d, want 2", round.Attempt)
	}
}

func TestStoppingWorkerGivesItsRoundBack(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	entered := make(chan struct{}, 2)
	stop := b.work(t, obstinate(entered, firstImages), quick)
	round := b.start(t)
	<-entered
	stop()
	round = b.await(t, round.ID, winnow.RoundQueued)
	if round.Attempt != 2 || round.Error != "" {
		t.Errorf("attempt %d, error %q", round.Attempt, round.Error)
	}
	b.work(t, fakeTrainer(firstImages), quick)
	b.await(t, round.ID, winnow.RoundLabeling)
}

// A worker that is silent for too long loses its round, and what it brings later
// changes nothing.
func TestSilentWorkerIsTakenOver(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	silent := pace{write: time.Hour, heartbeat: time.Hour, logEvery: time.Hour, reap: time.Hour, stale: time.Hour, poll: time.Hour, stall: time.Hour, chunk: 64}
	entered, release := make(chan struct{}), make(chan struct{})
	stopSilent := b.work(t, fakeTrainer(func(ctx context.Context, in ml.RoundInput, progress func(winnow.Progress)) (*ml.RoundOutput, error) {
		close(entered)
		<-release
		return lastImages(ctx, in, progress)
	}), silent)
	round := b.start(t)
	<-entered

	watchful := quick
	watchful.stale = 2 * time.Second
	watchful.heartbeat = 10 * time.Millisecond
	b.work(t, fakeTrainer(firstImages), watchful)
	round = b.await(t, round.ID, winnow.RoundLabeling)
	want := b.queried(t, round.ID)
	if round.Attempt < 2 {
		t.Errorf("attempt %d: nobody took over", round.Attempt)
	}

	close(release)
	stopSilent()
	after := b.await(t, round.ID, winnow.RoundLabeling)
	if diff := cmp.Diff(want, b.queried(t, round.ID)); diff != "" || after.Attempt != round.Attempt {
		t.Errorf("attempt %d; the lost worker changed the query:\n%s", after.Attempt, diff)
	}
}

// A worker may die between taking a round's job and beginning the round: then the
// round is queued, but no job would ever work it.
func TestQueuedRoundWhoseJobIsLostIsQueuedAgain(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBundle(t)
	round := b.start(t)
	if n, err := b.store.RequeueStaleRounds(ctx, -time.Hour); err != nil || n != 0 {
		t.Fatalf("requeued %d rounds whose job waits, %v", n, err)
	}
	if _, err := b.store.Pool().Exec(ctx, `UPDATE river_job SET state = 'running', attempted_at = now()`); err != nil {
		t.Fatal(err)
	}
	if n, err := b.store.RequeueStaleRounds(ctx, time.Hour); err != nil || n != 0 {
		t.Fatalf("requeued %d rounds whose worker may be about to begin, %v", n, err)
	}
	if n, err := b.store.RequeueStaleRounds(ctx, -time.Hour); err != nil || n != 1 {
		t.Fatalf("requeued %d lost rounds, want 1, %v", n, err)
	}
	b.work(t, fakeTrainer(firstImages), quick)
	if after := b.await(t, round.ID, winnow.RoundLabeling); after.Attempt != 2 {
		t.Errorf("attempt %d, want 2", after.Attempt)
	}
}

// A worker that is alive, but whose round was given away, stops training.
func TestFencedWorkerStops(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	entered := make(chan struct{}, 2)
	b.work(t, obstinate(entered, firstImages), quick)
	round := b.start(t)
	<-entered
	for n := 0; n == 0; { // a round whose row the worker is writing is passed over
		var err error
		if n, err = b.store.RequeueStaleRounds(t.Context(), -time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	<-entered
	round = b.await(t, round.ID, winnow.RoundLabeling)
	if round.Attempt != 2 {
		t.Errorf("attempt %d, want 2", round.Attempt)
	}
}

func TestProgressIsShown(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	goOn := make(chan struct{})
	want := winnow.Progress{
		Stage: "training", Network: "classifier", Epoch: 3, Epochs: 9, Loss: 1.25, Fraction: 0.5, SecondsLeft: 7,
		Elapsed: time.Second, Curves: []winnow.LossCurve{{Network: "classifier", Loss: []float64{3, 2, 1.25}}},
	}
	b.work(t, fakeTrainer(func(ctx context.Context, in ml.RoundInput, progress func(winnow.Progress)) (*ml.RoundOutput, error) {
		progress(want)
		<-goOn
		progress(winnow.Progress{Stage: "scoring", Network: "classifier"})
		<-goOn
		return firstImages(ctx, in, func(winnow.Progress) {})
	}), quick)
	id := b.start(t).ID
	round := b.awaitRound(t, id, "progress of the training", func(r *winnow.Round) bool { return r.Progress.Epoch == 3 })
	if diff := cmp.Diff(want, round.Progress); diff != "" || round.State != winnow.RoundTraining {
		t.Errorf("%s; progress (-want +got):\n%s", round.State, diff)
	}
	goOn <- struct{}{}
	b.await(t, id, winnow.RoundScoring)
	goOn <- struct{}{}
	b.await(t, id, winnow.RoundLabeling)
}

// After the input size has changed, pixels are made from the originals, once.
func TestPixelsFollowTheInputSize(t *testing.T) {
	t.Parallel()
	b := newBundle(t)
	b.project.Settings.InputSize = 16
	if err := b.store.UpdateProject(t.Context(), b.admin.ID, b.project); err != nil {
		t.Fatal(err)
	}
	var got nn.Images
	b.work(t, fakeTrainer(func(ctx context.Context, in ml.RoundInput, progress func(winnow.Progress)) (*ml.RoundOutput, error) {
		got = allOf(t, in.Pool)
		return firstImages(ctx, in, progress)
	}), quick)
	pool := b.pool(t)
	b.await(t, b.start(t).ID, winnow.RoundLabeling)

	preparer := imaging.NewPreparer(imaging.DefaultLimits())
	for i, made := range b.originals(t, pool) {
		want, err := preparer.Pixels(t.Context(), made.Original, 16)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.At(i), want) {
			t.Errorf("pixels of image %d are not its original's", i)
		}
	}
	missing, err := b.store.Pixels(t.Context(), pool, 16, make([]byte, len(pool)*16*16*3))
	if err != nil || len(missing) != 0 {
		t.Errorf("%d images still lack pixels of the new size, %v", len(missing), err)
	}
}

func TestBelow(t *testing.T) {
	t.Parallel()
	ids, labels := below(2, []winnow.ImageID{1, 2, 3, 4}, []int{0, 2, 1, 5})
	if diff := cmp.Diff([]winnow.ImageID{1, 3}, ids); diff != "" {
		t.Errorf("images (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{0, 1}, labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestPersistOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	away := winnow.Errorf(winnow.CodeUnavailable, "The database does not answer.")
	refused := winnow.Errorf(winnow.CodeConflict, "The round has moved on.")

	answers := []error{away, away, refused}
	err := persist(t.Context(), quick, log, func() error {
		err := answers[0]
		answers = answers[1:]
		return err
	})
	if !errors.Is(err, refused) || len(answers) != 0 {
		t.Errorf("got %v with %d answers left, want the first that is no outage", err, len(answers))
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := persist(ctx, quick, log, func() error { return away }); !errors.Is(err, away) {
		t.Errorf("after the end of the attempt: %v", err)
	}
}
