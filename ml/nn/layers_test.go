package nn

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"winnow/ml/backend"
)

// image4 is an activation in float64, channels last: the references' plain layout.
type image4 struct {
	n, size, c int
	v          []float64
}

func newImage4(n, size, c int) image4 {
	return image4{n, size, c, make([]float64, n*size*size*c)}
}

func randomImage4(n, size, c int, rng *rand.Rand) image4 {
	im := newImage4(n, size, c)
	for i := range im.v {
		im.v[i] = rng.NormFloat64()
	}
	return im
}

func (im image4) at(i, y, x, c int) *float64 {
	return &im.v[((i*im.size+y)*im.size+x)*im.c+c]
}

// lay puts an activation into a form's layout.
func lay(f form, im image4) *tensors.Tensor {
	l := f.layout(im.n, im.c, im.size)
	data := make([]float32, l.size())
	for i := range im.n {
		for y := range im.size {
			for x := range im.size {
				for c := range im.c {
					data[l.offset+c*l.channel+i*l.image+y*l.row+x*l.pixel] = float32(*im.at(i, y, x, c))
				}
			}
		}
	}
	return tensors.FromFlatDataAndDimensions(data, l.dims...)
}

// unlay reads an activation back.
func unlay(f form, t *tensors.Tensor, n, size, c int) image4 {
	l := f.layout(n, c, size)
	im := newImage4(n, size, c)
	data := tensors.MustCopyFlatData[float32](t)
	for i := range n {
		for y := range size {
			for x := range size {
				for ch := range c {
					*im.at(i, y, x, ch) = float64(data[l.offset+ch*l.channel+i*l.image+y*l.row+x*l.pixel])
				}
			}
		}
	}
	return im
}

func randomWeights(rng *rand.Rand, dims ...int) ([]float64, *tensors.Tensor) {
	n := 1
	for _, d := range dims {
		n *= d
	}
	w, data := make([]float64, n), make([]float32, n)
	for i := range w {
		data[i] = float32(rng.NormFloat64())
		w[i] = float64(data[i])
	}
	return w, tensors.FromFlatDataAndDimensions(data, dims...)
}

// convolve is the reference: a kernel x kernel convolution with the gradients by its
// input and weights; w is [o, kernel, kernel, c].
func convolve(x image4, w []float64, o, kernel, stride int) (y image4, back func(dy image4) (dx image4, dw []float64)) {
	size := (x.size + stride - 1) / stride
	y = newImage4(x.n, size, o)
	// each visits every product: pixel (i, yy, xx) of output oo takes weight k times
	// the input value at place.
	each := func(fn func(i, yy, xx, oo, k, place int)) {
		for k := range w {
			c, kx, ky, oo := k%x.c, k/x.c%kernel, k/x.c/kernel%kernel, k/x.c/kernel/kernel
			for p := range x.n * size * size {
				i, yy, xx := p/size/size, p/size%size, p%size
				sy, sx := yy*stride+ky-kernel/2, xx*stride+kx-kernel/2
				if sy >= 0 && sy < x.size && sx >= 0 && sx < x.size {
					fn(i, yy, xx, oo, k, ((i*x.size+sy)*x.size+sx)*x.c+c)
				}
			}
		}
	}
	each(func(i, yy, xx, oo, k, place int) { *y.at(i, yy, xx, oo) += w[k] * x.v[place] })
	return y, func(dy image4) (image4, []float64) {
		dx, dw := newImage4(x.n, x.size, x.c), make([]float64, len(w))
		each(func(i, yy, xx, oo, k, place int) {
			g := *dy.at(i, yy, xx, oo)
			dw[k] += g * x.v[place]
			dx.v[place] += g * w[k]
		})
		return dx, dw
	}
}

func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tolerance*max(1, math.Abs(want[i]))) {
			t.Errorf("%s: value %d is %v, want %v", what, i, got[i], want[i])
			return
		}
	}
}

func float64s(t *tensors.Tensor) []float64 {
	data := tensors.MustCopyFlatData[float32](t)
	out := make([]float64, len(data))
	for i, v := range data {
		out[i] = float64(v)
	}
	return out
}

// run executes a graph once.
func run(t *testing.T, be *backend.Backend, fn func([]*graph.Node) []*graph.Node, args ...any) []*tensors.Tensor {
	t.Helper()
	var out []*tensors.Tensor
	err := safely(func() error {
		exec, err := graph.NewExec(be.Compute(), fn)
		if err != nil {
			return err
		}
		defer exec.Finalize()
		out, err = exec.Call(args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// shapesUnderTest are the batches and sizes that the layers are tested at: odd, even,
// one image, one pixel.
var shapesUnderTest = []struct{ n, size int }{{2, 6}, {3, 5}, {1, 4}, {2, 1}, {1, 2}, {2, 3}}

// eachForm runs a test with each form on the pure-Go backend, and with each other
// backend that is present in the form that it gets.
func eachForm(t *testing.T, test func(t *testing.T, be *backend.Backend, f form)) {
	be := openGo(t)
	for name, f := range map[string]form{"flat": flat{}, "native": native{}, "dilated": native{dilated: true}, "products": native{products: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, be, f)
		})
	}
	for _, be := range others(t) {
		t.Run(be.Name(), func(t *testing.T) {
			t.Parallel()
			test(t, be, formFor(be))
		})
	}
}

func TestConvolution(t *testing.T) {
	t.Parallel()
	eachForm(t, testConvolution)
}

func testConvolution(t *testing.T, be *backend.Backend, f form) {
	rng := rand.New(rand.NewPCG(1, 2))
	const c, o = 3, 4
	for _, s := range shapesUnderTest {
		x, dy := randomImage4(s.n, s.size, c, rng), randomImage4(s.n, s.size, o, rng)
		w, wt := randomWeights(rng, o, 3, 3, c)
		wantY, back := convolve(x, w, o, 3, 1)
		wantDX, wantDW := back(dy)
		out := run(t, be, func(in []*graph.Node) []*graph.Node {
			a := act{Node: in[0], n: s.n, size: s.size}
			y, back := f.conv(a, in[1])
			dx, dw := back(in[2])
			_, stemBack := f.stem(a, in[1])
			return []*graph.Node{y.Node, dx, dw, stemBack(in[2])}
		}, lay(f, x), wt, lay(f, dy))
		near(t, "y", unlay(f, out[0], s.n, s.size, o).v, wantY.v, 1e-5)
		near(t, "dx", unlay(f, out[1], s.n, s.size, c).v, wantDX.v, 1e-5)
		near(t, "dw", float64s(out[2]), wantDW, 1e-5)
		near(t, "the stem's dw", float64s(out[3]), wantDW, 1e-5)
	}
}

func TestDown(t *testing.T) {
	t.Parallel()
	eachForm(t, testDown)
}

func testDown(t *testing.T, be *backend.Backend, f form) {
	rng := rand.New(rand.NewPCG(3, 4))
	const c, o = 3, 5
	for _, s := range shapesUnderTest {
		h := half(s.size)
		x, dy, ds := randomImage4(s.n, s.size, c, rng), randomImage4(s.n, h, o, rng), randomImage4(s.n, h, o, rng)
		w, wt := randomWeights(rng, o, 3, 3, c)
		v, vt := randomWeights(rng, o, 1, 1, c)
		wantY, backY := convolve(x, w, o, 3, 2)
		wantS, backS := convolve(x, v, o, 1, 2)
		wantDX, wantDW := backY(dy)
		moreDX, wantDV := backS(ds)
		for i := range wantDX.v {
			wantDX.v[i] += moreDX.v[i]
		}
		out := run(t, be, func(in []*graph.Node) []*graph.Node {
			y, s, back := f.down(act{Node: in[0], n: s.n, size: s.size}, in[1], in[2])
			dx, dw, dv := back(in[3], in[4])
			return []*graph.Node{y.Node, s.Node, dx, dw, dv}
		}, lay(f, x), wt, vt, lay(f, dy), lay(f, ds))
		near(t, "y", unlay(f, out[0], s.n, h, o).v, wantY.v, 1e-5)
		near(t, "shortcut", unlay(f, out[1], s.n, h, o).v, wantS.v, 1e-5)
		near(t, "dx", unlay(f, out[2], s.n, s.size, c).v, wantDX.v, 1e-5)
		near(t, "dw", float64s(out[3]), wantDW, 1e-5)
		near(t, "the shortcut's dw", float64s(out[4]), wantDV, 1e-5)
	}
}

// TestNorm compares batch normalisation of a convolution's output, and its gradients,
// with the textbook in float64.
func TestNorm(t *testing.T) {
	t.Parallel()
	eachForm(t, testNorm)
}

func testNorm(t *testing.T, be *backend.Backend, f form) {
	rng := rand.New(rand.NewPCG(5, 6))
	const c, o = 2, 3
	for _, s := range shapesUnderTest {
		x, dy := randomImage4(s.n, s.size, c, rng), randomImage4(s.n, s.size, o, rng)
		w, wt := randomWeights(rng, o, 3, 3, c)
		gamma, gammaT := randomWeights(rng, o)
		beta, betaT := randomWeights(rng, o)
		conv, _ := convolve(x, w, o, 3, 1)

		n := float64(s.n * s.size * s.size)
		mean, variance := make([]float64, o), make([]float64, o)
		for i, v := range conv.v {
			mean[i%o] += v / n
		}
		for i, v := range conv.v {
			variance[i%o] += (v - mean[i%o]) * (v - mean[i%o]) / n
		}
		dgamma, dbeta := make([]float64, o), make([]float64, o)
		y, xhat, dx := make([]float64, len(conv.v)), make([]float64, len(conv.v)), make([]float64, len(conv.v))
		for i, v := range conv.v {
			k := i % o
			xhat[i] = (v - mean[k]) / math.Sqrt(variance[k]+normEpsilon)
			y[i] = gamma[k]*xhat[i] + beta[k]
			dgamma[k] += dy.v[i] * xhat[i]
			dbeta[k] += dy.v[i]
		}
		for i := range dx {
			k := i % o
			dx[i] = gamma[k] / math.Sqrt(variance[k]+normEpsilon) * (dy.v[i] - dbeta[k]/n - xhat[i]*dgamma[k]/n)
		}

		out := run(t, be, func(in []*graph.Node) []*graph.Node {
			conv, _ := f.conv(act{Node: in[0], n: s.n, size: s.size}, in[1])
			y, mean, variance, back := f.norm(conv, in[2], in[3])
			dx, dgamma, dbeta := back(in[4])
			return []*graph.Node{y.Node, mean, variance, dx, dgamma, dbeta}
		}, lay(f, x), wt, gammaT, betaT, lay(f, dy))
		// One value a channel has variance 0: its rounding error, divided by the root
		// of epsilon, is all there is.
		tolerance := 1e-4
		if n == 1 {
			tolerance = 1e-2
		}
		near(t, "y", unlay(f, out[0], s.n, s.size, o).v, y, tolerance)
		near(t, "mean", float64s(out[1]), mean, tolerance)
		near(t, "variance", float64s(out[2]), variance, tolerance)
		near(t, "dx", unlay(f, out[3], s.n, s.size, o).v, dx, tolerance)
		near(t, "dgamma", float64s(out[4]), dgamma, tolerance)
		near(t, "dbeta", float64s(out[5]), dbeta, tolerance)
	}
}

// referenceLoss is the detector's loss in float64, straight from its definition.
func referenceLoss(logits [][]float64, labels []int, e *Energy) float64 {
	lse := func(v []float64) float64 {
		top := math.Inf(-1)
		for _, f := range v {
			top = max(top, f)
		}
		sum := 0.0
		for _, f := range v {
			sum += math.Exp(f - top)
		}
		return top + math.Log(sum)
	}
	loss := 0.0
	var known, unknown, nk, nu float64
	for i, row := range logits {
		loss += (lse(row) - row[labels[i]]) / float64(len(logits))
		if e == nil {
			continue
		}
		c := len(row) - 1
		energy := -lse(row[:c])
		if labels[i] < c {
			known += math.Pow(max(0, energy-e.MarginKnown), 2)
			nk++
		} else {
			unknown += math.Pow(max(0, e.MarginUnknown-energy), 2)
			nu++
		}
	}
	if e != nil {
		loss += e.Weight * (known/max(nk, 1) + unknown/max(nu, 1))
	}
	return loss
}

func TestLosses(t *testing.T) {
	t.Parallel()
	be := openGo(t)
	paper := &Energy{Weight: 0.01, MarginKnown: -25, MarginUnknown: -7}
	tests := []struct {
		name   string
		labels []int
		scale  float64
		energy *Energy
	}{
		{"cross-entropy alone", []int{0, 1, 2, 3, 0}, 2, nil},
		{"both groups", []int{0, 1, 2, 3, 3}, 2, paper},
		{"both margins active and not", []int{0, 3, 1, 3, 2, 3, 0, 3}, 20, paper},
		{"no unknown in the batch", []int{0, 1, 2, 1}, 2, paper},
		{"no known in the batch", []int{3, 3}, 10, paper},
		{"large logits", []int{0, 1, 3, 3}, 200, paper},
		{"one image", []int{3}, 10, paper},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			const outputs = 4
			rng := rand.New(rand.NewPCG(7, 8))
			logits, flatLogits := make([][]float64, len(tt.labels)), []float32{}
			oneHot := make([]float32, len(tt.labels)*outputs)
			for i, label := range tt.labels {
				oneHot[i*outputs+label] = 1
				for range outputs {
					v := float32(rng.NormFloat64() * tt.scale)
					flatLogits = append(flatLogits, v)
					logits[i] = append(logits[i], float64(v))
				}
			}
			want := referenceLoss(logits, tt.labels, tt.energy)
			var gradient []float64
			const h = 1e-6
			for i := range logits {
				for j := range logits[i] {
					at := logits[i][j]
					logits[i][j] = at + h
					up := referenceLoss(logits, tt.labels, tt.energy)
					logits[i][j] = at - h
					gradient = append(gradient, (up-referenceLoss(logits, tt.labels, tt.energy))/(2*h))
					logits[i][j] = at
				}
			}
			out := run(t, be, func(in []*graph.Node) []*graph.Node {
				loss := totalLoss(in[0], in[1], tt.energy)
				return []*graph.Node{loss, graph.Gradient(loss, in[0])[0]}
			}, tensors.FromFlatDataAndDimensions(flatLogits, len(tt.labels), outputs),
				tensors.FromFlatDataAndDimensions(oneHot, len(tt.labels), outputs))
			near(t, "loss", float64s(out[0]), []float64{want}, 1e-4)
			near(t, "gradient", float64s(out[1]), gradient, 1e-3)
		})
	}
}

// TestNetworkGradient walks along the gradient of all weights and compares the slope of
// the loss with the gradient's length.
func TestNetworkGradient(t *testing.T) {
	t.Parallel()
	be := openGo(t)
	c := torchCases(t)[1]
	cfg := Config{Outputs: c.Outputs, Width: c.Width, InputSize: c.Size, Energy: &Energy{Weight: 0.01, MarginKnown: -25, MarginUnknown: -7}}
	weights, stats := c.start()

	// lossAt is the loss of the weights, and the weights after a step of the rate
	// without momentum or decay.
	lossAt := func(weights [][]float32, rate float64) (float64, [][]float32) {
		tr, err := newTrainer(be, cfg, weights, stats)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.close()
		l := tr.form.layout(c.Batch, inputChannels, c.Size)
		data, oneHot := c.batch(l)
		loss, err := tr.step(l, data, oneHot, rate)
		if err != nil {
			t.Fatal(err)
		}
		after, _, err := tr.weightsAndStats()
		if err != nil {
			t.Fatal(err)
		}
		return loss, after
	}
	_, after := lossAt(weights, 1)
	square := 0.0
	for i := range weights {
		for j := range weights[i] {
			g := float64(weights[i][j] - after[i][j])
			square += g * g
		}
	}
	length := math.Sqrt(square)
	const h = 3e-4
	moved := func(by float64) [][]float32 {
		out := make([][]float32, len(weights))
		for i := range weights {
			out[i] = make([]float32, len(weights[i]))
			for j := range weights[i] {
				out[i][j] = weights[i][j] + float32(by*float64(weights[i][j]-after[i][j])/length)
			}
		}
		return out
	}
	up, _ := lossAt(moved(h), 0)
	down, _ := lossAt(moved(-h), 0)
	if slope := (up - down) / (2 * h); math.Abs(slope-length) > 0.02*length {
		t.Errorf("the loss rises by %v along the gradient, whose length is %v", slope, length)
	}
}
