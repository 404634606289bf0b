package device

import (
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/gpu/cuda"
)

// KernelsVariable in the environment names the kernels of the processor, in place of the best that
// it runs.
const KernelsVariable = "MOEFLUX_CPU"

// toolkitVariables in the environment name folders of CUDA toolkits.
var toolkitVariables = []string{"CUDA_HOME", "CUDA_PATH"}

// Environment returns what the environment says of devices: Kernels, and where the libraries of
// CUDA are.
func Environment() Config {
	c := Config{Kernels: os.Getenv(KernelsVariable)}
	c.CUDA.Driver, c.CUDA.Compiler = os.Getenv(cuda.DriverVariable), os.Getenv(cuda.CompilerVariable)
	for _, v := range toolkitVariables {
		if dir := os.Getenv(v); dir != "" {
			c.CUDA.Folders = append(c.CUDA.Folders, filepath.Join(dir, "lib64"), filepath.Join(dir, "targets", "*", "lib"))
		}
	}
	return c
}
