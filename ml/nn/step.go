package nn

import (
	"fmt"

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
	state    []*tensors.Tensor // weights, then their velocities, then running statistics
	execStep *graph.Exec
}

// newTrainer puts the weights and statistics, in the architecture's order, on the
// device.
func newTrainer(be *backend.Backend, cfg Config, weights, stats [][]float32) (*trainer, error) {
	t := &trainer{be: be.Compute(), form: formFor(be), cfg: cfg}
	t.weights, t.stats = architecture(cfg.Outputs, cfg.Width)
	for i, s := range t.weights {
		t.state = append(t.state, tensors.FromFlatDataAndDimensions(weights[i], s.dims...))
	}
	for _, s := range t.weights {
		t.state = append(t.state, tensors.FromFlatDataAndDimensions(make([]float32, s.size()), s.dims...))
	}
	for i, s := range t.stats {
		t.state = append(t.state, tensors.FromFlatDataAndDimensions(stats[i], s.dims...))
	}
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
	w, s := len(t.weights), len(t.stats)
	weights, velocities, stats := in[:w], in[w:2*w], in[2*w:2*w+s]
	images, oneHot, rate := in[2*w+s], in[2*w+s+1], in[2*w+s+2]

	p := &pass{
		form: t.form, train: true,
		weights: map[string]*graph.Node{}, stats: map[string]*graph.Node{},
		grads: map[string]*graph.Node{}, newStats: map[string]*graph.Node{},
	}
	for i, spec := range t.weights {
		p.weights[spec.name] = weights[i]
	}
	for i, spec := range t.stats {
		p.stats[spec.name] = stats[i]
	}
	pooled := p.network(act{Node: images, n: oneHot.Shape().Dimensions[0], size: t.cfg.InputSize})
	fw, fb := p.weights["linear.weight"], p.weights["linear.bias"]
	logits := linear(pooled.Node, fw, fb)
	loss := totalLoss(logits, oneHot, t.cfg.Energy)
	head := graph.Gradient(loss, pooled.Node, fw, fb)
	pooled.grad, p.grads["linear.weight"], p.grads["linear.bias"] = head[0], head[1], head[2]
	p.runBackward()

	out := make([]*graph.Node, 2*w+s, 2*w+s+1)
	for i, spec := range t.weights {
		// PyTorch's SGD: v = m v + (g + d w); w = w - rate v, with Nesterov w - rate (g + d w + m v).
		g := graph.Add(p.grads[spec.name], graph.MulScalar(weights[i], t.cfg.WeightDecay))
		v := graph.Add(graph.MulScalar(velocities[i], t.cfg.Momentum), g)
		direction := v
		if t.cfg.Nesterov {
			direction = graph.Add(g, graph.MulScalar(v, t.cfg.Momentum))
		}
		out[i], out[w+i] = graph.Sub(weights[i], graph.Mul(rate, direction)), v
	}
	for i, spec := range t.stats {
		out[2*w+i] = p.newStats[spec.name]
	}
	return append(out, loss)
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
	err = safely(func() error {
		for i := range t.weights {
			weights = append(weights, tensors.MustCopyFlatData[float32](t.state[i]))
		}
		for i := range t.stats {
			stats = append(stats, tensors.MustCopyFlatData[float32](t.state[2*len(t.weights)+i]))
		}
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
