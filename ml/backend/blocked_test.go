//go:build onnx

package backend

import (
	"math"
	"testing"

	"github.com/gomlx/compute"
	onnx "github.com/gomlx/compute-onnx/support/protos"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/google/go-cmp/cmp"
)

// Convolutions in blocks give what they give in pure Go: weights that lie ready or
// transposed, strides, uneven padding, and channels that make no whole blocks.
func TestBlockedConvolution(t *testing.T) {
	be, err := Open("onnx")
	if err != nil {
		t.Skipf("ONNX Runtime is not here: %v", err)
	}
	defer be.Close()
	pure, err := Open("go")
	if err != nil {
		t.Fatal(err)
	}
	defer pure.Close()

	const n, size = 3, 7
	oihw := compute.ConvolveAxesConfig{
		InputBatch: 0, InputChannels: 1, InputSpatial: []int{2, 3},
		KernelOutputChannels: 0, KernelInputChannels: 1, KernelSpatial: []int{2, 3},
		OutputBatch: 0, OutputChannels: 1, OutputSpatial: []int{2, 3},
	}
	ohwi, ihwo := oihw.Clone(), oihw.Clone()
	ihwo.KernelOutputChannels, ihwo.KernelInputChannels, ihwo.KernelSpatial = 3, 0, []int{1, 2}
	ohwi.KernelInputChannels, ohwi.KernelSpatial = 3, []int{1, 2}
	for _, tt := range []struct {
		name   string
		axes   compute.ConvolveAxesConfig
		x, w   []int
		stride int
		pads   [2]int
	}{
		{"3x3", oihw, []int{n, 32, size, size}, []int{16, 32, 3, 3}, 1, [2]int{1, 1}},
		{"transposed weights", ohwi, []int{n, 32, size, size}, []int{16, 3, 3, 32}, 1, [2]int{1, 1}},
		{"inputs first", ihwo, []int{n, 16, size, size}, []int{16, 3, 3, 32}, 1, [2]int{1, 1}},
		{"stride 2", ohwi, []int{n, 16, size, size}, []int{48, 3, 3, 16}, 2, [2]int{1, 1}},
		{"2x2 padded after", ohwi, []int{n, 16, size, size}, []int{32, 2, 2, 16}, 1, [2]int{0, 1}},
		{"1x1 stride 2", ohwi, []int{n, 16, size, size}, []int{32, 1, 1, 16}, 2, [2]int{0, 0}},
		{"half a block", oihw, []int{n, 8, size, size}, []int{16, 8, 3, 3}, 1, [2]int{1, 1}},
	} {
		compute := func(be *Backend) []float32 {
			exec, err := graph.NewExec(be.Compute(), func(x, w *graph.Node) *graph.Node {
				y := graph.ConvGeneral(x, w, tt.axes.Clone(), []int{tt.stride, tt.stride}, [][2]int{tt.pads, tt.pads}, nil, []int{1, 1}, 1, 1)
				return graph.Add(y, graph.OnesLike(y))
			})
			if err != nil {
				t.Fatal(err)
			}
			defer exec.Finalize()
			out, err := exec.Call(ramp(tt.x...), ramp(tt.w...))
			if err != nil {
				t.Fatalf("%s on %s: %v", tt.name, be.Name(), err)
			}
			return tensors.MustCopyFlatData[float32](out[0])
		}
		want, got := compute(pure), compute(be)
		if len(got) != len(want) {
			t.Fatalf("%s: %d values, want %d", tt.name, len(got), len(want))
		}
		for i := range want {
			if math.Abs(float64(got[i]-want[i])) > 1e-4 {
				t.Fatalf("%s: value %d is %v, want %v", tt.name, i, got[i], want[i])
			}
		}
	}
}

// ramp is a tensor of values in -.5 .. .5 that repeat late.
func ramp(dims ...int) *tensors.Tensor {
	n := 1
	for _, d := range dims {
		n *= d
	}
	data := make([]float32, n)
	for i := range data {
		data[i] = float32(i*7919%1009)/1009 - .5
	}
	return tensors.FromFlatDataAndDimensions(data, dims...)
}

// Only convolutions whose weights are computed are rewritten: those with constant ones
// the library puts into blocks itself.
func TestBlockConvolutions(t *testing.T) {
	t.Parallel()
	conv := func(x, w, y string) *onnx.NodeProto {
		return &onnx.NodeProto{OpType: "Conv", Input: []string{x, w}, Output: []string{y}}
	}
	transpose := &onnx.NodeProto{OpType: "Transpose", Input: []string{"raw"}, Output: []string{"turned"}, Attribute: []*onnx.AttributeProto{ints("perm", 0, 3, 1, 2)}}
	folded := &onnx.NodeProto{OpType: "Neg", Input: []string{"constant"}, Output: []string{"folded"}}
	model := &onnx.ModelProto{Graph: &onnx.GraphProto{
		Initializer: []*onnx.TensorProto{{Name: "constant"}},
		Node:        []*onnx.NodeProto{transpose, folded, conv("x", "turned", "a"), conv("x", "narrow", "b"), conv("x", "folded", "c"), conv("x", "direct", "d")},
	}}
	dims := map[string][]int{
		"raw": {32, 3, 3, 16}, "turned": {32, 16, 3, 3}, "narrow": {8, 16, 3, 3}, "folded": {32, 16, 3, 3}, "direct": {32, 16, 3, 3},
	}
	if !blockConvolutions(model, dims, 16) {
		t.Fatal("nothing is rewritten")
	}
	var got []string
	for _, n := range model.Graph.Node {
		got = append(got, n.OpType+" "+n.Input[0])
	}
	want := []string{
		"Neg constant",
		"ReorderInput x", "Reshape raw", "Transpose a_outputs", "Reshape a_inner", "Transpose a_split", "Reshape a_blocks", "Conv a_x", "ReorderOutput a_y",
		"Conv x", "Conv x",
		"Reshape direct", "Transpose d_outputs", "Reshape d_inner", "Transpose d_split", "Reshape d_blocks", "Conv a_x", "ReorderOutput d_y",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the nodes are (-want +got):\n%s", diff)
	}
}
