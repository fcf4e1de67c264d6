package jobs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"winnow"
	"winnow/ml"
	"winnow/ml/strategy"
)

// Chunks is what a worker needs of the store to share the scoring of a pool.
type Chunks interface {
	PlanChunks(ctx context.Context, id winnow.RoundID, attempt int, model []byte, chunks [][]winnow.ImageID) error
	ClaimChunk(ctx context.Context, id winnow.RoundID, attempt int, stale time.Duration) (*winnow.Chunk, error)
	BeatChunk(ctx context.Context, c *winnow.Chunk) error
	StoreChunk(ctx context.Context, c *winnow.Chunk, scores []byte) error
	ReleaseChunk(ctx context.Context, c *winnow.Chunk) error
	Scoring(ctx context.Context, id winnow.RoundID) (winnow.Scoring, error)
	ChunkScores(ctx context.Context, id winnow.RoundID, number int) ([]byte, error)
}

// scoring scores chunks, of the rounds that this process leads and of those that it
// helps with, one at a time: one fills the machine. The next is read meanwhile.
type scoring struct {
	chunks   Chunks
	networks Networks
	reader   *reader
	trainer  Trainer
	pace     pace
	hung     func(error)
	log      *slog.Logger

	gate chan struct{} // has room for who computes
	// Behind the gate: the networks that were used last, made ready.
	model  []byte
	scorer Scorer
}

// model is what scores the chunks of a round.
type model struct {
	digest []byte
	needs  strategy.Needs
	load   func(ctx context.Context) (ml.Networks, error)
}

// stored is the model of a round that another worker trained.
func (s *scoring) stored(round *winnow.Round, digest []byte) (model, error) {
	chosen, err := strategy.ByName(round.Strategy)
	if err != nil {
		return model{}, err
	}
	m := model{digest: digest, needs: chosen.Needs()}
	m.load = func(ctx context.Context) (ml.Networks, error) {
		c, err := s.networks.Checkpoints(ctx, round.ID)
		if err != nil {
			return ml.Networks{}, err
		}
		if !bytes.Equal(modelDigest(c.Networks, m.needs), digest) {
			return ml.Networks{}, fmt.Errorf("the networks of round %d that are stored are not those that its pool is scored by", round.ID)
		}
		return unmarshalNetworks(c.Networks)
	}
	return m, nil
}

// score scores a chunk that was claimed and stores the scores, while it keeps the
// claim alive. If it cannot, it gives the chunk back. Its error is the store's answer
// where the chunk is no longer this worker's.
func (s *scoring) score(ctx context.Context, c *winnow.Chunk, m model, size int, progress func(scored int)) (scores ml.Scores, err error) {
	if c.TakenOver {
		s.log.Warn("taking over a chunk whose worker was lost", "round_id", c.Round, "chunk", c.Number)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	watch := newWatch(s.pace.stall)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.beat(ctx, c, watch, cancel)
	}()
	defer func() {
		if cause := context.Cause(ctx); err != nil && cause != nil {
			err = cause
		}
		cancel(nil)
		<-stopped
		if err != nil && asLost(err) == nil {
			s.release(ctx, c)
		}
	}()

	images, err := s.reader.pixels(ctx, c.Images, size)
	if err != nil {
		return ml.Scores{}, err
	}
	select {
	case s.gate <- struct{}{}:
	case <-ctx.Done():
		return ml.Scores{}, ctx.Err()
	}
	watch.touch()
	scores, err = func() (ml.Scores, error) {
		defer func() { <-s.gate }()
		if err := s.ready(ctx, m); err != nil {
			return ml.Scores{}, err
		}
		return s.scorer.Score(ctx, images, func(n int) {
			watch.touch()
			progress(n)
		})
	}()
	if err != nil {
		return ml.Scores{}, err
	}
	data, err := scores.MarshalBinary()
	if err != nil {
		return ml.Scores{}, err
	}
	return scores, persist(ctx, s.pace, s.log, func() error { return s.chunks.StoreChunk(ctx, c, data) })
}

// beat keeps a claim alive until ctx ends. It cancels the work with the store's
// answer when the chunk is no longer this worker's, and lets the chunk go when the
// computation hangs.
func (s *scoring) beat(ctx context.Context, c *winnow.Chunk, watch *watch, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(s.pace.heartbeat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := watch.err(); err != nil {
			cancel(err)
			s.hung(err)
			return
		}
		err := s.chunks.BeatChunk(ctx, c)
		if lost := asLost(err); lost != nil {
			cancel(lost)
			return
		}
		if err != nil && ctx.Err() == nil {
			s.log.Warn("cannot keep a chunk; trying again", "error", err)
		}
	}
}

// release gives a chunk back; should that fail, the claim goes stale.
func (s *scoring) release(ctx context.Context, c *winnow.Chunk) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if err := s.chunks.ReleaseChunk(ctx, c); err != nil {
		s.log.Warn("cannot give a chunk back", "error", err)
	}
}

// ready makes the model's networks ready, unless they are. The caller has the gate.
func (s *scoring) ready(ctx context.Context, m model) error {
	if s.scorer != nil && bytes.Equal(s.model, m.digest) {
		return nil
	}
	s.close()
	nets, err := m.load(ctx)
	if err != nil {
		return err
	}
	if s.scorer, err = s.trainer.NewScorer(nets, m.needs); err != nil {
		return err
	}
	s.model = m.digest
	return nil
}

func (s *scoring) close() {
	if s.scorer != nil {
		s.scorer.Close()
		s.scorer, s.model = nil, nil
	}
}

// forget frees the networks that are ready, unless they are in use.
func (s *scoring) forget() {
	select {
	case s.gate <- struct{}{}:
		s.close()
		<-s.gate
	default:
	}
}

// errHung is a computation that does not go on. It cannot be stopped, and what it
// holds of the backend is lost with it.
var errHung = errors.New("the computation hangs")
