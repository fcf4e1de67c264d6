//go:build !onnx

package backend

import (
	"errors"

	"github.com/gomlx/compute"
)

const onnxBuilt = false

var errNoONNX = errors.New("built without -tags onnx")

func openONNX(string) (compute.Backend, error) { return nil, errNoONNX }
func onnxVersion() (string, error)             { return "", errNoONNX }
func installONNX(string) error                 { return errNoONNX }
