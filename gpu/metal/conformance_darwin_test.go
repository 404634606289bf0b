//go:build cgo

package metal_test

import (
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/gputest"
	"github.com/moeflux/moeflux-actor/gpu/metal"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// These tests need a Mac with Apple silicon, macOS 15 and Xcode's command line tools:
//
//	CGO_ENABLED=1 go test -v -run 'TestGPU' ./gpu/metal
//
// Nobody has run them yet. Until they have passed, a program takes Metal only where its user asks
// for it by name (openDevice of cmd/moeflux-actor). Whoever sees them pass changes that, and writes
// in docs/gpu.md on which Mac and system it was.

func openGPU(t *testing.T) *metal.Device {
	t.Helper()
	d, err := metal.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Logf("%s, working set %d bytes", d.Name(), d.WorkingSet())
	return d
}

// TestGPUConformance runs the suite on this Mac's GPU.
func TestGPUConformance(t *testing.T) {
	t.Setenv(testenv.Thorough, "1") // a GPU has time for every case
	gputest.Run(t, openGPU(t), 1)
}

// TestGPUConformanceAligned runs the kernels that an engine runs: its operands are aligned.
func TestGPUConformanceAligned(t *testing.T) {
	t.Setenv(testenv.Thorough, "1")
	gputest.RunAligned(t, openGPU(t), 1)
}
