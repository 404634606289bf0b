//go:build cuda && linux && (amd64 || arm64)

package actors_test

import (
	"os"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/cuda"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// TestCUDASplit wants the bits of one GPU from two, of all fixtures.
func TestCUDASplit(t *testing.T) {
	one := openCUDA(t)
	var parts []gpu.Device
	for i := range 2 {
		d, err := cuda.Open(cuda.Config{
			Ordinal: i, Driver: os.Getenv(cuda.DriverVariable), Compiler: os.Getenv(cuda.CompilerVariable), CacheDir: os.Getenv("MOEFLUX_CUDA_CACHE"), Ahead: 4,
		})
		if err != nil {
			testenv.Missing(t, err.Error())
		}
		t.Cleanup(func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		})
		parts = append(parts, d)
	}
	for _, name := range fixtures.All() {
		t.Run(name, func(t *testing.T) { splitBits(t, name, one, splitOf(t, parts...)) })
	}
}
