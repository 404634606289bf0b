//go:build cuda && linux && (amd64 || arm64)

package cuda

import (
	"os"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/gputest"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// The tests of this file need a GPU: go test -tags cuda.

// deviceConfig is what the environment says of libraries and cache.
func deviceConfig() Config {
	return Config{Driver: os.Getenv(DriverVariable), Compiler: os.Getenv(CompilerVariable), CacheDir: os.Getenv("MOEFLUX_CUDA_CACHE")}
}

func openDevice(tb testing.TB) *Device {
	tb.Helper()
	d, err := Open(deviceConfig())
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
	})
	return d
}

func TestConformance(t *testing.T) {
	t.Setenv(testenv.Thorough, "1") // a GPU has time for every case
	gputest.Run(t, openDevice(t), 1)
}

// TestConformanceAligned runs the kernels that an engine runs: its operands are aligned.
func TestConformanceAligned(t *testing.T) {
	t.Setenv(testenv.Thorough, "1")
	gputest.RunAligned(t, openDevice(t), 1)
}

func TestMarksConform(t *testing.T) { gputest.RunMarks(t, openDevice(t)) }
