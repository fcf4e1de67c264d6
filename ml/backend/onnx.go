//go:build onnx

package backend

import (
	"os"
	"path/filepath"

	"github.com/gomlx/compute"
	onnxbackend "github.com/gomlx/compute-onnx"
	"github.com/gomlx/compute-onnx/support/onnxruntime"
)

const onnxBuilt = true

func openONNX(config string) (compute.Backend, error) {
	onnxbackend.EnableAutoInstall(false)
	return onnxbackend.New(config)
}

// onnxPresent reports whether the shared library is where openONNX will look.
func onnxPresent() bool {
	path := os.Getenv("ONNXRUNTIME_SHARED_LIBRARY_PATH")
	if path == "" {
		dir, err := onnxruntime.GetInstallPath()
		if err != nil {
			return false
		}
		name, err := onnxruntime.GetLibFilename()
		if err != nil {
			return false
		}
		path = filepath.Join(dir, name)
	}
	_, err := os.Stat(path)
	return err == nil
}

func installONNX(string) error {
	_, err := onnxruntime.Install(onnxruntime.DefaultVersion, false, "", "", false)
	return err
}
