package nn

import (
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// flat is the form for GoMLX's pure-Go backend, where matrix products are fast, whole
// blocks are copied fast, and everything else is a loop over single values.
//
// An activation is a matrix [channels, m]. A row holds one zero image and then the
// batch's images, each of size+1 rows of size+1 pixels: after each image row comes one
// zero pixel, after the last row one row of zeros. So the neighbour of a pixel by
// (dy, dx) is always dy*(size+1)+dx places further, and what lies beyond an image's
// edge is zero. Shifting a whole activation is therefore copying it as one block with
// an offset, and the patches of a 3x3 convolution are nine such copies in one
// Concatenate; the rest of a convolution, forward and backward, is matrix products
// whose operands already lie as the backend wants them: nothing is transposed.
//
// What a convolution computes at the zero places is rubbish; norm and affine wipe it
// out. For them a convolution's output has one row more, which is 1 at pixels and 0
// elsewhere: with it, sums over pixels, factors by channel and offsets by channel are
// matrix products too, instead of loops.
type flat struct{}

func imageLen(size int) int { return (size + 1) * (size + 1) }

// rowLen is the length of a row of an activation.
func rowLen(n, size int) int { return (n + 1) * imageLen(size) }

func (flat) layout(n, channels, size int) layout {
	m := rowLen(n, size)
	return layout{
		dims:    []int{channels, m},
		offset:  imageLen(size),
		channel: m, image: imageLen(size), row: size + 1, pixel: 1,
	}
}

// patches stacks copies of x [c, m], each read shifts[k] places further on; shifts
// must fall. Row 1 + k*c + i is channel i of copy k. The first row and the last make
// room for the offsets: the first is the mask row, the last of no use. Places that have
// no neighbour within m read zeros.
func patches(x act, shifts []int) *graph.Node {
	g := x.Graph()
	c, m := x.Shape().Dimensions[0], x.Shape().Dimensions[1]
	block := graph.Reshape(x.Node, c*m)
	zeros := func(n int) *graph.Node { return graph.Zeros(g, shapes.Make(x.DType(), n)) }
	// The mask row ends in zeros: the last image's right column and bottom row.
	parts := []*graph.Node{graph.Slice(graph.Reshape(maskRow(g, x), m), graph.AxisRange(0, m-max(shifts[0], 0)))}
	for k, s := range shifts {
		if k > 0 && shifts[k-1] > s {
			parts = append(parts, zeros(shifts[k-1]-s))
		}
		parts = append(parts, block)
	}
	parts = append(parts, zeros(m+shifts[len(shifts)-1]))
	return graph.Reshape(graph.Concatenate(parts, 0), len(shifts)*c+2, m)
}

// overPatches widens a weight matrix [o, k*c] to multiply the rows of patches.
func overPatches(w *graph.Node) *graph.Node {
	edge := graph.Zeros(w.Graph(), shapes.Make(w.DType(), w.Shape().Dimensions[0], 1))
	return graph.Concatenate([]*graph.Node{edge, w, edge}, 1)
}

// withMask adds to a product with patches the row that makes the mask row.
func withMask(w *graph.Node) *graph.Node {
	pick := make([]float32, w.Shape().Dimensions[1])
	pick[0] = 1
	return graph.Concatenate([]*graph.Node{w, graph.Const(w.Graph(), [][]float32{pick})}, 0)
}

// product is the matrix product a [i, k] x b [k, j].
func product(a, b *graph.Node) *graph.Node {
	return graph.DotGeneral(a, []int{1}, nil, b, []int{0}, nil)
}

// productT is a [i, k] times the transpose of b [j, k].
func productT(a, b *graph.Node) *graph.Node {
	return graph.DotGeneral(a, []int{1}, nil, b, []int{1}, nil)
}

// taps3 are the nine shifts of a 3x3 kernel, falling.
func taps3(size int) []int {
	var shifts []int
	for dy := 1; dy >= -1; dy-- {
		for dx := 1; dx >= -1; dx-- {
			shifts = append(shifts, dy*(size+1)+dx)
		}
	}
	return shifts
}

// forward3 is the 3x3 convolution of already cut patches, with the mask row.
func forward3(cols, w *graph.Node) *graph.Node {
	d := w.Shape().Dimensions // [o, 3, 3, c]
	return product(withMask(overPatches(graph.Reshape(graph.Reverse(w, 1, 2), d[0], 9*d[3]))), cols)
}

func (flat) stem(x act, w *graph.Node) (act, func(dy *graph.Node) *graph.Node) {
	cols := patches(x, taps3(x.size))
	d := w.Shape().Dimensions
	return x.with(forward3(cols, w)), func(dy *graph.Node) *graph.Node {
		dw := graph.Slice(productT(dy, cols), graph.AxisRange(), graph.AxisRange(1, 1+9*d[3]))
		return graph.Reverse(graph.Reshape(dw, d...), 1, 2)
	}
}

func (flat) conv(x act, w *graph.Node) (act, func(dy *graph.Node) (dx, dw *graph.Node)) {
	d := w.Shape().Dimensions
	o, c := d[0], d[3]
	y := x.with(forward3(patches(x, taps3(x.size)), w))
	return y, func(dy *graph.Node) (dx, dw *graph.Node) {
		// Both gradients come from the patches of dy: dx is dy convolved with the
		// kernel turned round, and dw[k] pairs dy, shifted back by k, with x. So the
		// patches of x need not be kept until now.
		cols := patches(x.with(dy), taps3(x.size))
		wt := graph.Reshape(graph.TransposeAllAxes(w, 3, 1, 2, 0), c, 9*o)
		dx = product(overPatches(wt), cols)
		dwt := graph.Slice(productT(cols, x.Node), graph.AxisRange(1, 1+9*o))
		dw = graph.TransposeAllAxes(graph.Reshape(dwt, 3, 3, o, c), 2, 0, 1, 3)
		return dx, dw
	}
}

// split makes of x [c, m] its four phases [4c, m'] of half the size: row (a*2+b)*c + i
// holds the pixels (2y+a, 2x+b) of channel i.
func split(x act) act {
	g := x.Graph()
	c, h := x.Shape().Dimensions[0], half(x.size)
	full, side := x.size+1, 2*h+2
	t := graph.Reshape(x.Node, c*(x.n+1), full, full)
	t = graph.Concatenate([]*graph.Node{t, graph.Zeros(g, shapes.Make(x.DType(), c*(x.n+1), full, side-full))}, 2)
	t = graph.Concatenate([]*graph.Node{t, graph.Zeros(g, shapes.Make(x.DType(), c*(x.n+1), side-full, side))}, 1)
	t = graph.Reshape(t, c*(x.n+1)*(h+1), 2, h+1, 2)
	t = graph.TransposeAllAxes(t, 1, 3, 0, 2)
	return act{Node: graph.Reshape(t, 4*c, rowLen(x.n, h)), n: x.n, size: h}
}

// merge undoes split on a gradient; size is that of the result.
func merge(dphases *graph.Node, n, size int) *graph.Node {
	c, h := dphases.Shape().Dimensions[0]/4, half(size)
	t := graph.Reshape(dphases, 2, 2, c*(n+1)*(h+1), h+1)
	t = graph.TransposeAllAxes(t, 2, 0, 3, 1)
	t = graph.Reshape(t, c*(n+1), 2*h+2, 2*h+2)
	t = graph.Slice(t, graph.AxisRange(), graph.AxisRange(0, size+1), graph.AxisRange(0, size+1))
	return graph.Reshape(t, c, rowLen(n, size))
}

// down writes the 3x3 convolution of stride 2 as a 2x2 convolution of the phases: the
// kernel row dy = -1, 0, 1 reads phase 1 one row up, phase 0, phase 1. The shortcut
// reads phase (0, 0) alone.
func (flat) down(x act, w, shortcut *graph.Node) (act, act, func(dy, ds *graph.Node) (dx, dw, dshortcut *graph.Node)) {
	g := x.Graph()
	d := w.Shape().Dimensions
	o, c := d[0], d[3]
	phases := split(x)
	row := phases.size + 1
	w4 := fourByFour(w)
	wf := graph.TransposeAllAxes(graph.Reverse(w4, 1, 3), 0, 1, 3, 2, 4, 5)
	y := product(withMask(overPatches(graph.Reshape(wf, o, 16*c))), patches(phases, []int{0, -1, -row, -row - 1}))
	ws := graph.Reshape(shortcut, o, c)
	ws = graph.Concatenate([]*graph.Node{ws, graph.Zeros(g, shapes.Make(w.DType(), o, 3*c))}, 1)
	s := graph.Concatenate([]*graph.Node{product(ws, phases.Node), maskRow(g, phases)}, 0)

	return phases.with(y), phases.with(s), func(dy, ds *graph.Node) (dx, dw, dshortcut *graph.Node) {
		cols := downPatches(phases.with(dy))
		wb := graph.Reshape(graph.TransposeAllAxes(w4, 2, 4, 5, 1, 3, 0), 4*c, 4*o)
		dphases := product(overPatches(wb), cols)
		dphases = graph.Add(dphases, product(graph.TransposeAllAxes(ws, 1, 0), ds))
		dx = merge(dphases, x.n, x.size)

		dw, dshortcut = downFromPatches(cols, phases.Node, ds)
		return dx, dw, dshortcut
	}
}

// fourByFour gives a 3x3 kernel [o, 3, 3, c] a row and a column of zeros in front:
// [o, up, phase row, left, phase column, c]; up = 0 is the row above.
func fourByFour(w *graph.Node) *graph.Node {
	d := w.Shape().Dimensions
	zeros := func(rows, cols int) *graph.Node {
		return graph.Zeros(w.Graph(), shapes.Make(w.DType(), d[0], rows, cols, d[3]))
	}
	w4 := graph.Concatenate([]*graph.Node{zeros(1, 3), w}, 1)
	w4 = graph.Concatenate([]*graph.Node{zeros(4, 1), w4}, 2)
	return graph.Reshape(w4, d[0], 2, 2, 2, 2, d[3])
}

// downPatches are the patches of the output's gradient, for down's backward pass.
func downPatches(dy act) *graph.Node {
	row := dy.size + 1
	return patches(dy, []int{row + 1, row, 1, 0})
}

// downFromPatches gives the gradients by the weights of down, of the phases of its
// input, the patches of the one output's gradient, and the other output's gradient.
func downFromPatches(cols, phases, ds *graph.Node) (dw, dshortcut *graph.Node) {
	o, c := ds.Shape().Dimensions[0], phases.Shape().Dimensions[0]/4
	dw4 := graph.Slice(productT(cols, phases), graph.AxisRange(1, 1+4*o))
	dw4 = graph.TransposeAllAxes(graph.Reshape(dw4, 2, 2, o, 2, 2, c), 2, 0, 3, 1, 4, 5)
	dw = graph.Slice(graph.Reshape(dw4, o, 4, 4, c), graph.AxisRange(), graph.AxisRange(1, 4), graph.AxisRange(1, 4))
	dshortcut = graph.Slice(productT(ds, phases), graph.AxisRange(), graph.AxisRange(0, c))
	return dw, graph.Reshape(dshortcut, o, 1, 1, c)
}

// norm works on the activation and its mask row as one matrix: its product with itself
// has every channel's sum and sum of squares, and one product with a diagonal matrix
// and a column normalises.
func (flat) norm(x act, gamma, beta *graph.Node) (act, *graph.Node, *graph.Node, func(dy *graph.Node) (dx, dgamma, dbeta *graph.Node)) {
	c := gamma.Shape().Dimensions[0]
	n := float64(x.count())
	clean := graph.Mul(x.Node, mask(x.Graph(), x)) // [c+1, m]
	sums, squares := sumsOf(productT(clean, clean), c)
	mean := graph.DivScalar(sums, n)
	variance := graph.MaxScalar(graph.Sub(graph.DivScalar(squares, n), graph.Mul(mean, mean)), 0)
	inv := graph.Reciprocal(graph.Sqrt(graph.AddScalar(variance, normEpsilon)))
	scale := graph.Mul(gamma, inv)
	y := product(affineMatrix(scale, graph.Sub(beta, graph.Mul(scale, mean))), clean)

	return x.with(y), mean, variance, func(dy *graph.Node) (dx, dgamma, dbeta *graph.Node) {
		dbeta, along := sumsOf(productT(dy, clean), c)
		dgamma = graph.Mul(inv, graph.Sub(along, graph.Mul(mean, dbeta)))
		// dx = scale * (dy - dbeta/n - xhat * dgamma/n), with xhat = inv * (clean - mean).
		slope := graph.Mul(graph.Mul(scale, inv), graph.DivScalar(dgamma, -n))
		shift := graph.Sub(graph.Mul(scale, graph.DivScalar(dbeta, -n)), graph.Mul(slope, mean))
		matrix := graph.Concatenate([]*graph.Node{diagonal(scale), affineMatrix(slope, shift)}, 1)
		dx = product(matrix, graph.Concatenate([]*graph.Node{dy, clean}, 0))
		return dx, dgamma, dbeta
	}
}

// sumsOf takes from the product of an activation and one with its mask row, [.., c+1],
// the sums over pixels of the one by channel (last column) and of both channel by
// channel (diagonal).
func sumsOf(products *graph.Node, c int) (sums, pairs *graph.Node) {
	rows := graph.Slice(products, graph.AxisRange(0, c))
	sums = graph.Reshape(graph.Slice(rows, graph.AxisRange(), graph.AxisRange(c, c+1)), c)
	square := graph.Slice(rows, graph.AxisRange(), graph.AxisRange(0, c))
	return sums, graph.ReduceSum(graph.Mul(square, identity(square.Graph(), c)), 1)
}

// affineMatrix times an activation with its mask row is scale * activation + shift.
func affineMatrix(scale, shift *graph.Node) *graph.Node {
	return graph.Concatenate([]*graph.Node{diagonal(scale), graph.Reshape(shift, -1, 1)}, 1)
}

func (flat) affine(x act, scale, shift *graph.Node) act {
	return x.with(product(affineMatrix(scale, shift), graph.Mul(x.Node, mask(x.Graph(), x))))
}

func (flat) relu(x act) (act, func(dy *graph.Node) *graph.Node) {
	y := graph.MaxScalar(x.Node, 0)
	return x.with(y), func(dy *graph.Node) *graph.Node {
		zero := graph.ScalarZero(y.Graph(), y.DType())
		return graph.Where(graph.GreaterThan(y, zero), dy, zero)
	}
}

// pool averages each image by a product with a matrix of 1/size² and zeros.
func (flat) pool(x act) (*graph.Node, func(dy *graph.Node) *graph.Node) {
	m := rowLen(x.n, x.size)
	weights := make([]float32, x.n*m)
	for i := range x.n {
		eachPixel(x.size, func(p int) {
			weights[i*m+(i+1)*imageLen(x.size)+p] = 1 / float32(x.size*x.size)
		})
	}
	average := graph.ConstTensor(x.Graph(), tensors.FromFlatDataAndDimensions(weights, x.n, m))
	return productT(average, x.Node), func(dy *graph.Node) *graph.Node {
		return product(graph.TransposeAllAxes(dy, 1, 0), average)
	}
}

// maskRow is 1 at pixels and 0 elsewhere, [1, m].
func maskRow(g *graph.Graph, x act) *graph.Node {
	return constant(g, maskKey{n: x.n, size: x.size, rows: 1})
}

// mask is the mask row for every channel of x, of x's own shape: only then is a
// product value by value a plain loop.
func mask(g *graph.Graph, x act) *graph.Node {
	return constant(g, maskKey{n: x.n, size: x.size, rows: x.Shape().Dimensions[0]})
}

type maskKey struct{ n, size, rows int }

// constant makes a mask once for a graph.
func constant(g *graph.Graph, key maskKey) *graph.Node {
	if node, ok := g.State(key).(*graph.Node); ok {
		return node
	}
	m := rowLen(key.n, key.size)
	data := make([]float32, key.rows*m)
	for i := range key.n {
		eachPixel(key.size, func(p int) { data[(i+1)*imageLen(key.size)+p] = 1 })
	}
	for r := 1; r < key.rows; r++ {
		copy(data[r*m:(r+1)*m], data[:m])
	}
	node := graph.ConstTensor(g, tensors.FromFlatDataAndDimensions(data, key.rows, m))
	g.AttachState(key, node)
	return node
}

// eachPixel calls fn with the place of each pixel within an image.
func eachPixel(size int, fn func(p int)) {
	for y := range size {
		for x := range size {
			fn(y*(size+1) + x)
		}
	}
}

// diagonal makes a diagonal matrix [c, c] of a vector.
func diagonal(v *graph.Node) *graph.Node {
	c := v.Shape().Dimensions[0]
	return graph.Mul(identity(v.Graph(), c), graph.BroadcastToDims(graph.Reshape(v, 1, c), c, c))
}

func identity(g *graph.Graph, c int) *graph.Node {
	return graph.ConvertDType(graph.Diagonal(g, c), dtypes.Float32)
}
