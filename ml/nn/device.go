package nn

import (
	"context"
	"fmt"
	"slices"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
)

// On a device of its own, a GPU, a step is over before the host has prepared the next.
// So the labeled images lie on the device, as bytes, and one call runs many steps: each
// gathers its images, crops, mirrors and normalises them in the graph. The host sends,
// once an epoch, the order of the images and where to crop, drawn as for any backend,
// and fetches the loss.

// How many steps run between two looks at the context: of a loop, and of a graph that
// holds them all.
const (
	stepsPerCall  = 64
	unrolledSteps = 2
)

// look is what the host sends for each image of a step: its index among the images,
// the rows and columns to crop from, and 1 to mirror it.
const (
	lookImage = iota
	lookRow
	lookColumn
	lookFlip
	lookLen
)

// resident is a trainer whose images are on the device.
type resident struct {
	*trainer
	loops  bool // in the graph; otherwise it holds the steps of a call one after the other
	exec   *graph.Exec
	images *tensors.Tensor // uint8 [pixels of all images, 3]
	labels *tensors.Tensor // int32 [images]
}

func newResident(t *trainer, loops bool, images Images, labels []int) (*resident, error) {
	r := &resident{trainer: t, loops: loops}
	short := make([]int32, len(labels))
	for i, l := range labels {
		short[i] = int32(l)
	}
	r.images = tensors.FromFlatDataAndDimensions(images.RGB, len(images.RGB)/inputChannels, inputChannels)
	r.labels = tensors.FromFlatDataAndDimensions(short, len(short))
	var err error
	r.exec, err = graph.NewExec(t.be, r.graph)
	return r, err
}

func (r *resident) close() {
	r.exec.Finalize()
	finalize([]*tensors.Tensor{r.images, r.labels})
}

// The inputs of resident's graph after the state: the sum of the losses so far, each
// weighted by its batch; the data; looks [steps, batch, lookLen] and rates [steps] of
// an epoch; and which of its steps to run, from and up to but not with.
const (
	inLoss = stateLen + iota
	inImages
	inLabels
	inLooks
	inRates
	inFrom
	inTo
	inLen
)

// graph writes the steps of a call; the state and the sum of the losses come out.
func (r *resident) graph(in []*graph.Node) []*graph.Node {
	step := func(i *graph.Node, v []*graph.Node) []*graph.Node {
		state, loss := r.stepAt(i, v)
		v[inLoss] = loss
		copy(v, state)
		return v
	}
	if r.loops {
		return repeat(in[inFrom], in[inTo], in, step)[:inLoss+1]
	}
	v := slices.Clone(in)
	for i := range v[inRates].Shape().Dimensions[0] {
		v = step(graph.Const(in[0].Graph(), int32(i)), v)
	}
	return v[:inLoss+1]
}

// repeat writes a loop: body takes the step, from..to-1, and the state to the next one.
func repeat(from, to *graph.Node, state []*graph.Node, body func(step *graph.Node, state []*graph.Node) []*graph.Node) []*graph.Node {
	g := from.Graph()
	// The loop sees nothing but its own state: the step, its end, and the caller's.
	initial := append([]*graph.Node{from, to}, state...)
	declare := func(g *graph.Graph) []*graph.Node {
		v := make([]*graph.Node, len(initial))
		for i, node := range initial {
			v[i] = graph.Parameter(g, fmt.Sprintf("loop%d", i), node.Shape())
		}
		return v
	}
	more := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		v := declare(g)
		return []*graph.Node{graph.LessThan(v[0], v[1])}
	})
	once := graph.NewClosure(g, func(g *graph.Graph) []*graph.Node {
		v := declare(g)
		return append([]*graph.Node{graph.AddScalar(v[0], 1), v[1]}, body(v[0], v[2:])...)
	})
	return graph.While(more, once, initial...)[2:]
}

// stepAt writes one step of the loop; v are the graph's inputs.
func (r *resident) stepAt(step *graph.Node, v []*graph.Node) (state []*graph.Node, loss *graph.Node) {
	looks, rate := graph.Gather(v[inLooks], step), graph.Gather(v[inRates], step)
	n := looks.Shape().Dimensions[0]
	chosen := graph.Slice(looks, graph.AxisRange(), graph.AxisElem(lookImage)) // [n, 1]
	oneHot := graph.OneHot(graph.Gather(v[inLabels], chosen), r.cfg.Outputs, dtypes.Float32)
	images := normalise(view4(v[inImages], looks, r.cfg.InputSize), r.cfg.Mean, r.cfg.Std)
	state, loss = r.write(v[:stateLen], images, oneHot, rate)
	return state, graph.Add(v[inLoss], graph.MulScalar(loss, float64(n)))
}

// view4 gathers images as their looks [n, lookLen] say from the pixels of all of them,
// [pixels, 3]: float32 [n, size, size, 3] in 0..255. Beyond an image's edge is black.
func view4(pixels, looks *graph.Node, size int) *graph.Node {
	g := looks.Graph()
	n := looks.Shape().Dimensions[0]
	column := func(i int) *graph.Node {
		return graph.Reshape(graph.Slice(looks, graph.AxisRange(), graph.AxisElem(i)), n, 1, 1)
	}
	line := graph.Iota(g, shapes.Make(dtypes.Int32, 1, size, size), 1)
	across := graph.Iota(g, shapes.Make(dtypes.Int32, 1, size, size), 2)
	mirrored := graph.Mul(column(lookFlip), graph.AddScalar(graph.MulScalar(across, -2), size-1))
	y := graph.Add(line, column(lookRow)) // [n, size, size]
	x := graph.Add(graph.Add(across, mirrored), column(lookColumn))
	within := func(v *graph.Node) *graph.Node { return graph.MinScalar(graph.MaxScalar(v, 0), size-1) }
	seen := graph.LogicalAnd(graph.Equal(y, within(y)), graph.Equal(x, within(x)))
	at := graph.Add(graph.MulScalar(column(lookImage), size*size), graph.Add(graph.MulScalar(within(y), size), within(x)))
	rgb := graph.ConvertDType(graph.Gather(pixels, graph.InsertAxes(at, -1)), dtypes.Float32)
	return graph.Mul(rgb, graph.InsertAxes(graph.ConvertDType(seen, dtypes.Float32), -1))
}

// normalise brings pixels [n, size, size, 3] in 0..255 into native's layout, by the
// mean and deviation of 0..1.
func normalise(rgb *graph.Node, mean, std [3]float64) *graph.Node {
	g := rgb.Graph()
	var scale, shift [3]float32
	for c := range 3 {
		scale[c], shift[c] = float32(1/(255*std[c])), float32(-mean[c]/std[c])
	}
	vector := func(v [3]float32) *graph.Node { return graph.Reshape(graph.Const(g, v[:]), 1, 1, 1, 3) }
	return graph.TransposeAllAxes(graph.Add(graph.Mul(rgb, vector(scale)), vector(shift)), 0, 3, 1, 2)
}

// epoch runs the steps of an epoch and returns the mean loss over its images. looks has
// lookLen values for each image in the order of training, rates one for each step. A
// last batch that is short runs by itself, in a graph of its own size.
func (r *resident) epoch(ctx context.Context, looks []int32, rates []float32, ran func(steps int)) (loss float64, err error) {
	images, batch := len(looks)/lookLen, r.cfg.Batch
	whole := images / batch
	sum := tensors.FromScalar(float32(0))
	run := func(looks []int32, rates []float32, batch int) error {
		for len(rates) > 0 {
			sent := len(rates)
			if !r.loops {
				sent = min(sent, unrolledSteps)
			}
			if err := r.steps(ctx, &sum, looks[:sent*batch*lookLen], rates[:sent], ran); err != nil {
				return err
			}
			looks, rates = looks[sent*batch*lookLen:], rates[sent:]
		}
		return nil
	}
	err = safely(func() error {
		if err := run(looks[:whole*batch*lookLen], rates[:whole], batch); err != nil {
			return err
		}
		if err := run(looks[whole*batch*lookLen:], rates[whole:], images-whole*batch); err != nil {
			return err
		}
		loss = float64(tensors.ToScalar[float32](sum)) / float64(images)
		return sum.FinalizeAll()
	})
	return loss, err
}

// steps sends the looks and rates of so many steps and runs them.
func (r *resident) steps(ctx context.Context, sum **tensors.Tensor, looks []int32, rates []float32, ran func(steps int)) error {
	n := len(rates)
	data := []*tensors.Tensor{
		tensors.FromFlatDataAndDimensions(looks, n, len(looks)/lookLen/n, lookLen),
		tensors.FromFlatDataAndDimensions(rates, n),
	}
	defer finalize(data)
	for from := 0; from < n; from += stepsPerCall {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := min(from+stepsPerCall, n)
		if err := r.call(sum, data[0], data[1], from, to); err != nil {
			return err
		}
		ran(to - from)
	}
	return nil
}

// call runs the steps from..to-1; the state and the sum of the losses stay on the
// device.
func (r *resident) call(sum **tensors.Tensor, looks, rates *tensors.Tensor, from, to int) error {
	args := make([]any, inLen)
	for i, s := range append(r.state[:stateLen:stateLen], *sum) {
		donated, err := graph.DonateTensorBuffer(s, r.be, 0)
		if err != nil {
			return err
		}
		args[i] = donated
	}
	args[inImages], args[inLabels], args[inLooks], args[inRates] = r.images, r.labels, looks, rates
	args[inFrom], args[inTo] = int32(from), int32(to)
	out, err := r.exec.Call(args...)
	if err != nil {
		return err
	}
	copy(r.state, out[:stateLen])
	*sum = out[stateLen]
	return nil
}
