package nn

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/support/exceptions"

	"winnow/ml/backend"
)

// trainer holds the state of a training on the device and the graphs of a step, one
// for each batch size.
type trainer struct {
	be       compute.Backend
	form     form
	cfg      Config
	weights  []tensorSpec
	stats    []tensorSpec
	state    []*tensors.Tensor // see the constants below
	execStep *graph.Exec
}

// The state is three vectors, each with the architecture's tensors one after the other:
// a step then has few inputs and outputs, and updates all weights in a handful of
// operations.
const (
	stateWeights = iota
	stateVelocities
	stateStats
	stateLen
)

// newTrainer puts the weights and statistics, in the architecture's order, on the
// device.
func newTrainer(be *backend.Backend, cfg Config, weights, stats [][]float32) (*trainer, error) {
	t := &trainer{be: be.Compute(), form: formFor(be), cfg: cfg}
	t.weights, t.stats = architecture(cfg.Outputs, cfg.Width)
	vector := func(flat []float32) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(flat, len(flat)) }
	w, s := slices.Concat(weights...), slices.Concat(stats...)
	t.state = []*tensors.Tensor{stateWeights: vector(w), stateVelocities: vector(make([]float32, len(w))), stateStats: vector(s)}
	var err error
	t.execStep, err = graph.NewExec(t.be, t.graph)
	return t, err
}

func (t *trainer) close() {
	t.execStep.Finalize()
	finalize(t.state)
}

// finalize frees tensors and their copies on a device at once. Left to the garbage
// collector, those that ONNX Runtime holds are never freed.
func finalize(all []*tensors.Tensor) {
	for _, t := range all {
		_ = t.FinalizeAll() // there is nothing to do when it fails
	}
}

// graph writes one training step: the state, a batch [layout.dims], its one-hot labels
// [n, outputs] and the learning rate in; the new state and the loss out.
func (t *trainer) graph(in []*graph.Node) []*graph.Node {
	state, loss := t.write(in[:stateLen], in[stateLen], in[stateLen+1], in[stateLen+2])
	return append(state, loss)
}

// write writes one training step and returns the new state and the loss before it.
func (t *trainer) write(state []*graph.Node, images, oneHot, rate *graph.Node) (next []*graph.Node, loss *graph.Node) {
	p := &pass{
		form: t.form, train: true,
		weights: unpack(state[stateWeights], t.weights), stats: unpack(state[stateStats], t.stats),
		grads: map[string]*graph.Node{}, newStats: map[string]*graph.Node{},
	}
	pooled := p.network(act{Node: images, n: oneHot.Shape().Dimensions[0], size: t.cfg.InputSize})
	fw, fb := p.weights["linear.weight"], p.weights["linear.bias"]
	logits := linear(pooled.Node, fw, fb)
	loss = totalLoss(logits, oneHot, t.cfg.Energy)
	head := graph.Gradient(loss, pooled.Node, fw, fb)
	pooled.grad, p.grads["linear.weight"], p.grads["linear.bias"] = head[0], head[1], head[2]
	p.runBackward()

	// PyTorch's SGD: v = m v + (g + d w); w = w - rate v, with Nesterov w - rate (g + d w + m v).
	w := state[stateWeights]
	g := graph.Add(pack(p.grads, t.weights), graph.MulScalar(w, t.cfg.WeightDecay))
	v := graph.Add(graph.MulScalar(state[stateVelocities], t.cfg.Momentum), g)
	direction := v
	if t.cfg.Nesterov {
		direction = graph.Add(g, graph.MulScalar(v, t.cfg.Momentum))
	}
	return []*graph.Node{
		stateWeights:    graph.Sub(w, graph.Mul(rate, direction)),
		stateVelocities: v,
		stateStats:      pack(p.newStats, t.stats),
	}, loss
}

// unpack gives the tensors of a vector by name.
func unpack(vector *graph.Node, specs []tensorSpec) map[string]*graph.Node {
	named, at := make(map[string]*graph.Node, len(specs)), 0
	for _, s := range specs {
		named[s.name] = graph.Reshape(graph.Slice(vector, graph.AxisRange(at, at+s.size())), s.dims...)
		at += s.size()
	}
	return named
}

// pack is the vector of named tensors.
func pack(named map[string]*graph.Node, specs []tensorSpec) *graph.Node {
	parts := make([]*graph.Node, len(specs))
	for i, s := range specs {
		parts[i] = graph.Reshape(named[s.name], s.size())
	}
	return graph.Concatenate(parts, 0)
}

// linear is the last layer: features [n, f] to logits [n, outputs].
func linear(x, w, b *graph.Node) *graph.Node {
	return graph.Add(productT(x, w), graph.BroadcastToDims(graph.Reshape(b, 1, -1), x.Shape().Dimensions[0], w.Shape().Dimensions[0]))
}

// step trains on one batch and returns its loss, before the step. The batch and the
// labels are copied. It turns GoMLX's panics into errors.
func (t *trainer) step(l layout, batch []float32, oneHot []float32, rate float64) (loss float64, err error) {
	n := len(oneHot) / t.cfg.Outputs
	err = safely(func() error {
		args := make([]any, 0, len(t.state)+3)
		for _, s := range t.state {
			donated, err := graph.DonateTensorBuffer(s, t.be, 0)
			if err != nil {
				return err
			}
			args = append(args, donated)
		}
		inputs := []*tensors.Tensor{
			tensors.FromFlatDataAndDimensions(batch, l.dims...),
			tensors.FromFlatDataAndDimensions(oneHot, n, t.cfg.Outputs),
			tensors.FromScalar(float32(rate)),
		}
		defer finalize(inputs)
		for _, in := range inputs {
			args = append(args, in)
		}
		out, err := t.execStep.Call(args...)
		if err != nil {
			return err
		}
		last := len(out) - 1
		copy(t.state, out[:last])
		loss = float64(tensors.ToScalar[float32](out[last]))
		return out[last].FinalizeAll()
	})
	return loss, err
}

// weightsAndStats copies the state off the device.
func (t *trainer) weightsAndStats() (weights, stats [][]float32, err error) {
	split := func(vector *tensors.Tensor, specs []tensorSpec) [][]float32 {
		flat := tensors.MustCopyFlatData[float32](vector)
		parts := make([][]float32, len(specs))
		for i, s := range specs {
			parts[i], flat = slices.Clip(flat[:s.size()]), flat[s.size():]
		}
		return parts
	}
	err = safely(func() error {
		weights, stats = split(t.state[stateWeights], t.weights), split(t.state[stateStats], t.stats)
		return nil
	})
	return weights, stats, err
}

// safely turns GoMLX's panics into errors.
func safely(fn func() error) (err error) {
	switch caught := exceptions.Try(func() { err = fn() }).(type) {
	case nil:
		return err
	case error:
		return caught
	default:
		return fmt.Errorf("panic: %v", caught)
	}
}
