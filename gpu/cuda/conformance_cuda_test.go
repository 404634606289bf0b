//go:build cuda && linux && (amd64 || arm64)

package cuda

import (
	"os"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/gputest"
	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/model/quant"
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

// What TestConformance is for a GPU that is set to round inputs of products, and for products that
// only many rows are launched in: on a GPU that is taken to be small, few are many.
func TestRounded(t *testing.T) {
	t.Setenv(testenv.Thorough, "1")
	gputest.RunRounded(t, openSmall(t, true), 1, quant.Format.Affine)
}

func TestRoundedAligned(t *testing.T) {
	t.Setenv(testenv.Thorough, "1")
	d := openSmall(t, true)
	gputest.RunRoundedAligned(t, d, 1, quant.Format.Affine)
	t.Run("rows", func(t *testing.T) { gputest.RunMultiplied(t, d) })
}

func TestSmall(t *testing.T) {
	t.Setenv(testenv.Thorough, "1")
	d := openSmall(t, false)
	gputest.RunRoundedAligned(t, d, 1, func(quant.Format) bool { return false })
	gputest.RunAttention(t, d, 1)
}

func openSmall(t *testing.T, rounded bool) gpu.Device {
	t.Helper()
	cfg := deviceConfig()
	cfg.Rounded = rounded
	b, err := open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.processors = 1
	d, err := launch.New(b)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return &Device{d, b}
}
