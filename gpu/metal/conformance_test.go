//go:build linux && (amd64 || arm64)

package metal

import (
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/gputest"
)

// TestConformance runs the suite through everything but Metal itself: tables, memory, encode.c,
// completion. The emulator stands for the GPU, and builds most cases' kernels for them alone.
func TestConformance(t *testing.T) { gputest.Run(t, openDevice(t, newFake(t, true)), 10) }
