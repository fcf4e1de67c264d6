package nn

import (
	"github.com/gomlx/gomlx/core/graph"

	"winnow/ml/backend"
)

// act is an activation in a graph: n images of size x size pixels. How they lie in
// the node is the form's business.
type act struct {
	*graph.Node
	n, size int
}

func (a act) with(node *graph.Node) act { return act{Node: node, n: a.n, size: a.size} }

// count is the number of values of a channel.
func (a act) count() int { return a.n * a.size * a.size }

// form is the seam between the network's mathematics and the way a backend likes its
// graphs: how activations lie in memory, and how the layers on them and their
// gradients are written. Weights have the shapes of architecture in every form.
//
// Each layer returns its output and a function that writes its backward pass: from
// the gradient by the output to the gradients by the input and the weights.
type form interface {
	// layout says where the host puts the values of n images of so many channels.
	layout(n, channels, size int) layout

	stem(x act, w *graph.Node) (y act, back func(dy *graph.Node) (dw *graph.Node))
	conv(x act, w *graph.Node) (y act, back func(dy *graph.Node) (dx, dw *graph.Node))
	down(x act, w, shortcut *graph.Node) (y, s act, back func(dy, ds *graph.Node) (dx, dw, dshortcut *graph.Node))
	// norm normalises by the batch's mean and biased variance, which it returns.
	norm(x act, gamma, beta *graph.Node) (y act, mean, variance *graph.Node, back func(dy *graph.Node) (dx, dgamma, dbeta *graph.Node))
	relu(x act) (y act, back func(dy *graph.Node) (dx *graph.Node))
	affine(x act, scale, shift *graph.Node) act
	pool(x act) (y *graph.Node, back func(dy *graph.Node) (dx *graph.Node))
}

// layout is the place of pixel (y, x), channel c of image i in a batch's flat data:
// offset + c*channel + i*image + y*row + x*pixel. The rest is zero.
type layout struct {
	dims                               []int
	offset, channel, image, row, pixel int
}

func (l layout) size() int {
	n := 1
	for _, d := range l.dims {
		n *= d
	}
	return n
}

// formFor gives the form in which a backend is at its best.
func formFor(be *backend.Backend) form {
	switch be.Kind() {
	case backend.ONNX:
		return native{products: true}
	case backend.XLA:
		return native{dilated: true, half: be.Precision() == backend.BFloat16}
	default:
		return flat{}
	}
}

// half is the size after a convolution of stride 2.
func half(size int) int { return (size + 1) / 2 }
