package main

import (
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/cuda"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/device"
)

// cpuVariable in the environment names the kernels of the host device, in place of the best that
// the processor runs.
const cpuVariable = "MOEFLUX_CPU"

// toolkitVariables in the environment name folders of CUDA toolkits.
var toolkitVariables = []string{"CUDA_HOME", "CUDA_PATH"}

// kernels returns the variant of the host device's kernels that is in use.
func (e *env) kernels() (string, error) {
	have := host.Variants()
	switch {
	case e.cpu == "":
		return have[0], nil
	case slices.Contains(have, e.cpu):
		return e.cpu, nil
	default:
		return "", usagef("%s=%s in the environment, but this program on this processor has %s; unset it for the best of these",
			cpuVariable, e.cpu, strings.Join(have, ", "))
	}
}

// openDevice makes the device that the flags name; they have passed check. Why auto does without a
// GPU goes to the log.
func (f *engineFlags) openDevice(inv *invocation, log *slog.Logger) (gpu.Device, error) {
	c := device.Config{Name: f.Device, Threads: f.Threads, Activations: f.Activations, OS: inv.env.os, Logger: log}
	if f.Device == "host" || f.Device == "auto" {
		var err error
		if c.Kernels, err = inv.env.kernels(); err != nil {
			return nil, err
		}
	}
	c.CUDA = cuda.Config{Driver: inv.env.cudaDriver, Compiler: inv.env.cudaCompiler, Folders: inv.env.cudaFolders}
	c.CacheDir = func() (string, error) { // compiled kernels are kept beside the demo model
		dir, _, err := findCache(inv, f.CacheDir)
		return dir, err
	}
	d, err := device.Open(c)
	if wrong, ok := errors.AsType[*device.ConfigError](err); ok {
		return nil, &usageError{wrong.Error()}
	}
	return d, err
}

// activationsOf returns how a device that the flags opened holds the inputs of products.
func (f *engineFlags) activationsOf(dev gpu.Device) string {
	if _, ok := dev.(*host.Device); ok {
		return f.Activations
	}
	return host.F32.String()
}

// threadsOf returns the compute threads of a device that the flags opened; 0 for a GPU.
func threadsOf(dev gpu.Device) int {
	if d, ok := dev.(*host.Device); ok {
		return d.Threads()
	}
	return 0
}
