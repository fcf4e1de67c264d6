package nn

import (
	"context"

	"winnow"
	"winnow/ml/backend"
)

// Network is a trained network: its shape, weights and running statistics, and the
// normalisation of its input. It is immutable and may be used by several goroutines.
type Network struct {
	Outputs, Width, InputSize int
	Mean, Std                 [3]float64
}

// Train trains a network from scratch.
func Train(ctx context.Context, be *backend.Backend, cfg Config, images Images, labels []int, progress func(Progress)) (*Network, error) {
	return nil, winnow.Errorf(winnow.CodeInternal, "training is not there yet")
}

// Infer runs the network over the plain images.
func (n *Network) Infer(ctx context.Context, be *backend.Backend, images Images, progress func(done, total int)) (Output, error) {
	return Output{}, winnow.Errorf(winnow.CodeInternal, "inference is not there yet")
}

// MarshalBinary writes a checkpoint.
func (n *Network) MarshalBinary() ([]byte, error) {
	return nil, winnow.Errorf(winnow.CodeInternal, "checkpoints are not there yet")
}

// UnmarshalNetwork reads a checkpoint.
func UnmarshalNetwork(data []byte) (*Network, error) {
	return nil, winnow.Errorf(winnow.CodeInternal, "checkpoints are not there yet")
}
