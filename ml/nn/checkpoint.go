package nn

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"winnow"
)

// A checkpoint is, in little-endian: the magic, the version, outputs, width and input
// size (uint32 each), mean and deviation (6 float64), the weights and the statistics
// in architecture's order (float32), and the CRC-32 of all that.
const (
	checkpointMagic   = "WNET"
	checkpointVersion = 1
)

type checkpointHeader struct {
	Magic                              [4]byte
	Version, Outputs, Width, InputSize uint32
	Mean, Std                          [3]float64
}

// Limits of what UnmarshalNetwork believes, so that a corrupt header does not make it
// allocate without bound.
const (
	maxOutputs = 1 << 16
	maxWidth   = 1 << 10
	maxInput   = 1 << 12
)

// MarshalBinary writes the network as a checkpoint; UnmarshalNetwork reads it.
func (n *Network) MarshalBinary() ([]byte, error) {
	var b bytes.Buffer
	h := checkpointHeader{
		Magic: [4]byte([]byte(checkpointMagic)), Version: checkpointVersion,
		Outputs: uint32(n.Outputs), Width: uint32(n.Width), InputSize: uint32(n.InputSize), Mean: n.Mean, Std: n.Std,
	}
	parts := []any{h}
	for _, data := range n.weights {
		parts = append(parts, data)
	}
	for _, data := range n.stats {
		parts = append(parts, data)
	}
	for _, part := range parts {
		if err := binary.Write(&b, binary.LittleEndian, part); err != nil {
			return nil, err
		}
	}
	return binary.LittleEndian.AppendUint32(b.Bytes(), crc32.ChecksumIEEE(b.Bytes())), nil
}

// UnmarshalNetwork reads a checkpoint. Anything but a whole, unharmed checkpoint of
// this version is a winnow.CodeInvalid error.
func UnmarshalNetwork(data []byte) (*Network, error) {
	invalid := func(format string, args ...any) (*Network, error) {
		return nil, winnow.Invalid("checkpoint", format, args...)
	}
	var h checkpointHeader
	if len(data) < binary.Size(h)+4 || string(data[:4]) != checkpointMagic {
		return invalid("This is not a checkpoint of a network.")
	}
	body, sum := data[:len(data)-4], binary.LittleEndian.Uint32(data[len(data)-4:])
	r := bytes.NewReader(body)
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return invalid("The header cannot be read: %v.", err)
	}
	if h.Version != checkpointVersion {
		return invalid("The checkpoint has version %d; this program reads version %d.", h.Version, checkpointVersion)
	}
	if h.Outputs > maxOutputs || h.Width > maxWidth || h.InputSize > maxInput {
		return invalid("A network of %d outputs, width %d and input size %d is beyond all limits.", h.Outputs, h.Width, h.InputSize)
	}
	n := &Network{Outputs: int(h.Outputs), Width: int(h.Width), InputSize: int(h.InputSize), Mean: h.Mean, Std: h.Std}
	if err := checkShape(n.Outputs, n.Width, n.InputSize); err != nil {
		return invalid("The network's shape makes no sense: %v", err)
	}
	weights, stats := architecture(n.Outputs, n.Width)
	values := 0
	for _, s := range append(weights[:len(weights):len(weights)], stats...) {
		values += s.size()
	}
	if r.Len() != values*4 {
		return invalid("A network of %d outputs and width %d has %d values; the checkpoint has %d bytes of them.", n.Outputs, n.Width, values, r.Len())
	}
	if crc32.ChecksumIEEE(body) != sum {
		return invalid("The checkpoint is damaged: its checksum is wrong.")
	}
	read := func(specs []tensorSpec) ([][]float32, error) {
		group := make([][]float32, len(specs))
		for i, s := range specs {
			group[i] = make([]float32, s.size())
			if err := binary.Read(r, binary.LittleEndian, group[i]); err != nil {
				return nil, err
			}
		}
		return group, nil
	}
	var err error
	if n.weights, err = read(weights); err == nil {
		n.stats, err = read(stats)
	}
	if err != nil {
		return invalid("The values cannot be read: %v.", err)
	}
	if !n.finite() {
		return invalid("The checkpoint has values that are not numbers.")
	}
	return n, nil
}
