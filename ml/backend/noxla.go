//go:build !xla

package backend

import (
	"errors"

	"github.com/gomlx/compute"
)

const xlaBuilt = false

var errNoXLA = errors.New("built without -tags xla")

func openXLA(string, Precision) (compute.Backend, error) { return nil, errNoXLA }
func xlaPlugins() []string                               { return nil }
func installXLA(string) error                            { return errNoXLA }
