//go:build xla

package backend

import (
	"path/filepath"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/installer"
)

const xlaBuilt = true

func openXLA(config string) (compute.Backend, error) {
	xla.EnableAutoInstall(false)
	return xla.New(config)
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
