package ml

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"winnow"
	"winnow/ml/backend"
	"winnow/ml/eaoa"
	"winnow/ml/nn"
	"winnow/ml/strategy"
)

// Pool is the unlabeled images of a round. There may be more of them than memory holds,
// and others may help to score them.
type Pool interface {
	// Len is the number of images.
	Len() int
	// Images returns the images at some indices, in that order.
	Images(ctx context.Context, at []int) (nn.Images, error)
	// Score runs the networks over all images and returns, of what they say, what is
	// needed. Progress is told how many images are scored, from one goroutine at a
	// time.
	Score(ctx context.Context, nets Networks, needs strategy.Needs, progress func(scored int)) (Scores, error)
}

// Networks are what a round trains. One is nil when the strategy does not need it, or
// when there was nothing to train it on.
type Networks struct{ Detector, Classifier *nn.Network }

// Scores are what the networks say of some images, row by row. What is not needed has
// no columns and no values.
type Scores struct {
	DetectorLogits     eaoa.Matrix // N x (C+1)
	DetectorFeatures   eaoa.Matrix // N x d
	ClassifierLogits   eaoa.Matrix // N x C
	ClassifierFeatures eaoa.Matrix // N x d
}

// NewScores makes room for the scores of rows images.
func (n Networks) NewScores(rows int, needs strategy.Needs) Scores {
	matrix := func(needed bool, cols func() int) eaoa.Matrix {
		if !needed {
			return eaoa.Matrix{}
		}
		return eaoa.Matrix{Rows: rows, Cols: cols(), Data: make([]float32, rows*cols())}
	}
	return Scores{
		DetectorLogits:     matrix(needs.DetectorLogits, func() int { return n.Detector.Outputs }),
		DetectorFeatures:   matrix(needs.DetectorFeatures, func() int { return n.Detector.Features() }),
		ClassifierLogits:   matrix(needs.ClassifierLogits, func() int { return n.Classifier.Outputs }),
		ClassifierFeatures: matrix(needs.ClassifierFeatures, func() int { return n.Classifier.Features() }),
	}
}

// parts are the matrices in the order in which they are written.
func (s *Scores) parts() [4]*eaoa.Matrix {
	return [4]*eaoa.Matrix{&s.DetectorLogits, &s.DetectorFeatures, &s.ClassifierLogits, &s.ClassifierFeatures}
}

// Rows are the scores of the images from..to-1; they share s's memory.
func (s Scores) Rows(from, to int) Scores {
	for _, m := range s.parts() {
		if m.Cols > 0 {
			m.Rows, m.Data = to-from, m.Data[from*m.Cols:to*m.Cols]
		}
	}
	return s
}

// Set copies the scores of as many images.
func (s Scores) Set(from Scores) {
	to, parts := s.parts(), from.parts()
	for i, m := range parts {
		copy(to[i].Data, m.Data)
	}
}

// MarshalBinary writes the values, matrix after matrix, as little-endian float32: all
// their bits, so that scores which were stored give the same query.
func (s Scores) MarshalBinary() ([]byte, error) {
	size := 0
	for _, m := range s.parts() {
		size += 4 * len(m.Data)
	}
	out := make([]byte, 0, size)
	for _, m := range s.parts() {
		for _, v := range m.Data {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(v))
		}
	}
	return out, nil
}

// UnmarshalBinary fills scores of the same shape with what MarshalBinary wrote.
func (s Scores) UnmarshalBinary(data []byte) error {
	size := 0
	for _, m := range s.parts() {
		size += 4 * len(m.Data)
	}
	if len(data) != size {
		return winnow.Errorf(winnow.CodeInternal, "%d bytes of scores where %d are expected.", len(data), size)
	}
	for _, m := range s.parts() {
		for i := range m.Data {
			m.Data[i] = math.Float32frombits(binary.LittleEndian.Uint32(data))
			data = data[4:]
		}
	}
	return nil
}

// Scorer is a round's networks made ready to score images. It must be closed.
type Scorer struct {
	nets                 Networks
	needs                strategy.Needs
	detector, classifier *nn.Scorer // nil unless needed
}

// NewScorer makes those networks ready that are needed.
func NewScorer(be *backend.Backend, nets Networks, needs strategy.Needs) (*Scorer, error) {
	s := &Scorer{nets: nets, needs: needs}
	for _, n := range []struct {
		name   string
		needed bool
		net    *nn.Network
		into   **nn.Scorer
	}{
		{"detector", needs.Detector(), nets.Detector, &s.detector},
		{"classifier", needs.Classifier(), nets.Classifier, &s.classifier},
	} {
		if !n.needed {
			continue
		}
		var err error
		if *n.into, err = n.net.NewScorer(be); err != nil {
			s.Close()
			return nil, fmt.Errorf("score with the %s: %w", n.name, err)
		}
	}
	return s, nil
}

// Close frees what the networks hold on the backend.
func (s *Scorer) Close() {
	for _, n := range []*nn.Scorer{s.detector, s.classifier} {
		if n != nil {
			n.Close()
		}
	}
}

// Score scores images. The outcome for an image does not depend on the others, but for
// the last bits: its place in a batch of 64 may matter to them. Progress, if not nil,
// is told how many images are scored, by both networks on average.
func (s *Scorer) Score(ctx context.Context, images nn.Images, progress func(scored int)) (Scores, error) {
	out := s.nets.NewScores(images.N, s.needs)
	ready, before := 0, 0
	for _, n := range []*nn.Scorer{s.detector, s.classifier} {
		if n != nil {
			ready++
		}
	}
	for _, n := range []struct {
		name             string
		net              *nn.Scorer
		logits, features *eaoa.Matrix
	}{
		{"detector", s.detector, &out.DetectorLogits, &out.DetectorFeatures},
		{"classifier", s.classifier, &out.ClassifierLogits, &out.ClassifierFeatures},
	} {
		if n.net == nil {
			continue
		}
		o, err := n.net.Infer(ctx, images, func(done, _ int) {
			if progress != nil {
				progress((before + done) / ready)
			}
		})
		if err != nil {
			return Scores{}, fmt.Errorf("score with the %s: %w", n.name, err)
		}
		before += images.N
		if n.logits.Cols > 0 {
			n.logits.Data = o.Logits
		}
		if n.features.Cols > 0 {
			n.features.Data = o.Feature
		}
	}
	return out, nil
}

// held is a pool in memory.
type held struct {
	be     *backend.Backend
	images nn.Images
}

// Hold makes a pool of images in memory, scored on be.
func Hold(be *backend.Backend, images nn.Images) Pool { return held{be, images} }

func (h held) Len() int { return h.images.N }

func (h held) Images(_ context.Context, at []int) (nn.Images, error) {
	out := nn.Images{N: len(at), Size: h.images.Size}
	for _, i := range at {
		out.RGB = append(out.RGB, h.images.At(i)...)
	}
	return out, nil
}

func (h held) Score(ctx context.Context, nets Networks, needs strategy.Needs, progress func(scored int)) (Scores, error) {
	s, err := NewScorer(h.be, nets, needs)
	if err != nil {
		return Scores{}, err
	}
	defer s.Close()
	return s.Score(ctx, h.images, progress)
}

const (
	// sampleSize is how many images of a pool its mean and deviation are taken from: of
	// smaller pools all, of larger ones so many, evenly spread. By then the mean is
	// known to a thousandth.
	sampleSize = 1 << 16
	// sampleRead is how many of them are read at a time.
	sampleRead = 4096
)

// meanStd is the mean and deviation of the pool's channels.
func meanStd(ctx context.Context, pool Pool) (mean, std [3]float64, err error) {
	var h nn.Histogram
	n := min(pool.Len(), sampleSize)
	for from := 0; from < n; from += sampleRead {
		at := make([]int, min(sampleRead, n-from))
		for i := range at {
			at[i] = (from + i) * pool.Len() / n
		}
		images, err := pool.Images(ctx, at)
		if err != nil {
			return mean, std, fmt.Errorf("read images of the pool: %w", err)
		}
		h.Add(images)
	}
	mean, std = h.MeanStd()
	return mean, std, nil
}
