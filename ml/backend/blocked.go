//go:build onnx

package backend

import (
	"bytes"
	"slices"

	"github.com/gomlx/compute"
	onnxbackend "github.com/gomlx/compute-onnx"
	onnx "github.com/gomlx/compute-onnx/support/protos"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	"google.golang.org/protobuf/proto"
)

// ONNX Runtime's fast convolution works on channels in blocks of as many as fit a
// vector register, [n, c/block, h, w, block]. When it loads a model it rewrites the
// convolutions whose weights are constants for it, which in training none are: those
// go through copied patches and a general matrix product, at half the speed. So here
// the model is rewritten before it is loaded, with the same operators: reorder the
// input, bring the weights into blocks, convolve, reorder the output.
const (
	nchwcDomain = "com.microsoft.nchwc"
	noBlocks    = 0
)

// blocked is ONNX Runtime with its training graphs' convolutions in blocks.
type blocked struct {
	*onnxbackend.Backend
	block int
}

// inBlocks wraps a backend, if its library has convolutions in blocks.
func inBlocks(be *onnxbackend.Backend) compute.Backend {
	block := blockSize(be)
	if block == noBlocks {
		return be
	}
	be.SetKeepModelProto(true)
	return &blocked{Backend: be, block: block}
}

// Builder implements compute.Backend.
func (b *blocked) Builder(name string) compute.Builder {
	inner, ok := b.Backend.Builder(name).(*onnxbackend.Builder)
	if !ok {
		return b.Backend.Builder(name)
	}
	return &blockedBuilder{Builder: inner, backend: b}
}

// GoMLX tells by the backend of a buffer where it lives: what comes out of the backend
// within is given this one for its backend, and what goes in is unwrapped.
type blockedBuffer struct {
	compute.Buffer
	backend *blocked
}

func (b *blockedBuffer) Backend() compute.Backend { return b.backend }

func (b *blockedBuffer) CopyToDevice(device compute.DeviceNum) (compute.Buffer, error) {
	return b.backend.wrap(b.Buffer.CopyToDevice(device))
}

func (b *blocked) wrap(buffer compute.Buffer, err error) (compute.Buffer, error) {
	if err != nil {
		return nil, err
	}
	return &blockedBuffer{Buffer: buffer, backend: b}, nil
}

// BufferFromFlatData implements compute.DataInterface.
func (b *blocked) BufferFromFlatData(device compute.DeviceNum, flat any, shape shapes.Shape) (compute.Buffer, error) {
	return b.wrap(b.Backend.BufferFromFlatData(device, flat, shape))
}

// NewSharedBuffer implements compute.DataInterface.
func (b *blocked) NewSharedBuffer(device compute.DeviceNum, shape shapes.Shape) (compute.Buffer, any, error) {
	buffer, flat, err := b.Backend.NewSharedBuffer(device, shape)
	buffer, err = b.wrap(buffer, err)
	return buffer, flat, err
}

type blockedExecutable struct {
	compute.Executable
	backend *blocked
}

// Execute implements compute.Executable.
func (e *blockedExecutable) Execute(inputs []compute.Buffer, donate []bool, device compute.DeviceNum) ([]compute.Buffer, error) {
	plain := make([]compute.Buffer, len(inputs))
	for i, in := range inputs {
		plain[i] = in
		if wrapped, ok := in.(*blockedBuffer); ok {
			plain[i] = wrapped.Buffer
		}
	}
	outputs, err := e.Executable.Execute(plain, donate, device)
	if err != nil {
		return nil, err
	}
	for i, out := range outputs {
		outputs[i], _ = e.backend.wrap(out, nil)
	}
	return outputs, nil
}

type blockedBuilder struct {
	*onnxbackend.Builder
	backend *blocked
}

// Compile implements compute.Builder. A model that cannot be had or loaded in blocks
// is left as it was.
func (b *blockedBuilder) Compile() (compute.Executable, error) {
	exec, err := b.compile()
	if err != nil {
		return nil, err
	}
	return &blockedExecutable{Executable: exec, backend: b.backend}, nil
}

func (b *blockedBuilder) compile() (compute.Executable, error) {
	plain, err := b.Builder.Compile()
	if err != nil {
		return nil, err
	}
	var saved bytes.Buffer
	if err := onnxbackend.SaveModel(b.backend.Backend, plain, &saved, nil, nil); err != nil {
		return plain, nil
	}
	model := new(onnx.ModelProto)
	if err := proto.Unmarshal(saved.Bytes(), model); err != nil {
		return plain, nil
	}
	dims := map[string][]int{}
	for _, n := range b.MainFunction().Nodes() {
		dims[n.Name()] = n.Shape().Dimensions
	}
	if !blockConvolutions(model, dims, b.backend.block) {
		return plain, nil
	}
	data, err := proto.Marshal(model)
	if err != nil {
		return plain, nil
	}
	fast, err := onnxbackend.LoadModel(b.backend.Backend, bytes.NewReader(data))
	if err != nil {
		return plain, nil
	}
	plain.Finalize()
	return fast, nil
}

// rewriter holds a graph while its convolutions are rewritten.
type rewriter struct {
	graph     *onnx.GraphProto
	dims      map[string][]int
	producer  map[string]*onnx.NodeProto
	constants map[string]bool
	nodes     []*onnx.NodeProto
	inputs    map[string]string // in blocks, by the name of the plain one
	block     int
}

// blockConvolutions puts into blocks the convolutions whose weights are computed and
// whose channels come in whole blocks; dims are the shapes of the graph's values. It
// reports whether there were any.
func blockConvolutions(model *onnx.ModelProto, dims map[string][]int, block int) bool {
	r := &rewriter{
		graph: model.Graph, dims: dims, block: block,
		producer: map[string]*onnx.NodeProto{}, constants: map[string]bool{}, inputs: map[string]string{},
	}
	for _, t := range model.Graph.Initializer {
		r.constants[t.Name] = true
	}
	found := false
	for _, n := range model.Graph.Node {
		for _, out := range n.Output {
			r.producer[out] = n
		}
		// Nodes come after what they read, so that one pass finds all constants.
		if len(n.Input) > 0 && !slices.ContainsFunc(n.Input, func(in string) bool { return !r.constants[in] }) {
			r.constants[n.Output[0]] = true
		}
		if r.suits(n) {
			r.convolution(n)
			found = true
		} else {
			r.nodes = append(r.nodes, n)
		}
	}
	model.Graph.Node = r.withoutUnread()
	model.OpsetImport = append(model.OpsetImport, &onnx.OperatorSetIdProto{Domain: nchwcDomain, Version: 1})
	return found
}

// withoutUnread are the nodes less the transpositions that nothing reads any more.
func (r *rewriter) withoutUnread() []*onnx.NodeProto {
	read := map[string]bool{}
	for _, out := range r.graph.Output {
		read[out.Name] = true
	}
	for _, n := range r.nodes {
		for _, in := range n.Input {
			read[in] = true
		}
	}
	return slices.DeleteFunc(r.nodes, func(n *onnx.NodeProto) bool { return n.OpType == "Transpose" && !read[n.Output[0]] })
}

func (r *rewriter) suits(n *onnx.NodeProto) bool {
	if n.OpType != "Conv" || n.Domain != "" || len(n.Input) != 2 || r.constants[n.Input[1]] {
		return false
	}
	for _, a := range n.Attribute {
		if a.Name == "group" && a.I != 1 {
			return false
		}
	}
	w := r.dims[n.Input[1]]
	return len(w) == 4 && w[0]%r.block == 0 && w[1]%r.block == 0
}

func (r *rewriter) convolution(n *onnx.NodeProto) {
	x, ok := r.inputs[n.Input[0]]
	if !ok {
		x = r.add(nchwcDomain, "ReorderInput", n.Output[0]+"_x", []string{n.Input[0]})
		r.inputs[n.Input[0]] = x
	}
	w := r.dims[n.Input[1]]
	attributes := append(slices.Clip(n.Attribute), ints("kernel_shape", w[2], w[3]))
	y := r.add(nchwcDomain, "Conv", n.Output[0]+"_y", []string{x, r.weights(n.Input[1], n.Output[0])}, attributes...)
	r.add(nchwcDomain, "ReorderOutput", n.Output[0], []string{y}, &onnx.AttributeProto{Name: "channels", Type: onnx.AttributeProto_INT, I: int64(w[0])})
}

// weights brings [o, i, h, w] into [o/b, i/b, h, w, b of i, b of o]. Where they are a
// transposed tensor already, that one is read instead.
func (r *rewriter) weights(name, unique string) string {
	source, perm := name, []int{0, 1, 2, 3}
	if p := r.producer[name]; p != nil && p.OpType == "Transpose" && len(p.Attribute) == 1 && len(r.dims[p.Input[0]]) == 4 {
		source = p.Input[0]
		for i, v := range p.Attribute[0].Ints {
			perm[i] = int(v)
		}
	}
	from := r.dims[source]
	// split lists the axes with those of which that are o and i in two; axis a becomes
	// at[a] and, where split, at[a]+1.
	var split, at []int
	axis := func(a int, blocks bool) {
		at = append(at, len(split))
		if blocks {
			split = append(split, from[a]/r.block, r.block)
		} else {
			split = append(split, from[a])
		}
	}
	var order []int
	if perm[0] == 0 {
		// Where the outputs come first, moving their blocks to the end by itself keeps
		// the second step to moving whole rows.
		rest := from[1] * from[2] * from[3]
		source = r.reshape(source, unique+"_outputs", from[0]/r.block, r.block, rest)
		source = r.add("", "Transpose", unique+"_inner", []string{source}, ints("perm", 0, 2, 1))
		at, split = []int{0}, []int{from[0] / r.block}
		for a := 1; a < 4; a++ {
			axis(a, a == perm[1])
		}
		split = append(split, r.block)
		order = []int{0, at[perm[1]], at[perm[2]], at[perm[3]], at[perm[1]] + 1, len(split) - 1}
	} else {
		for a := range from {
			axis(a, a == perm[0] || a == perm[1])
		}
		order = []int{at[perm[0]], at[perm[1]], at[perm[2]], at[perm[3]], at[perm[1]] + 1, at[perm[0]] + 1}
	}
	source = r.reshape(source, unique+"_split", split...)
	moved := r.add("", "Transpose", unique+"_blocks", []string{source}, ints("perm", order...))
	return r.reshape(moved, unique+"_w", r.dims[name]...)
}

func (r *rewriter) reshape(x, name string, to ...int) string {
	shape := &onnx.TensorProto{Name: name + "_shape", DataType: int32(onnx.TensorProto_INT64), Dims: []int64{int64(len(to))}}
	for _, d := range to {
		shape.Int64Data = append(shape.Int64Data, int64(d))
	}
	r.graph.Initializer = append(r.graph.Initializer, shape)
	return r.add("", "Reshape", name, []string{x, shape.Name})
}

// add appends a node with one output, of the given name.
func (r *rewriter) add(domain, op, output string, inputs []string, attributes ...*onnx.AttributeProto) string {
	r.nodes = append(r.nodes, &onnx.NodeProto{OpType: op, Domain: domain, Input: inputs, Output: []string{output}, Attribute: attributes})
	return output
}

func ints(name string, values ...int) *onnx.AttributeProto {
	a := &onnx.AttributeProto{Name: name, Type: onnx.AttributeProto_INTS}
	for _, v := range values {
		a.Ints = append(a.Ints, int64(v))
	}
	return a
}

// blockSize is how many channels the library puts into a block on this machine, found
// by having it reorder 64 channels of two pixels; noBlocks where it cannot.
func blockSize(be *onnxbackend.Backend) int {
	const channels = 64
	value := func(name string) *onnx.ValueInfoProto {
		t := &onnx.TypeProto_Tensor{ElemType: int32(onnx.TensorProto_FLOAT), Shape: onnxShape(1, channels, 1, 2)}
		return &onnx.ValueInfoProto{Name: name, Type: &onnx.TypeProto{Value: &onnx.TypeProto_TensorType{TensorType: t}}}
	}
	data, err := proto.Marshal(&onnx.ModelProto{
		IrVersion: 9,
		Graph: &onnx.GraphProto{
			Name: "blocks", Input: []*onnx.ValueInfoProto{value("x")}, Output: []*onnx.ValueInfoProto{value("y")},
			Node: []*onnx.NodeProto{{OpType: "ReorderInput", Domain: nchwcDomain, Input: []string{"x"}, Output: []string{"y"}}},
		},
		OpsetImport: []*onnx.OperatorSetIdProto{{Version: 21}, {Domain: nchwcDomain, Version: 1}},
	})
	if err != nil {
		return noBlocks
	}
	exec, err := onnxbackend.LoadModel(be, bytes.NewReader(data))
	if err != nil {
		return noBlocks
	}
	defer exec.Finalize()
	plain, reordered := make([]float32, 2*channels), make([]float32, 2*channels)
	for i := range plain {
		plain[i] = float32(i)
	}
	in, err := be.BufferFromFlatData(0, plain, shapes.Make(dtypes.Float32, 1, channels, 1, 2))
	if err != nil {
		return noBlocks
	}
	out, err := exec.Execute([]compute.Buffer{in}, []bool{true}, 0)
	if err != nil || out[0].ToFlatData(reordered) != nil || out[0].Finalize() != nil {
		return noBlocks
	}
	// The block's first pixels come first, and then its second ones.
	return max(slices.Index(reordered, 1), noBlocks)
}

func onnxShape(dims ...int) *onnx.TensorShapeProto {
	shape := new(onnx.TensorShapeProto)
	for _, d := range dims {
		shape.Dim = append(shape.Dim, &onnx.TensorShapeProto_Dimension{Value: &onnx.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}})
	}
	return shape
}
