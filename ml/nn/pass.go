package nn

import (
	"github.com/gomlx/gomlx/core/graph"
)

// A pass writes the network into a graph: forward, and for training also backward.
// The gradients are written by hand, layer by layer, not derived: GoMLX's pure-Go
// backend spends its time on moving data, and only so is the data moved least.
type pass struct {
	form    form
	weights map[string]*graph.Node
	stats   map[string]*graph.Node

	// Training only.
	train    bool
	backward []func()               // to be run last to first
	grads    map[string]*graph.Node // of weights
	newStats map[string]*graph.Node
}

// value is an activation on its way through the network, and the gradient of the loss
// by it once the backward pass got there.
type value struct {
	act
	grad *graph.Node
}

func (v *value) addGrad(g *graph.Node) {
	if v.grad == nil {
		v.grad = g
	} else {
		v.grad = graph.Add(v.grad, g)
	}
}

// network writes the network up to the average-pooled features, [n, features].
func (p *pass) network(images act) *value {
	h := p.stem(&value{act: images})
	for stage := range stages {
		for block := range blocksPerStage {
			name := blockName(stage, block)
			var a, shortcut *value
			if stride(stage, block) == 1 {
				a, shortcut = p.conv(h, name+".conv1.weight"), h
			} else {
				a, shortcut = p.down(h, name+".conv1.weight", name+".shortcut.0.weight")
				shortcut = p.norm(shortcut, name+".shortcut.1")
			}
			a = p.relu(p.norm(a, name+".bn1"))
			a = p.norm(p.conv(a, name+".conv2.weight"), name+".bn2")
			h = p.relu(p.add(a, shortcut))
		}
	}
	return p.pool(h)
}

// record notes how the gradient flows back through a layer.
func (p *pass) record(back func()) {
	if p.train {
		p.backward = append(p.backward, back)
	}
}

// runBackward writes the backward pass; the gradient of the output must be set.
func (p *pass) runBackward() {
	for i := len(p.backward) - 1; i >= 0; i-- {
		p.backward[i]()
	}
}

// stem is the first convolution, whose input needs no gradient.
func (p *pass) stem(x *value) *value {
	const name = "conv1.weight"
	y, back := p.form.stem(x.act, p.weights[name])
	out := &value{act: y}
	p.record(func() { p.grads[name] = back(out.grad) })
	return p.relu(p.norm(out, "bn1"))
}

func (p *pass) conv(x *value, name string) *value {
	y, back := p.form.conv(x.act, p.weights[name])
	out := &value{act: y}
	p.record(func() {
		dx, dw := back(out.grad)
		x.addGrad(dx)
		p.grads[name] = dw
	})
	return out
}

// down is the first convolution of a stage, with stride 2, and the 1x1 convolution of
// the shortcut beside it.
func (p *pass) down(x *value, name, shortcut string) (*value, *value) {
	y, s, back := p.form.down(x.act, p.weights[name], p.weights[shortcut])
	outY, outS := &value{act: y}, &value{act: s}
	p.record(func() {
		dx, dw, ds := back(outY.grad, outS.grad)
		x.addGrad(dx)
		p.grads[name], p.grads[shortcut] = dw, ds
	})
	return outY, outS
}

// norm is batch normalisation: by the batch's own mean and variance in training,
// updating the running ones, and by the running ones otherwise.
func (p *pass) norm(x *value, name string) *value {
	gamma, beta := p.weights[name+".weight"], p.weights[name+".bias"]
	meanName, varName := name+".running_mean", name+".running_var"
	if !p.train {
		scale := graph.Div(gamma, graph.Sqrt(graph.AddScalar(p.stats[varName], normEpsilon)))
		shift := graph.Sub(beta, graph.Mul(scale, p.stats[meanName]))
		return &value{act: p.form.affine(x.act, scale, shift)}
	}
	y, mean, variance, back := p.form.norm(x.act, gamma, beta)
	p.newStats[meanName] = running(p.stats[meanName], mean)
	n := float64(x.count())
	p.newStats[varName] = running(p.stats[varName], graph.MulScalar(variance, n/max(n-1, 1)))
	out := &value{act: y}
	p.record(func() {
		dx, dgamma, dbeta := back(out.grad)
		x.addGrad(dx)
		p.grads[name+".weight"], p.grads[name+".bias"] = dgamma, dbeta
	})
	return out
}

const (
	normEpsilon  = 1e-5
	normMomentum = 0.1 // share of the batch in the running statistics
)

func running(old, batch *graph.Node) *graph.Node {
	return graph.Add(graph.MulScalar(old, 1-normMomentum), graph.MulScalar(batch, normMomentum))
}

func (p *pass) relu(x *value) *value {
	y, back := p.form.relu(x.act)
	out := &value{act: y}
	p.record(func() { x.addGrad(back(out.grad)) })
	return out
}

func (p *pass) add(x, y *value) *value {
	out := &value{act: x.with(graph.Add(x.Node, y.Node))}
	p.record(func() {
		x.addGrad(out.grad)
		y.addGrad(out.grad)
	})
	return out
}

func (p *pass) pool(x *value) *value {
	y, back := p.form.pool(x.act)
	out := &value{act: act{Node: y}}
	p.record(func() { x.addGrad(back(out.grad)) })
	return out
}
