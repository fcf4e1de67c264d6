//go:build xla

package backend

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/installer"
)

const xlaBuilt = true

// openXLA opens a plugin. Matrix products are told by an option whether they may use
// TF32; convolutions are not, so that in float32 NVIDIA's libraries are told by their
// environment, which they read when they are loaded: the first that is opened decides.
func openXLA(plugin string, precision Precision) (compute.Backend, error) {
	xla.EnableAutoInstall(false)
	if precision != Float32 {
		return xla.New(plugin)
	}
	if err := os.Setenv("NVIDIA_TF32_OVERRIDE", "0"); err != nil {
		return nil, err
	}
	return xla.New(plugin + ",tf32=false")
}

// xlaPlugins returns which of cpu and cuda have a plugin installed.
func xlaPlugins() []string {
	xla.EnableAutoInstall(false)
	var plugins []string
	for _, p := range xla.GetAvailablePlugins() {
		family, _, _ := strings.Cut(p, "_v")
		plugins = append(plugins, family)
	}
	return plugins
}

func installXLA(plugin string) error {
	lib, err := installer.DefaultHomeLibPath()
	if err != nil {
		return err
	}
	dir := filepath.Join(lib, "go-xla")
	if plugin == "cuda" {
		return installer.CudaInstall("cuda13", "latest", dir, true, installer.Normal)
	}
	return installer.CPUAutoInstall(dir, true, installer.Normal)
}
