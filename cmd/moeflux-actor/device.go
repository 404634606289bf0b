package main

import (
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/device"
)

// kernels returns the variant of the host device's kernels that is in use.
func (e *env) kernels() (string, error) {
	have := host.Variants()
	switch {
	case e.device.Kernels == "":
		return have[0], nil
	case slices.Contains(have, e.device.Kernels):
		return e.device.Kernels, nil
	default:
		return "", usagef("%s=%s in the environment, but this program on this processor has %s; unset it for the best of these",
			device.KernelsVariable, e.device.Kernels, strings.Join(have, ", "))
	}
}

// openDevice makes the device that the flags name; they have passed check. Why auto does without a
// GPU goes to the log.
func (f *engineFlags) openDevice(inv *invocation, log *slog.Logger) (gpu.Device, error) {
	c := inv.env.device
	c.Name, c.Threads, c.Activations, c.OS, c.Logger = f.Device, f.Threads, f.Activations, inv.env.os, log
	if f.Device == "host" || f.Device == "auto" {
		var err error
		if c.Kernels, err = inv.env.kernels(); err != nil {
			return nil, err
		}
	}
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
