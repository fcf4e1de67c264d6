//go:build onnx

package backend

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gomlx/compute"
	onnxbackend "github.com/gomlx/compute-onnx"
	"github.com/gomlx/compute-onnx/support/onnxruntime"
)

const onnxBuilt = true

// openONNX opens ONNX Runtime by its library's path, or by the one that is found. A
// process loads one library: what is opened later uses it too, whatever its path.
func openONNX(path string) (compute.Backend, error) {
	if path == "" {
		var err error
		if path, err = onnxLibrary(); err != nil {
			return nil, err
		}
	}
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	onnxbackend.EnableAutoInstall(false)
	be, err := onnxbackend.New(path)
	if err != nil {
		return nil, err
	}
	if be, ok := be.(*onnxbackend.Backend); ok {
		return inBlocks(be), nil
	}
	return be, nil
}

// onnxLibrary finds the shared library: where onnxEnv says, or in the directory that
// installONNX fills. The npm package calls it libonnxruntime.so.1.
func onnxLibrary() (string, error) {
	if path := os.Getenv(onnxEnv); path != "" {
		if _, err := os.Stat(path); err != nil {
			return "", fmt.Errorf("%s: %w", onnxEnv, err)
		}
		return filepath.Abs(path)
	}
	dir, err := onnxruntime.GetInstallPath()
	if err != nil {
		return "", err
	}
	name, err := onnxruntime.GetLibFilename()
	if err != nil {
		return "", err
	}
	for _, path := range []string{filepath.Join(dir, name), filepath.Join(dir, name+".1")} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no %s in %s, and %s is not set", name, dir, onnxEnv)
}

// onnxVersion opens the library, if there is one, and returns its version; only so is
// it known that it can be loaded.
func onnxVersion() (string, error) {
	be, err := safely(func() (compute.Backend, error) { return openONNX("") })
	if err != nil {
		return "", err
	}
	defer be.Finalize()
	if be, ok := be.(interface{ Version() string }); ok {
		return be.Version(), nil
	}
	return "", errors.New("the backend has no version")
}

func installONNX(string) error {
	_, err := onnxruntime.Install(onnxruntime.DefaultVersion, false, "", "", false)
	return err
}
