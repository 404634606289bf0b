package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
)

// cpuVariable in the environment names the kernels of the host device, in place of the best that the processor runs.
const cpuVariable = "MOEFLUX_CPU"

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

// openDevice makes the device that the flags name; they have passed check.
func (f *engineFlags) openDevice(e *env) (gpu.Device, error) {
	switch f.Device {
	case "auto", "host":
		variant, err := e.kernels()
		if err != nil {
			return nil, err
		}
		c := host.Config{Threads: f.Threads, Activations: f.activations(), Variant: variant}
		if err := c.Validate(); err != nil {
			return nil, &usageError{err.Error()}
		}
		return host.New(c)
	default:
		panic(fmt.Sprintf("device %q passed the check", f.Device))
	}
}
