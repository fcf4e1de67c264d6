package jobs

import (
	"context"
	"slices"
	"time"

	"winnow"
	"winnow/ml"
	"winnow/ml/nn"
	"winnow/ml/strategy"
)

const (
	// chunkBytes is how many bytes of pixels a chunk has at most.
	chunkBytes = 64 << 20
	// chunkUnit divides the images of a chunk: a network's batch, so that every image
	// has the same place in one, whether the pool is cut or not.
	chunkUnit = 64
)

// chunkSize is how many images of a side a chunk has: at most most, a few seconds of
// work.
func chunkSize(side, most int) int {
	n := min(most, chunkBytes/(side*side*3))
	return max(n/chunkUnit, 1) * chunkUnit
}

// pool is a round's pool in the store. Its pixels are read as they are needed, and its
// scoring is shared with all workers of the backend that have time.
type pool struct {
	scoring *scoring
	round   *winnow.Round
	ids     []winnow.ImageID
}

func (p *pool) Len() int { return len(p.ids) }

func (p *pool) Images(ctx context.Context, at []int) (nn.Images, error) {
	ids := make([]winnow.ImageID, len(at))
	for i, index := range at {
		ids[i] = p.ids[index]
	}
	return p.scoring.reader.pixels(ctx, ids, p.round.Settings.InputSize)
}

// Score leads the scoring: it cuts the pool into chunks, works on them like everybody
// else, takes over those whose worker is lost, and gathers what all have stored.
func (p *pool) Score(ctx context.Context, nets ml.Networks, needs strategy.Needs, progress func(scored int)) (ml.Scores, error) {
	s := p.scoring
	defer s.forget()
	checkpoints, err := marshalNetworks(nets)
	if err != nil {
		return ml.Scores{}, err
	}
	l := lead{
		pool: p, progress: progress, out: nets.NewScores(len(p.ids), needs),
		model: model{
			digest: modelDigest(checkpoints, needs), needs: needs,
			load: func(context.Context) (ml.Networks, error) { return nets, nil },
		},
		chunks: slices.Collect(slices.Chunk(p.ids, chunkSize(p.round.Settings.InputSize, s.pace.chunk))),
	}
	l.have = make([]bool, len(l.chunks))
	if err := l.work(ctx); err != nil {
		return ml.Scores{}, err
	}
	return l.out, l.gather(ctx)
}

// lead is the scoring of one pool, by the worker that has its round.
type lead struct {
	*pool
	model    model
	chunks   [][]winnow.ImageID
	progress func(scored int)
	out      ml.Scores
	have     []bool // chunks that are in out
}

// work returns when every chunk is scored and stored, by whomever.
func (l *lead) work(ctx context.Context) error {
	s := l.scoring
	planned := false
	for {
		var now winnow.Scoring
		err := l.persist(ctx, func() (err error) {
			now, err = s.chunks.Scoring(ctx, l.round.ID)
			return err
		})
		if err != nil {
			return err
		}
		// The store may lose the chunks in a crash: they are not worth a log of their own.
		if !planned || now.Chunks != len(l.chunks) {
			if err := l.persist(ctx, func() error {
				return s.chunks.PlanChunks(ctx, l.round.ID, l.round.Attempt, l.model.digest, l.chunks)
			}); err != nil {
				return err
			}
			planned = true
			continue
		}
		l.progress(now.Images)
		if now.Scored == now.Chunks {
			return nil
		}
		var c *winnow.Chunk
		err = l.persist(ctx, func() (err error) {
			c, err = s.chunks.ClaimChunk(ctx, l.round.ID, l.round.Attempt, s.pace.stale)
			return err
		})
		if err != nil {
			return err
		}
		if c == nil { // others have what is left
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(s.pace.poll):
			}
			continue
		}
		if err := l.score(ctx, c, now.Images); err != nil {
			return err
		}
	}
}

// score scores one chunk. That it was taken away meanwhile is no error: if the round
// was, its reporter says so.
func (l *lead) score(ctx context.Context, c *winnow.Chunk, before int) error {
	scores, err := l.scoring.score(ctx, c, l.model, l.round.Settings.InputSize, func(n int) { l.progress(before + n) })
	if asLost(err) != nil && ctx.Err() == nil {
		return nil
	}
	if err != nil {
		return err
	}
	l.rows(c.Number).Set(scores)
	l.have[c.Number] = true
	return nil
}

// gather reads the chunks that others scored.
func (l *lead) gather(ctx context.Context) error {
	for number, have := range l.have {
		if have {
			continue
		}
		var data []byte
		err := l.persist(ctx, func() (err error) {
			data, err = l.scoring.chunks.ChunkScores(ctx, l.round.ID, number)
			return err
		})
		if err != nil {
			return err
		}
		if err := l.rows(number).UnmarshalBinary(data); err != nil {
			return err
		}
	}
	return nil
}

// rows are the places of a chunk's scores.
func (l *lead) rows(number int) ml.Scores {
	from := number * len(l.chunks[0])
	return l.out.Rows(from, from+len(l.chunks[number]))
}

func (l *lead) persist(ctx context.Context, do func() error) error {
	return persist(ctx, l.scoring.pace, l.scoring.log, do)
}
