package nn

import (
	"fmt"

	"winnow"
)

// MinInputSize is the smallest input: three halvings leave one pixel of eight.
const MinInputSize = 8

// The shape of ResNet-18 in its CIFAR form: four stages of two basic blocks, each
// stage twice as wide as the one before and half its size.
const (
	stages         = 4
	blocksPerStage = 2
	inputChannels  = 3
)

// tensorSpec names one weight or running statistic of the network. Convolution
// weights are [out, kernel, kernel, in], PyTorch's order with the input channels last.
type tensorSpec struct {
	name  string
	dims  []int
	fanIn int     // of a weight that is drawn at random; 0 for the constant ones
	value float32 // of a constant one
}

func (s tensorSpec) size() int {
	n := 1
	for _, d := range s.dims {
		n *= d
	}
	return n
}

// blockName returns the name that PyTorch's model gives a block.
func blockName(stage, block int) string { return fmt.Sprintf("layer%d.%d", stage+1, block) }

// stride is the stride of a block's first convolution.
func stride(stage, block int) int {
	if stage > 0 && block == 0 {
		return 2
	}
	return 1
}

// architecture lists the trained weights and the running statistics of a network, in
// a fixed order: that of checkpoints and of the graphs' parameters.
func architecture(outputs, width int) (weights, stats []tensorSpec) {
	conv := func(name string, out, kernel, in int) {
		weights = append(weights, tensorSpec{name: name + ".weight", dims: []int{out, kernel, kernel, in}, fanIn: in * kernel * kernel})
	}
	norm := func(name string, channels int) {
		weights = append(weights,
			tensorSpec{name: name + ".weight", dims: []int{channels}, value: 1},
			tensorSpec{name: name + ".bias", dims: []int{channels}})
		stats = append(stats,
			tensorSpec{name: name + ".running_mean", dims: []int{channels}},
			tensorSpec{name: name + ".running_var", dims: []int{channels}, value: 1})
	}
	conv("conv1", width, 3, inputChannels)
	norm("bn1", width)
	in := width
	for stage := range stages {
		out := width << stage
		for block := range blocksPerStage {
			name := blockName(stage, block)
			conv(name+".conv1", out, 3, in)
			norm(name+".bn1", out)
			conv(name+".conv2", out, 3, out)
			norm(name+".bn2", out)
			if stride(stage, block) != 1 {
				conv(name+".shortcut.0", out, 1, in)
				norm(name+".shortcut.1", out)
			}
			in = out
		}
	}
	weights = append(weights,
		tensorSpec{name: "linear.weight", dims: []int{outputs, in}, fanIn: in},
		tensorSpec{name: "linear.bias", dims: []int{outputs}, fanIn: in})
	return weights, stats
}

// features is the width of the last stage.
func features(width int) int { return width << (stages - 1) }

func checkShape(outputs, width, inputSize int) error {
	switch {
	case outputs < 1:
		return winnow.Invalid("classes", "A network needs at least one output; got %d.", outputs)
	case width < 1:
		return winnow.Invalid("width", "A network is at least 1 channel wide; got %d.", width)
	case inputSize < MinInputSize:
		return winnow.Invalid("input_size", "The network halves its input three times and needs at least %d pixels a side; got %d.", MinInputSize, inputSize)
	}
	return nil
}
