package jobs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"winnow"
	"winnow/db"
	"winnow/ml"
	"winnow/ml/backend"
	"winnow/ml/nn"
	"winnow/ml/strategy"
)

// sharedPool is cut into five chunks, the last of them short.
const sharedPool = 4*64 + 20

// spy is a real trainer that is watched, and stopped where a test wants it.
type spy struct {
	Trainer
	trained atomic.Int32 // rounds that trained networks, rather than found them
	scored  atomic.Int32 // chunks
	// before is called before a chunk is scored, with how many were before.
	before func(ctx context.Context, n int) error
}

func newSpy(t testing.TB, before func(ctx context.Context, n int) error) *spy {
	t.Helper()
	be, err := backend.Open(backend.Default)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	return &spy{Trainer: NewTrainer(be), before: before}
}

func (s *spy) RunRound(ctx context.Context, in ml.RoundInput, progress func(winnow.Progress)) (*ml.RoundOutput, error) {
	if keep := in.Keep; keep != nil {
		in.Keep = func(ctx context.Context, nets ml.Networks) error {
			s.trained.Add(1)
			return keep(ctx, nets)
		}
	}
	return s.Trainer.RunRound(ctx, in, progress)
}

func (s *spy) NewScorer(nets ml.Networks, needs strategy.Needs) (Scorer, error) {
	scorer, err := s.Trainer.NewScorer(nets, needs)
	return spyScorer{scorer, s}, err
}

type spyScorer struct {
	Scorer
	spy *spy
}

func (s spyScorer) Score(ctx context.Context, images nn.Images, progress func(int)) (ml.Scores, error) {
	n := int(s.spy.scored.Add(1)) - 1
	if s.spy.before != nil {
		if err := s.spy.before(ctx, n); err != nil {
			return ml.Scores{}, err
		}
	}
	return s.Scorer.Score(ctx, images, progress)
}

// items returns the round's items in rank order, as far as they come from its scores.
func (b *bundle) items(t *testing.T, id winnow.RoundID) []winnow.Item {
	t.Helper()
	items, _, err := b.store.Items(t.Context(), id, winnow.ItemFilter{}, winnow.Page{Limit: 200})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(items, func(a, b winnow.Item) int { return a.Rank - b.Rank })
	out := make([]winnow.Item, len(items))
	for i, item := range items {
		out[i] = winnow.Item{ImageID: item.ImageID, Rank: item.Rank, Slice: item.Slice, Scores: item.Scores}
	}
	if len(out) == 0 {
		t.Fatal("the query is empty")
	}
	return out
}

// alone is the query of one worker that nothing happens to. All bundles of a size have
// the same images and labels.
var alone struct {
	sync.Once
	items []winnow.Item
}

func undisturbed(t *testing.T) []winnow.Item {
	t.Helper()
	alone.Do(func() {
		b := newBundleOf(t, sharedPool)
		b.work(t, newSpy(t, nil), quick)
		alone.items = b.items(t, b.await(t, b.start(t).ID, winnow.RoundLabeling).ID)
	})
	return alone.items
}

// sameQuery holds a round's items against the undisturbed ones, to the bit.
func (b *bundle) sameQuery(t *testing.T, id winnow.RoundID) {
	t.Helper()
	if diff := cmp.Diff(undisturbed(t), b.items(t, id)); diff != "" {
		t.Errorf("the query (-undisturbed +got):\n%s", diff)
	}
	if left := query[int](t, b, `SELECT count(*) FROM score_chunks`); left[0] != 0 {
		t.Errorf("%d chunks are left behind", left[0])
	}
	if left := query[int](t, b, `SELECT count(*) FROM river_job WHERE kind = 'score' AND state = 'available'`); left[0] != 0 {
		t.Errorf("%d jobs are left behind", left[0])
	}
}

// long marks a test that trains and need not be run with the race detector, too.
func long(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("trains networks")
	}
}

// The same round, by one, two and four workers, gives what the pool in memory gives.
func TestWorkersShareTheScoring(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 4} {
		if testing.Short() && n != 2 {
			continue
		}
		t.Run(fmt.Sprintf("%d workers", n), func(t *testing.T) {
			t.Parallel()
			b := newBundleOf(t, sharedPool)
			// Each holds its first chunk until all have one.
			var entered atomic.Int32
			all := make(chan struct{})
			spies := make([]*spy, n)
			for i := range spies {
				spies[i] = newSpy(t, func(ctx context.Context, before int) error {
					if before > 0 {
						return nil
					}
					if int(entered.Add(1)) == n {
						close(all)
					}
					select {
					case <-all:
						return nil
					case <-ctx.Done():
						return ctx.Err()
					}
				})
				b.work(t, spies[i], quick)
			}
			round := b.await(t, b.start(t).ID, winnow.RoundLabeling)
			b.sameQuery(t, round.ID)
			var trained, scored int32
			for i, s := range spies {
				trained += s.trained.Load()
				scored += s.scored.Load()
				if s.scored.Load() == 0 {
					t.Errorf("worker %d scored nothing", i)
				}
			}
			if trained != 1 || scored != 5 {
				t.Errorf("trained %d times, scored %d chunks of 5", trained, scored)
			}
			if round.Metrics.PoolSize != sharedPool {
				t.Errorf("metrics %+v", round.Metrics)
			}
		})
	}
}

// Held in memory, as the simulation has it, the round is the same.
func TestThePoolInMemoryGivesTheSameQuery(t *testing.T) {
	t.Parallel()
	long(t)
	b := newBundleOf(t, sharedPool)
	be, err := backend.Open(backend.Default)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	b.work(t, inMemory{NewTrainer(be), be, t}, quick)
	b.sameQuery(t, b.await(t, b.start(t).ID, winnow.RoundLabeling).ID)
}

type inMemory struct {
	Trainer
	be *backend.Backend
	t  *testing.T
}

func (m inMemory) RunRound(ctx context.Context, in ml.RoundInput, progress func(winnow.Progress)) (*ml.RoundOutput, error) {
	in.Pool = ml.Hold(m.be, allOf(m.t, in.Pool))
	return m.Trainer.RunRound(ctx, in, progress)
}

// Environment of a worker process of a test.
const (
	workerURL   = "WINNOW_TEST_WORKER_URL"
	workerAfter = "WINNOW_TEST_WORKER_STOPS_AFTER"
)

// TestWorkerProcess is no test: it is the worker that other tests kill. It stands still
// before it scores its n-th chunk, and says so.
func TestWorkerProcess(t *testing.T) {
	url := os.Getenv(workerURL)
	if url == "" {
		t.Skip("this is the process that other tests start")
	}
	enqueue, err := NewEnqueue()
	if err != nil {
		t.Fatal(err)
	}
	enqueueScoring, err := NewEnqueueScoring()
	if err != nil {
		t.Fatal(err)
	}
	store, err := db.Open(t.Context(), url, db.Options{Enqueue: enqueue, EnqueueScoring: enqueueScoring})
	if err != nil {
		t.Fatal(err)
	}
	after := int(os.Getenv(workerAfter)[0] - '0')
	trainer := newSpy(t, func(_ context.Context, n int) error {
		if n == after {
			fmt.Println("standing still")
			select {}
		}
		return nil
	})
	runner, err := newRunner(store.Pool(), Options{
		Store: store, Trainer: trainer, Concurrency: 1, RoundTimeout: time.Hour, Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}, quick)
	if err != nil {
		t.Fatal(err)
	}
	t.Fatal(runner.Run(t.Context()))
}

// process starts a worker process, and returns functions that wait until it stands
// still, with a chunk claimed, and that kill it as no program can prevent.
func (b *bundle) process(t *testing.T, after int) (still, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWorkerProcess$", "-test.count=1")
	cmd.Env = append(os.Environ(), workerURL+"="+b.store.Pool().Config().ConnString(), fmt.Sprintf("%s=%d", workerAfter, after))
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	kill = func() {
		once.Do(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
	}
	t.Cleanup(kill)
	return func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "standing still") {
				go func() { _, _ = io.Copy(io.Discard, out) }()
				return
			}
		}
		t.Fatal("the worker process ended before it stood still")
	}, kill
}

// silence makes it long ago that any worker gave a sign of life. Those that live give
// another.
func (b *bundle) silence(t *testing.T) {
	t.Helper()
	for _, sql := range []string{
		`UPDATE score_chunks SET heartbeat_at = heartbeat_at - interval '2 hours' WHERE scores IS NULL`,
		`UPDATE rounds SET heartbeat_at = heartbeat_at - interval '2 hours'`,
	} {
		if _, err := b.store.Pool().Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
}

// chunks counts the chunks that are scored, or all.
func (b *bundle) chunks(t *testing.T, condition string) int {
	t.Helper()
	return query[int](t, b, `SELECT count(*) FROM score_chunks WHERE `+condition)[0]
}

// A worker that helps to score and is killed changes neither the scores nor the query.
func TestAHelperIsKilled(t *testing.T) {
	t.Parallel()
	b := newBundleOf(t, sharedPool)
	killed := make(chan struct{})
	lead := newSpy(t, func(ctx context.Context, n int) error {
		select {
		case <-killed:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	b.work(t, lead, quick)
	round := b.start(t)
	b.awaitRound(t, round.ID, "chunks", func(*winnow.Round) bool { return b.chunks(t, `true`) > 0 })
	still, kill := b.process(t, 1)
	still()
	kill()
	stored := b.chunks(t, `scores IS NOT NULL`)
	b.silence(t)
	close(killed)
	b.await(t, round.ID, winnow.RoundLabeling)
	b.sameQuery(t, round.ID)
	if n := int(lead.scored.Load()); n < 5-stored || stored == 0 {
		t.Errorf("the worker left scored %d chunks; the one that was killed had scored %d of 5", n, stored)
	}
}

// So does one that leads the round: what it trained and scored is not done again.
func TestALeadIsKilled(t *testing.T) {
	t.Parallel()
	long(t)
	b := newBundleOf(t, sharedPool)
	still, kill := b.process(t, 2)
	round := b.start(t)
	still()
	kill()
	stored := b.chunks(t, `scores IS NOT NULL`)
	b.silence(t)
	next := newSpy(t, nil)
	b.work(t, next, quick)
	after := b.await(t, round.ID, winnow.RoundLabeling)
	b.sameQuery(t, round.ID)
	// One more, if it helped the silent lead until it took the round over.
	if after.Attempt != 2 || next.trained.Load() != 0 || int(next.scored.Load()) > 5-stored+1 || stored == 0 {
		t.Errorf("attempt %d trained %d times and scored %d chunks; %d of 5 were there", after.Attempt, next.trained.Load(), next.scored.Load(), stored)
	}
}

// A worker that is slow, but lives, loses its chunk to another. Both score it, and it
// is one.
func TestAChunkIsScoredTwice(t *testing.T) {
	t.Parallel()
	long(t)
	b := newBundleOf(t, sharedPool)
	entered, release := make(chan struct{}), make(chan struct{})
	slow := newSpy(t, func(_ context.Context, n int) error {
		if n == 0 {
			close(entered)
			<-release
		}
		return nil
	})
	lead := newSpy(t, func(_ context.Context, n int) error {
		switch n {
		case 0:
			<-entered
		case 4:
			close(release) // the slow one's chunk: now both are at it
		}
		return nil
	})
	b.work(t, lead, quick)
	round := b.start(t)
	b.awaitRound(t, round.ID, "chunks", func(*winnow.Round) bool { return b.chunks(t, `true`) > 0 })
	silent := quick
	silent.heartbeat, silent.reap = time.Hour, time.Hour
	b.work(t, slow, silent)
	b.awaitRound(t, round.ID, "all chunks but one", func(*winnow.Round) bool { return b.chunks(t, `scores IS NULL`) == 1 })
	b.silence(t)
	b.await(t, round.ID, winnow.RoundLabeling)
	b.sameQuery(t, round.ID)
	if n := lead.scored.Load() + slow.scored.Load(); n < 6 {
		t.Errorf("%d chunks were scored, want one of the 5 twice", n)
	}
}

func TestCancelWhileScoring(t *testing.T) {
	t.Parallel()
	b := newBundleOf(t, sharedPool)
	entered := make(chan struct{}, 1)
	var cancelled atomic.Bool
	s := newSpy(t, func(ctx context.Context, n int) error {
		if n < 2 || cancelled.Load() {
			return nil
		}
		entered <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	b.work(t, s, quick)
	round := b.start(t)
	<-entered
	cancelled.Store(true)
	if _, err := b.store.CancelRound(t.Context(), b.admin.ID, b.project.ID, round.Number); err != nil {
		t.Fatal(err)
	}
	// Nothing has changed, so the networks and the chunks that are there serve again.
	if _, err := b.store.RetryRound(t.Context(), b.admin.ID, b.project.ID, round.Number); err != nil {
		t.Fatal(err)
	}
	b.await(t, round.ID, winnow.RoundLabeling)
	b.sameQuery(t, round.ID)
	if s.trained.Load() != 1 || s.scored.Load() > 7 {
		t.Errorf("trained %d times, scored %d chunks", s.trained.Load(), s.scored.Load())
	}
}

// What a retry works on may have changed: then nothing old is taken for it.
func TestRetryWithOtherImages(t *testing.T) {
	t.Parallel()
	long(t)
	b := newBundleOf(t, sharedPool)
	entered := make(chan struct{}, 1)
	var cancelled atomic.Bool
	s := newSpy(t, func(ctx context.Context, n int) error {
		if n < 2 || cancelled.Load() {
			return nil
		}
		entered <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	})
	stop := b.work(t, s, quick)
	round := b.start(t)
	<-entered
	stop()
	cancelled.Store(true)
	if _, err := b.store.CancelRound(t.Context(), b.admin.ID, b.project.ID, round.Number); err != nil {
		t.Fatal(err)
	}
	b.addImages(t, 30)
	if _, err := b.store.RetryRound(t.Context(), b.admin.ID, b.project.ID, round.Number); err != nil {
		t.Fatal(err)
	}
	again := newSpy(t, nil)
	b.work(t, again, quick)
	after := b.await(t, round.ID, winnow.RoundLabeling)
	if again.trained.Load() != 1 || again.scored.Load() != 5 || after.Metrics.PoolSize != sharedPool+30 {
		t.Errorf("trained %d times, scored %d chunks, metrics %+v", again.trained.Load(), again.scored.Load(), after.Metrics)
	}
}

// A helper that is told to stop gives its chunk and its job back at once.
func TestAHelperIsStopped(t *testing.T) {
	t.Parallel()
	b := newBundleOf(t, sharedPool)
	stopped := make(chan struct{})
	lead := newSpy(t, func(ctx context.Context, n int) error {
		select {
		case <-stopped:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	b.work(t, lead, quick) // in which no chunk ever goes stale
	round := b.start(t)
	b.awaitRound(t, round.ID, "chunks", func(*winnow.Round) bool { return b.chunks(t, `true`) > 0 })
	entered := make(chan struct{}, 9)
	stop := b.work(t, newSpy(t, func(ctx context.Context, n int) error {
		entered <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}), quick)
	<-entered
	stop()
	close(stopped)
	b.await(t, round.ID, winnow.RoundLabeling)
	b.sameQuery(t, round.ID)
}

// A helper that cannot score, for want of the networks, leaves it to others.
func TestAHelperWithoutNetworks(t *testing.T) {
	t.Parallel()
	long(t)
	b := newBundleOf(t, sharedPool)
	gone := make(chan struct{})
	lead := newSpy(t, func(ctx context.Context, n int) error {
		select {
		case <-gone:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	b.work(t, lead, quick)
	round := b.start(t)
	b.awaitRound(t, round.ID, "chunks", func(*winnow.Round) bool { return b.chunks(t, `true`) > 0 })
	if _, err := b.store.Pool().Exec(t.Context(), `DELETE FROM round_checkpoints`); err != nil {
		t.Fatal(err)
	}
	helper := newSpy(t, nil)
	b.work(t, helper, quick)
	b.awaitRound(t, round.ID, "a helper that fails", func(*winnow.Round) bool {
		return query[int](t, b, `SELECT count(*) FROM river_job WHERE kind = 'score' AND state = 'scheduled'`)[0] > 0
	})
	close(gone)
	b.await(t, round.ID, winnow.RoundLabeling)
	b.sameQuery(t, round.ID)
	if helper.scored.Load() != 0 {
		t.Errorf("the helper scored %d chunks by other networks", helper.scored.Load())
	}
}

// Chunks are in a table that a crash of Postgres empties.
func TestChunksAreLost(t *testing.T) {
	t.Parallel()
	long(t)
	b := newBundleOf(t, sharedPool)
	s := newSpy(t, func(ctx context.Context, n int) error {
		if n == 2 {
			_, err := b.store.Pool().Exec(ctx, `TRUNCATE score_chunks`)
			return err
		}
		return nil
	})
	p := quick
	p.chunk = 128
	b.work(t, s, p)
	b.sameQuery(t, b.await(t, b.start(t).ID, winnow.RoundLabeling).ID)
}

// A computation that hangs is given up, and so is its process.
func TestAHungComputation(t *testing.T) {
	t.Parallel()
	b := newBundleOf(t, sharedPool)
	release := make(chan struct{})
	hangs := newSpy(t, func(context.Context, int) error {
		<-release
		return nil
	})
	p := quick
	p.stall = 50 * time.Millisecond
	runner := b.runner(t, hangs, p)
	done := make(chan error, 1)
	go func() { done <- runner.Run(t.Context()) }()
	round := b.start(t)
	b.awaitRound(t, round.ID, "a chunk in work", func(*winnow.Round) bool { return hangs.scored.Load() > 0 })

	b.work(t, newSpy(t, nil), quick)
	b.awaitRound(t, round.ID, "a take-over", func(r *winnow.Round) bool {
		b.silence(t)
		return r.Attempt > 1
	})
	b.await(t, round.ID, winnow.RoundLabeling)
	b.sameQuery(t, round.ID)
	close(release)
	if err := <-done; !errors.Is(err, errHung) {
		t.Errorf("the worker ends with %v, want %v", err, errHung)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	w := newWatch(time.Hour)
	if err := w.err(); err != nil {
		t.Errorf("at once: %v", err)
	}
	w.last = time.Now().Add(-2 * time.Hour)
	if err := w.err(); !errors.Is(err, errHung) {
		t.Errorf("after two hours: %v", err)
	}
	w.touch() // it was only slow
	w.last = time.Now().Add(-3 * time.Hour)
	if err := w.err(); err != nil {
		t.Errorf("after three hours, where two were nothing: %v", err)
	}
}

func TestChunkSize(t *testing.T) {
	t.Parallel()
	for side, want := range map[int]int{8: 4096, 32: 4096, 64: 4096, 128: 1344, 256: 320} {
		if got := chunkSize(side, defaultPace.chunk); got != want {
			t.Errorf("%d images of %d pixels, want %d", got, side, want)
		}
	}
}

func TestQueuesOfBackends(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"go": "scores-go", "xla:cuda": "scores-xla-cuda", "onnx": "scores-onnx", "onnx:/usr/lib/libonnxruntime.so": "scores-onnx",
	} {
		if got := queueScores(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
