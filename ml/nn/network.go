package nn

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"golang.org/x/sync/errgroup"

	"winnow"
	"winnow/ml/backend"
)

// Network is a trained network: its shape, weights and running statistics, and the
// normalisation of its input. It is immutable and may be used by several goroutines.
type Network struct {
	Outputs, Width, InputSize int
	Mean, Std                 [3]float64

	weights, stats [][]float32 // in architecture's order
}

// Features is the number of features of an image.
func (n *Network) Features() int { return features(n.Width) }

// finite reports whether every weight and statistic is a number.
func (n *Network) finite() bool {
	for _, group := range [][][]float32{n.weights, n.stats} {
		for _, data := range group {
			for _, v := range data {
				if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
					return false
				}
			}
		}
	}
	return true
}

// How many images are scored at once: on a CPU, and on a device that works on as many
// side by side. It is the same however many there are to score, so that what a network
// says of an image does not depend on how a pool is cut.
const (
	inferBatch       = 64
	inferBatchDevice = 512
)

// Infer runs the network over the plain images, in their order. Progress, if not nil,
// is called after every batch, from one goroutine at a time. Errors:
// winnow.CodeInternal when the images are not of the network's size; ctx's error
// between batches.
func (n *Network) Infer(ctx context.Context, be *backend.Backend, images Images, progress func(done, total int)) (Output, error) {
	if images.N == 0 {
		return n.output(0), images.validate()
	}
	s, err := n.NewScorer(be)
	if err != nil {
		return Output{}, err
	}
	defer s.Close()
	return s.Infer(ctx, images, progress)
}

func (n *Network) output(images int) Output {
	out := Output{N: images, Outputs: n.Outputs, Features: n.Features()}
	out.Logits = make([]float32, out.N*out.Outputs)
	out.Feature = make([]float32, out.N*out.Features)
	return out
}

// Infer is that of the network, without making the graph anew each time.
func (s *Scorer) Infer(ctx context.Context, images Images, progress func(done, total int)) (Output, error) {
	if err := images.validate(); err != nil {
		return Output{}, err
	}
	if images.N > 0 && images.Size != s.net.InputSize {
		return Output{}, winnow.Errorf(winnow.CodeInternal, "The images are %d pixels a side, the network sees %d.", images.Size, s.net.InputSize)
	}
	out := s.net.output(images.N)

	// The pure-Go backend computes a batch on one core, more or less: score as many
	// batches at once as there are cores. A device gets a batch while it is at another.
	workers := 1
	switch {
	case s.kind == backend.Go:
		workers = runtime.GOMAXPROCS(0)
	case s.how.resident:
		workers = 2
	}
	var (
		next atomic.Int64
		mu   sync.Mutex
		done int
	)
	group, ctx := errgroup.WithContext(ctx)
	for range workers {
		group.Go(func() error {
			data := s.buffer()
			for {
				from := int(next.Add(1)-1) * s.batch
				if from >= images.N {
					return nil
				}
				if err := ctx.Err(); err != nil {
					return err
				}
				to := min(from+s.batch, images.N)
				if err := s.score(data, images, from, to, out); err != nil {
					return fmt.Errorf("score images %d to %d: %w", from, to-1, err)
				}
				mu.Lock()
				done += to - from
				if progress != nil {
					progress(done, images.N)
				}
				mu.Unlock()
			}
		})
	}
	if err := group.Wait(); err != nil {
		return Output{}, err
	}
	return out, nil
}

// Scorer is a network made ready to run on a backend: its graph for one batch size,
// with the weights at hand. It must be closed.
type Scorer struct {
	net    *Network
	kind   backend.Kind
	how    plan
	batch  int
	layout layout
	table  *normalizer
	exec   *graph.Exec
	state  []*tensors.Tensor // weights, then statistics; none when they are constants of the graph
}

// NewScorer makes the network ready to run on be.
func (n *Network) NewScorer(be *backend.Backend) (*Scorer, error) {
	how, batch := planFor(be), inferBatch
	if how.resident {
		batch = inferBatchDevice
	}
	s, err := n.newScorer(be, how, batch)
	if err != nil {
		return nil, fmt.Errorf("prepare scoring: %w", err)
	}
	return s, nil
}

func (n *Network) newScorer(be *backend.Backend, how plan, batch int) (*Scorer, error) {
	f := how.form
	s := &Scorer{net: n, kind: be.Kind(), how: how, batch: batch, layout: f.layout(batch, inputChannels, n.InputSize), table: newNormalizer(n.Mean, n.Std)}
	weights, stats := architecture(n.Outputs, n.Width)
	var state []*tensors.Tensor
	for i, spec := range weights {
		state = append(state, tensors.FromFlatDataAndDimensions(n.weights[i], spec.dims...))
	}
	for i, spec := range stats {
		state = append(state, tensors.FromFlatDataAndDimensions(n.stats[i], spec.dims...))
	}
	if !how.constants {
		s.state = state
	}
	var err error
	s.exec, err = graph.NewExec(be.Compute(), func(in []*graph.Node) []*graph.Node {
		p := &pass{form: f, weights: map[string]*graph.Node{}, stats: map[string]*graph.Node{}}
		held := slices.Clip(in[:len(in)-1])
		if how.constants {
			for _, t := range state {
				held = append(held, graph.ConstTensor(in[0].Graph(), t))
			}
		}
		for i, spec := range weights {
			p.weights[spec.name] = held[i]
		}
		for i, spec := range stats {
			p.stats[spec.name] = held[len(weights)+i]
		}
		images := in[len(in)-1]
		if how.resident {
			rgb := graph.Reshape(graph.ConvertDType(images, dtypes.Float32), batch, n.InputSize, n.InputSize, inputChannels)
			images = normalise(rgb, n.Mean, n.Std)
		}
		pooled := p.network(act{Node: images, n: batch, size: n.InputSize})
		return []*graph.Node{linear(pooled.Node, p.weights["linear.weight"], p.weights["linear.bias"]), pooled.Node}
	})
	if err != nil {
		return nil, err
	}
	// Put the weights on the device here: tensors may be read, but not moved, by
	// several goroutines at once.
	err = safely(func() error {
		for _, t := range s.state {
			t.MustMaterializeOnDevice(be.Compute(), true, 0)
		}
		return nil
	})
	return s, err
}

// Close frees what the scorer holds on the backend.
func (s *Scorer) Close() {
	s.exec.Finalize()
	finalize(s.state)
}

// hostBatch is where a worker puts a batch together: its values, or where the device
// normalises its bytes.
type hostBatch struct {
	values []float32
	bytes  []byte
}

func (s *Scorer) buffer() *hostBatch {
	if s.how.resident {
		return &hostBatch{bytes: make([]byte, s.batch*s.net.InputSize*s.net.InputSize*inputChannels)}
	}
	return &hostBatch{values: make([]float32, s.layout.size())}
}

// tensor is the batch of images from..to-1. A short one is filled up with what the
// buffer holds, so that one graph does for all.
func (s *Scorer) tensor(b *hostBatch, images Images, from, to int) *tensors.Tensor {
	if s.how.resident {
		image := len(b.bytes) / s.batch
		copy(b.bytes, images.RGB[from*image:to*image])
		return tensors.FromFlatDataAndDimensions(b.bytes, len(b.bytes))
	}
	for i := from; i < to; i++ {
		s.table.place(b.values, s.layout, i-from, images.At(i), s.net.InputSize, view{})
	}
	return tensors.FromFlatDataAndDimensions(b.values, s.layout.dims...)
}

// score runs images from..to-1, at most a batch, and puts what the network says of
// them in their place in out.
func (s *Scorer) score(data *hostBatch, images Images, from, to int, out Output) error {
	return safely(func() error {
		args := make([]any, 0, len(s.state)+1)
		for _, t := range s.state {
			args = append(args, t)
		}
		batch := s.tensor(data, images, from, to)
		defer finalize([]*tensors.Tensor{batch})
		results, err := s.exec.Call(append(args, batch)...)
		if err != nil {
			return err
		}
		logits, feature := out.Logits[from*out.Outputs:to*out.Outputs], out.Feature[from*out.Features:to*out.Features]
		tensors.MustConstFlatData(results[0], func(flat []float32) { copy(logits, flat) })
		tensors.MustConstFlatData(results[1], func(flat []float32) { copy(feature, flat) })
		for _, r := range results {
			if err := r.FinalizeAll(); err != nil {
				return err
			}
		}
		return nil
	})
}
