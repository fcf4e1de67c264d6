package db_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"winnow"
	"winnow/db"
)

// scoring is a round in work whose pool of ten is cut into chunks of four.
type scoring struct {
	*bench
	round *winnow.Round
	pool  []winnow.ImageID
	model []byte
}

func newScoring(t *testing.T) *scoring {
	t.Helper()
	s := &scoring{bench: newBench(t, 10, nil), model: digest(1)}
	ctx := t.Context()
	var err error
	if s.round, err = s.StartRound(ctx, s.admin.ID, s.project); err != nil {
		t.Fatal(err)
	}
	if s.round, err = s.BeginRound(ctx, s.round.ID, 1, "onnx"); err != nil {
		t.Fatal(err)
	}
	if s.pool, err = s.PoolSet(ctx, s.project, math.MaxInt64, math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	s.plan(1, s.model)
	return s
}

func digest(b byte) []byte { return slices.Repeat([]byte{b}, 32) }

func (s *scoring) plan(attempt int, model []byte) {
	s.t.Helper()
	if err := s.PlanChunks(s.t.Context(), s.round.ID, attempt, model, slices.Collect(slices.Chunk(s.pool, 4))); err != nil {
		s.t.Fatal(err)
	}
}

// take claims a chunk; a claim is good for an hour.
func (s *scoring) take(attempt int) *winnow.Chunk {
	s.t.Helper()
	c, err := s.ClaimChunk(s.t.Context(), s.round.ID, attempt, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *scoring) store(c *winnow.Chunk, scores string) {
	s.t.Helper()
	if err := s.StoreChunk(s.t.Context(), c, []byte(scores)); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scoring) exec(sql string) {
	s.t.Helper()
	if _, err := s.Pool().Exec(s.t.Context(), sql); err != nil {
		s.t.Fatal(err)
	}
}

func (s *scoring) is(want winnow.Scoring) {
	s.t.Helper()
	got, err := s.Scoring(s.t.Context(), s.round.ID)
	if err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		s.t.Errorf("scoring (-want +got):\n%s", diff)
	}
}

func TestChunksAreScoredOnce(t *testing.T) {
	t.Parallel()
	s := newScoring(t)
	s.is(winnow.Scoring{Chunks: 3})
	for n := range 3 {
		c := s.take(1)
		want := &winnow.Chunk{Round: s.round.ID, Attempt: 1, Number: n, Claim: c.Claim, Model: s.model, Images: s.pool[4*n : min(4*n+4, 10)]}
		if diff := cmp.Diff(want, c); diff != "" {
			t.Errorf("chunk %d (-want +got):\n%s", n, diff)
		}
		if err := s.BeatChunk(t.Context(), c); err != nil {
			t.Error(err)
		}
		if n < 2 {
			s.store(c, fmt.Sprint("scores ", n))
		}
	}
	s.is(winnow.Scoring{Chunks: 3, Scored: 2, Images: 8})
	if c := s.take(1); c != nil {
		t.Errorf("chunk %d is given twice", c.Number)
	}
	if got, err := s.ChunkScores(t.Context(), s.round.ID, 1); err != nil || string(got) != "scores 1" {
		t.Errorf("chunk 1 holds %q, %v", got, err)
	}
	if _, err := s.ChunkScores(t.Context(), s.round.ID, 2); winnow.ErrorCode(err) != winnow.CodeNotFound {
		t.Errorf("a chunk that is not scored: %v", err)
	}
}

// A chunk that its worker gives back, or is silent about, is somebody else's; what the
// first brings then is the same, and changes nothing.
func TestAChunkChangesHands(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newScoring(t)
	first := s.take(1)
	if err := s.ReleaseChunk(ctx, first); err != nil {
		t.Fatal(err)
	}
	second := s.take(1)
	if second.Number != first.Number || second.TakenOver {
		t.Fatalf("chunk %d, taken over: %v", second.Number, second.TakenOver)
	}
	if err := s.BeatChunk(ctx, first); winnow.ErrorCode(err) != winnow.CodeConflict {
		t.Errorf("a chunk that was given back is kept: %v", err)
	}
	if err := s.ReleaseChunk(ctx, first); err != nil { // must not free the second's
		t.Error(err)
	}
	s.exec(`UPDATE score_chunks SET heartbeat_at = heartbeat_at - interval '2 hours' WHERE heartbeat_at IS NOT NULL`)
	third := s.take(1)
	if third.Number != first.Number || !third.TakenOver {
		t.Fatalf("chunk %d, taken over: %v", third.Number, third.TakenOver)
	}
	s.store(third, "scores")
	s.store(second, "late")
	if got, err := s.ChunkScores(ctx, s.round.ID, third.Number); err != nil || string(got) != "scores" {
		t.Errorf("the chunk holds %q, %v", got, err)
	}
	s.is(winnow.Scoring{Chunks: 3, Scored: 1, Images: 4})
}

func TestChunksOfALostAttempt(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, tt := range map[string]struct {
		lose func(s *scoring) error
		code winnow.Code
	}{
		"cancelled": {func(s *scoring) error {
			_, err := s.CancelRound(ctx, s.admin.ID, s.project, s.round.Number)
			return err
		}, winnow.CodeCanceled},
		"failed":    {func(s *scoring) error { return s.FailRound(ctx, s.round.ID, 1, "broken") }, winnow.CodeConflict},
		"gave back": {func(s *scoring) error { return s.RequeueRound(ctx, s.round.ID, 1) }, winnow.CodeConflict},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScoring(t)
			c := s.take(1)
			if err := tt.lose(s); err != nil {
				t.Fatal(err)
			}
			if c := s.take(1); c != nil {
				t.Errorf("chunk %d is given to an attempt that is over", c.Number)
			}
			for what, err := range map[string]error{
				"beat": s.BeatChunk(ctx, c), "store": s.StoreChunk(ctx, c, []byte("scores")),
				"plan":     s.PlanChunks(ctx, s.round.ID, 1, s.model, [][]winnow.ImageID{s.pool}),
				"networks": s.SaveCheckpoints(ctx, s.round.ID, 1, winnow.Checkpoints{}),
			} {
				if winnow.ErrorCode(err) != tt.code {
					t.Errorf("%s: %v, want %s", what, err, tt.code)
				}
			}
			s.is(winnow.Scoring{Chunks: 3})
		})
	}
}

// The next attempt finds the scores of the same images by the same model, and nothing
// else.
func TestPlanKeepsWhatIsThere(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newScoring(t)
	s.store(s.take(1), "scores 0")
	s.store(s.take(1), "scores 1")
	open := s.take(1)
	if err := s.RequeueRound(ctx, s.round.ID, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := s.BeginRound(ctx, s.round.ID, 2, "onnx"); err != nil {
		t.Fatal(err)
	}
	s.plan(2, s.model)
	s.is(winnow.Scoring{Chunks: 3, Scored: 2, Images: 8})
	if c := s.take(2); c == nil || c.Number != open.Number {
		t.Fatalf("chunk %+v, want the one that was in work", c)
	}

	s.pool[5]++ // another image in the second chunk, none any more in the third
	s.pool = s.pool[:8]
	s.plan(2, s.model)
	s.is(winnow.Scoring{Chunks: 2, Scored: 1, Images: 4})
	s.plan(2, digest(2))
	s.is(winnow.Scoring{Chunks: 2})
}

// Scores are gone when nobody can need them any more.
func TestScoresAreForgotten(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newScoring(t)
	s.store(s.take(1), "scores")
	if _, err := s.CancelRound(ctx, s.admin.ID, s.project, s.round.Number); err != nil {
		t.Fatal(err)
	}
	s.is(winnow.Scoring{Chunks: 3, Scored: 1, Images: 4}) // for a retry
	next, err := s.StartRound(ctx, s.admin.ID, s.project)
	if err != nil {
		t.Fatal(err)
	}
	s.is(winnow.Scoring{})
	if s.round, err = s.BeginRound(ctx, next.ID, 1, "onnx"); err != nil {
		t.Fatal(err)
	}
	s.plan(1, s.model)
	if err := s.OpenLabeling(ctx, next.ID, 1, []winnow.Item{{ImageID: s.pool[0], Rank: 1}}, winnow.Metrics{}, false); err != nil {
		t.Fatal(err)
	}
	s.is(winnow.Scoring{})
}

func TestCheckpoints(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newScoring(t)
	if got, err := s.Checkpoints(ctx, s.round.ID); err != nil || len(got.Networks) != 0 || got.Training != nil {
		t.Fatalf("before training: %+v, %v", got, err)
	}
	for _, want := range []winnow.Checkpoints{
		{Training: digest(1), Networks: map[string][]byte{"detector": {1, 2}, "classifier": {3}}},
		{Training: digest(2), Networks: map[string][]byte{"classifier": {4}}},
	} {
		if err := s.SaveCheckpoints(ctx, s.round.ID, 1, want); err != nil {
			t.Fatal(err)
		}
		got, err := s.Checkpoints(ctx, s.round.ID)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("networks (-want +got):\n%s", diff)
		}
	}
}

// A job for every chunk but the planner's own, for workers of the round's backend.
func TestPlanQueuesJobs(t *testing.T) {
	t.Parallel()
	s := newScoring(t)
	var jobs []string
	queued, err := db.Open(t.Context(), s.Pool().Config().ConnString(), db.Options{
		EnqueueScoring: func(_ context.Context, _ pgx.Tx, round winnow.RoundID, attempt int, backend string, n int) error {
			jobs = append(jobs, fmt.Sprintf("%d/%d %s %d", round, attempt, backend, n))
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(queued.Close)
	s.Store = queued
	s.plan(1, s.model)
	s.store(s.take(1), "scores")
	s.plan(1, s.model)
	s.store(s.take(1), "scores")
	s.plan(1, s.model)
	want := []string{fmt.Sprintf("%d/1 onnx 2", s.round.ID), fmt.Sprintf("%d/1 onnx 1", s.round.ID)}
	if diff := cmp.Diff(want, jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

// Many workers at once never have the same chunk.
func TestChunksAreClaimedOnceByMany(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := newScoring(t)
	if err := s.PlanChunks(ctx, s.round.ID, 1, s.model, slices.Collect(slices.Chunk(s.pool, 1))); err != nil {
		t.Fatal(err)
	}
	var (
		mu    sync.Mutex
		taken []int
		wg    sync.WaitGroup
	)
	for range 4 {
		wg.Go(func() {
			for {
				c, err := s.ClaimChunk(ctx, s.round.ID, 1, time.Hour)
				if err != nil {
					t.Error(err)
				}
				if c == nil {
					return
				}
				mu.Lock()
				taken = append(taken, c.Number)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	slices.Sort(taken)
	if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, taken); diff != "" {
		t.Errorf("chunks (-want +got):\n%s", diff)
	}
}
