package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/cuda"
	"github.com/moeflux/moeflux-actor/gpu/emu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/gpu/metal"
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

// activations returns what the flag names; it has passed check.
func (f *engineFlags) activations() host.Activations {
	if f.Activations == host.F32.String() {
		return host.F32
	}
	return host.Int8
}

// openDevice makes the device that the flags name; they have passed check. Why auto does without a
// GPU goes to the log. It never takes Metal, whose own suite has not passed on a Mac yet: that
// device has to be named.
func (f *engineFlags) openDevice(inv *invocation, log *slog.Logger) (gpu.Device, error) {
	switch f.Device {
	case "auto":
		if inv.env.os == "darwin" {
			log.Info("the processor computes; --device metal uses the GPU, with kernels that no Mac has verified yet")
			return f.openHost(&inv.env)
		}
		d, err := f.openCUDA(inv, log)
		if err == nil {
			return d, nil
		}
		level := slog.LevelWarn // there is a GPU, and something is wrong with it
		if cuda.Absent(err) {
			level = slog.LevelInfo
		}
		log.Log(context.Background(), level, "no GPU is used, the processor computes", "why", err)
		return f.openHost(&inv.env)
	case "cuda":
		return f.openCUDA(inv, log)
	case "metal":
		return openMetal(inv, log)
	case "host":
		return f.openHost(&inv.env)
	case "emu":
		return f.openEmulator(inv, log)
	default:
		panic(fmt.Sprintf("device %q passed the check", f.Device))
	}
}

func (f *engineFlags) openHost(e *env) (gpu.Device, error) {
	variant, err := e.kernels()
	if err != nil {
		return nil, err
	}
	c := host.Config{Threads: f.Threads, Activations: f.activations(), Variant: variant}
	if err := c.Validate(); err != nil {
		return nil, &usageError{err.Error()}
	}
	return host.New(c)
}

// openCUDA opens the first NVIDIA GPU. Its kernels are kept beside the demo model.
func (f *engineFlags) openCUDA(inv *invocation, log *slog.Logger) (gpu.Device, error) {
	c := cuda.Config{Driver: inv.env.cudaDriver, Compiler: inv.env.cudaCompiler, Folders: inv.env.cudaFolders, Logger: log}
	if dir, _, err := findCache(inv, f.CacheDir); err == nil {
		c.CacheDir = filepath.Join(dir, "cuda")
	} else {
		log.Warn("compiled kernels are not kept for the next run", "why", err)
	}
	d, err := cuda.Open(c)
	if err != nil {
		return nil, err
	}
	driver, compiler := d.Libraries()
	log.Info("GPU", "device", d.Name(), "driver", driver, "compiler", compiler)
	return d, nil
}

// openMetal opens a Mac's GPU. Metal keeps compiled kernels itself.
func openMetal(_ *invocation, log *slog.Logger) (gpu.Device, error) {
	d, err := metal.Open()
	if err != nil {
		return nil, err
	}
	log.Info("GPU", "device", d.Name(), "working set", d.WorkingSet())
	return d, nil
}

// openEmulator makes the device that runs the kernels of GPUs on the processor. What it compiles is
// kept beside the demo model.
func (f *engineFlags) openEmulator(inv *invocation, log *slog.Logger) (gpu.Device, error) {
	c := emu.Config{Threads: f.Threads}
	if dir, _, err := findCache(inv, f.CacheDir); err == nil {
		c.Cache = filepath.Join(dir, "emulator")
	} else {
		log.Warn("compiled kernels are not kept for the next run", "why", err)
	}
	return emu.New(c)
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
