//go:build !linux || !(amd64 || arm64)

package emu

import (
	"errors"

	"github.com/moeflux/moeflux-actor/gpu"
)

// New reports that there is no emulator for this system.
func New(cfg Config) (gpu.Device, error) {
	return nil, errors.New("emu: the emulator runs on Linux, on amd64 and arm64")
}
