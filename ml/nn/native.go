package nn

import (
	"math"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
)

// native is the form for backends that have a fast convolution of their own. An
// activation is [n, channels, size, size].
//
// Convolutions of stride 2 go forward as such. Backward they would need their input
// dilated, which ONNX Runtime cannot do: the gradient by the input is written as one
// 2x2 convolution to four times the channels, the four phases of the image, which are
// then put in their places.
type native struct {
	// products says to write the gradients by the kernels as matrix products over
	// patches, as flat does, instead of as convolutions with the output's gradient for
	// a kernel: those have an output of 3x3 only, which suits ONNX Runtime badly (21 ms
	// against 5 for a convolution of the first stage that takes 3 forward).
	products bool
	// dilated says that a convolution may dilate its input: a stride's gradient is then
	// one convolution instead of four phases that are put in their places.
	dilated bool
	// half holds activations and their gradients in bfloat16, as tensor cores like them.
	// Weights, sums over pixels and all that comes after pooling stay in float32.
	half bool
}

func (native) layout(n, channels, size int) layout {
	area := size * size
	return layout{
		dims:    []int{n, channels, size, size},
		channel: area, image: channels * area, row: size, pixel: 1,
	}
}

// axes of a convolution of activations with weights [out, kernel, kernel, in].
var forwardAxes = compute.ConvolveAxesConfig{
	InputBatch: 0, InputChannels: 1, InputSpatial: []int{2, 3},
	KernelOutputChannels: 0, KernelSpatial: []int{1, 2}, KernelInputChannels: 3,
	OutputBatch: 0, OutputChannels: 1, OutputSpatial: []int{2, 3},
}

// backwardAxes swaps the weights' inputs and outputs.
var backwardAxes = compute.ConvolveAxesConfig{
	InputBatch: 0, InputChannels: 1, InputSpatial: []int{2, 3},
	KernelOutputChannels: 3, KernelSpatial: []int{1, 2}, KernelInputChannels: 0,
	OutputBatch: 0, OutputChannels: 1, OutputSpatial: []int{2, 3},
}

// kernelAxes convolve an activation, with images for channels and channels for images,
// with the output's gradient for a kernel; what comes out is laid out as weights.
var kernelAxes = compute.ConvolveAxesConfig{
	InputBatch: 1, InputChannels: 0, InputSpatial: []int{2, 3},
	KernelOutputChannels: 1, KernelSpatial: []int{2, 3}, KernelInputChannels: 0,
	OutputBatch: 3, OutputChannels: 0, OutputSpatial: []int{1, 2},
}

// convolution pads all sides alike, by before and after.
func convolution(x, w *graph.Node, axes compute.ConvolveAxesConfig, stride, dilation, before, after int) *graph.Node {
	return graph.ConvGeneral(x, like(w, x), axes.Clone(), []int{stride, stride}, [][2]int{{before, after}, {before, after}},
		nil, []int{dilation, dilation}, 1, 1)
}

// like converts v to the type of x.
func like(v, x *graph.Node) *graph.Node {
	if v.DType() == x.DType() {
		return v
	}
	return graph.ConvertDType(v, x.DType())
}

// full converts v to float32.
func full(v *graph.Node) *graph.Node {
	if v.DType() == dtypes.Float32 {
		return v
	}
	return graph.ConvertDType(v, dtypes.Float32)
}

func (f native) stem(x act, w *graph.Node) (act, func(dy *graph.Node) *graph.Node) {
	if f.half {
		x.Node = graph.ConvertDType(x.Node, dtypes.BFloat16)
	}
	y := x.with(convolution(x.Node, w, forwardAxes, 1, 1, 1, 1))
	return y, func(dy *graph.Node) *graph.Node { return f.kernelGradient(x, y.with(dy)) }
}

func (f native) conv(x act, w *graph.Node) (act, func(dy *graph.Node) (dx, dw *graph.Node)) {
	y := x.with(convolution(x.Node, w, forwardAxes, 1, 1, 1, 1))
	return y, func(dy *graph.Node) (dx, dw *graph.Node) {
		dx = convolution(dy, graph.Reverse(w, 1, 2), backwardAxes, 1, 1, 1, 1)
		return dx, f.kernelGradient(x, y.with(dy))
	}
}

// kernelGradient is that of a 3x3 convolution of stride 1.
func (f native) kernelGradient(x, dy act) *graph.Node {
	if !f.products {
		return full(convolution(x.Node, dy.Node, kernelAxes, 1, 1, 1, 1))
	}
	// A weight's gradient is the sum over the pixels of x, shifted by its row and its
	// column, times dy: of matrix products with a row a channel. Shifting dy by the rows
	// and x by the columns takes six copies where shifting one of them takes nine.
	c, o := x.Shape().Dimensions[1], dy.Shape().Dimensions[1]
	byRow := stackShifted(channelsFirst(dy), []tap{{y: 1}, {}, {y: -1}})
	byColumn := stackShifted(channelsFirst(x), []tap{{x: 1}, {}, {x: -1}})
	dw := graph.Slice(productT(byRow, byColumn), graph.AxisRange(1, 1+3*o), graph.AxisRange(1, 1+3*c))
	return graph.Reverse(graph.TransposeAllAxes(graph.Reshape(dw, 3, o, 3, c), 1, 0, 2, 3), 2)
}

// channelsFirst is an activation as [channels, n, size, size].
func channelsFirst(x act) act { return x.with(graph.TransposeAllAxes(x.Node, 1, 0, 2, 3)) }

// tap is a neighbour of a pixel: so many rows and columns, -1 to 1, further on.
type tap struct{ y, x int }

// stackShifted makes of an activation [c, n, size, size] the matrix [k*c+2, n*size*size]
// of its channels as seen by k taps; a pixel without that neighbour reads 0. The taps
// must come last pixel first. The first and the last row make room for the offsets and
// are of no use.
//
// Shifting the whole activation as one block is a plain copy, but brings what is beyond
// an edge from the other side, the next image or channel: there the block is made 0.
func stackShifted(x act, taps []tap) *graph.Node {
	g, c, m := x.Graph(), x.Shape().Dimensions[0], x.count()
	zeros := func(n int) *graph.Node { return graph.Zeros(g, shapes.Make(x.DType(), n)) }
	parts := []*graph.Node{zeros(m - taps[0].offset(x.size))}
	for k, t := range taps {
		if k > 0 && x.size > 1 {
			parts = append(parts, zeros(taps[k-1].offset(x.size)-t.offset(x.size)))
		}
		block := x.Node
		if t != (tap{}) {
			block = graph.Mul(block, graph.Reshape(graph.Const(g, t.seen(x.size)), 1, 1, x.size, x.size))
		}
		parts = append(parts, graph.Reshape(block, c*m))
	}
	parts = append(parts, zeros(m+taps[len(taps)-1].offset(x.size)))
	return graph.Reshape(graph.Concatenate(parts, 0), len(taps)*c+2, m)
}

// offset is how much further on the neighbour lies; a single pixel has none.
func (t tap) offset(size int) int {
	if size == 1 {
		return 0
	}
	return t.y*size + t.x
}

// seen is 1 for the pixels of an image that are the neighbour of one, and 0 elsewhere.
func (t tap) seen(size int) []float32 {
	mask := make([]float32, size*size)
	for p := range mask {
		if y, x := p/size-t.y, p%size-t.x; 0 <= y && y < size && 0 <= x && x < size {
			mask[p] = 1
		}
	}
	return mask
}

func (f native) down(x act, w, shortcut *graph.Node) (act, act, func(dy, ds *graph.Node) (dx, dw, dshortcut *graph.Node)) {
	h := half(x.size)
	y := act{Node: convolution(x.Node, w, forwardAxes, 2, 1, 1, 1), n: x.n, size: h}
	s := y.with(convolution(x.Node, shortcut, forwardAxes, 2, 1, 0, 0))
	return y, s, func(dy, ds *graph.Node) (dx, dw, dshortcut *graph.Node) {
		d := w.Shape().Dimensions
		o, c := d[0], d[3]
		if f.products {
			taps := []tap{{y: 1, x: 1}, {y: 1}, {x: 1}, {}} // those of flat's downPatches
			cols := stackShifted(channelsFirst(y.with(dy)), taps)
			dw, dshortcut = downFromPatches(cols, phasesOf(x), graph.Reshape(channelsFirst(s.with(ds)).Node, o, -1))
		} else {
			dw = full(convolution(x.Node, dy, kernelAxes, 1, 2, 1, 2*h-x.size))
			seen := graph.Slice(x.Node, graph.AxisRange(), graph.AxisRange(), graph.AxisRange().Stride(2), graph.AxisRange().Stride(2))
			dshortcut = full(convolution(seen, ds, kernelAxes, 1, 1, 0, 0))
		}
		if f.dilated {
			dx = undoStride(dy, graph.Reverse(w, 1, 2), x.size, 1)
			return graph.Add(dx, undoStride(ds, shortcut, x.size, 0)), dw, dshortcut
		}

		// An input pixel of an odd row is read by the output row above through the
		// kernel's last row and by the one below through its first, one of an even
		// row by one alone, through the middle row: with a row of zeros in front, the
		// kernel's four rows are [above or below, odd or even].
		w4 := fourByFour(w)
		wd := graph.Reshape(graph.TransposeAllAxes(graph.Reverse(w4, 1, 3), 2, 4, 5, 1, 3, 0), 4*c, 2, 2, o)
		phases := convolution(dy, wd, forwardAxes, 1, 1, 0, 1)
		first := convolution(ds, shortcut, backwardAxes, 1, 1, 0, 0)
		phases = graph.Add(phases, graph.Concatenate([]*graph.Node{first, graph.Zeros(x.Graph(), shapes.Make(x.DType(), x.n, 3*c, h, h))}, 1))
		dx = join(phases, x.n, c, x.size)
		return dx, dw, dshortcut
	}
}

// undoStride is the gradient by the input, of so many pixels a side, of a convolution of
// stride 2: the convolution, with the kernel turned round, of the output's gradient with
// a zero after each pixel.
func undoStride(dy, w *graph.Node, size, before int) *graph.Node {
	dilated, kernel := 2*dy.Shape().Dimensions[2]-1, w.Shape().Dimensions[1]
	pad := [2]int{before, size - dilated + kernel - 1 - before}
	return graph.ConvGeneral(dy, like(w, dy), backwardAxes.Clone(), []int{1, 1}, [][2]int{pad, pad}, []int{2, 2}, []int{1, 1}, 1, 1)
}

// interleave is the matrix [2h, 2h] that takes a row of h even and then h odd pixels to
// a row of pixels in order. A row is put in order by a matrix product, since moving
// single values is what backends do slowest.
func interleave(g *graph.Graph, h int) *graph.Node {
	m := make([][]float32, 2*h)
	for i := range m {
		m[i] = make([]float32, 2*h)
		m[i][2*(i%h)+i/h] = 1
	}
	return graph.Const(g, m)
}

// join puts phases [n, 4c, h, h] in their places: [n, c, size, size]. Channel
// (a*2+b)*c + i holds the pixels (2y+a, 2x+b) of channel i.
func join(phases *graph.Node, n, c, size int) *graph.Node {
	h := half(size)
	t := graph.TransposeAllAxes(graph.Reshape(phases, n, 2, 2, c, h, h), 0, 3, 4, 1, 2, 5)
	t = product(graph.Reshape(t, n*c*2*h, 2*h), interleave(phases.Graph(), h))
	t = graph.Reshape(t, n, c, 2*h, 2*h)
	if size < 2*h {
		t = graph.Slice(t, graph.AxisRange(), graph.AxisRange(), graph.AxisRange(0, size), graph.AxisRange(0, size))
	}
	return t
}

// phasesOf makes of an activation its four phases, as flat's split does, of half the
// size: the matrix [4*channels, n*h*h].
func phasesOf(x act) *graph.Node {
	c, h := x.Shape().Dimensions[1], half(x.size)
	t := x.Node
	if odd := 2*h - x.size; odd > 0 {
		t = graph.Pad(t, graph.ScalarZero(x.Graph(), x.DType()), graph.PadAxis{}, graph.PadAxis{}, graph.PadAxis{End: odd}, graph.PadAxis{End: odd})
	}
	t = productT(graph.Reshape(t, x.n*c*2*h, 2*h), interleave(x.Graph(), h))
	t = graph.TransposeAllAxes(graph.Reshape(t, x.n, c, h, 2, 2, h), 3, 4, 1, 0, 2, 5)
	return graph.Reshape(t, 4*c, x.n*h*h)
}

// perChannel makes a vector apply channel by channel.
func perChannel(v *graph.Node) *graph.Node { return graph.Reshape(v, 1, -1, 1, 1) }

func (native) norm(x act, gamma, beta *graph.Node) (act, *graph.Node, *graph.Node, func(dy *graph.Node) (dx, dgamma, dbeta *graph.Node)) {
	n := float64(x.count())
	v := full(x.Node)
	sum := func(v *graph.Node) *graph.Node { return graph.ReduceSum(v, 0, 2, 3) }
	mean := graph.DivScalar(sum(v), n)
	squares := graph.DivScalar(sum(graph.Mul(v, v)), n)
	variance := graph.MaxScalar(graph.Sub(squares, graph.Mul(mean, mean)), 0)
	inv := graph.Reciprocal(graph.Sqrt(graph.AddScalar(variance, normEpsilon)))
	scale := graph.Mul(gamma, inv)
	// a*v + b, channel by channel
	along := func(v, a, b *graph.Node) *graph.Node {
		return graph.Add(graph.Mul(v, perChannel(a)), perChannel(b))
	}
	y := like(along(v, scale, graph.Sub(beta, graph.Mul(scale, mean))), x.Node)

	return x.with(y), mean, variance, func(dy *graph.Node) (dx, dgamma, dbeta *graph.Node) {
		dy = full(dy)
		dbeta = sum(dy)
		dgamma = graph.Mul(inv, graph.Sub(sum(graph.Mul(dy, v)), graph.Mul(mean, dbeta)))
		// dx = scale * (dy - dbeta/n - xhat * dgamma/n), with xhat = inv * (x - mean).
		slope := graph.Mul(graph.Mul(scale, inv), graph.DivScalar(dgamma, -n))
		shift := graph.Sub(graph.Mul(scale, graph.DivScalar(dbeta, -n)), graph.Mul(slope, mean))
		dx = graph.Add(graph.Mul(dy, perChannel(scale)), along(v, slope, shift))
		return like(dx, x.Node), dgamma, dbeta
	}
}

// relu's gradient goes where its output is positive. For ONNX Runtime that output,
// never negative, is made 0 or at least 1 by the largest number: multiplying and taking
// the minimum with 1 are its fastest loops, comparing and choosing take twice as long.
func (f native) relu(x act) (act, func(dy *graph.Node) *graph.Node) {
	y := graph.MaxScalar(x.Node, 0)
	return x.with(y), func(dy *graph.Node) *graph.Node {
		if f.products {
			return graph.Mul(dy, graph.MinScalar(graph.MulScalar(y, math.MaxFloat32), 1))
		}
		zero := graph.ScalarZero(y.Graph(), y.DType())
		return graph.Where(graph.GreaterThan(y, zero), dy, zero)
	}
}

func (native) affine(x act, scale, shift *graph.Node) act {
	y := graph.Add(graph.Mul(full(x.Node), perChannel(scale)), perChannel(shift))
	return x.with(like(y, x.Node))
}

func (native) pool(x act) (*graph.Node, func(dy *graph.Node) *graph.Node) {
	dims := x.Shape().Dimensions
	area := float64(x.size * x.size)
	return graph.DivScalar(graph.ReduceSum(full(x.Node), 2, 3), area), func(dy *graph.Node) *graph.Node {
		each := like(graph.DivScalar(dy, area), x.Node)
		return graph.BroadcastToDims(graph.Reshape(each, dims[0], dims[1], 1, 1), dims...)
	}
}
