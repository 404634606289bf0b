package main

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
)

// openDevice makes the device that the flags name; they have passed check.
func (f *engineFlags) openDevice() (gpu.Device, error) {
	switch f.Device {
	case "auto", "host":
		c := host.Config{Threads: f.Threads, Activations: host.F32}
		if err := c.Validate(); err != nil {
			return nil, &usageError{err.Error()}
		}
		return host.New(c)
	default:
		panic(fmt.Sprintf("device %q passed the check", f.Device))
	}
}
