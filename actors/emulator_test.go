//go:build linux && (amd64 || arm64)

package actors_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/emu"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// emulator makes a device that runs the kernels of GPUs on the processor, as long as the test lives. What it compiles is kept in the user's
// cache folder.
func emulator(tb testing.TB) gpu.Device {
	tb.Helper()
	cache := tb.TempDir()
	if dir, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(dir, "moeflux-actor", "emulator")
	}
	d, err := emu.New(emu.Config{Cache: cache})
	if errors.Is(err, emu.ErrNoCompiler) {
		tb.Skip(err)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Errorf("closing the device: %v", err)
		}
	})
	return d
}

// TestEmulatorFixtures compares all fixture models' numbers with those of the kernels of GPUs.
func TestEmulatorFixtures(t *testing.T) {
	dev := emulator(t)
	for _, name := range fixtures.All() {
		t.Run(name, func(t *testing.T) {
			e := open(t, actors.Config{Model: fixtures.Packed(t, name, 0), Device: dev, ChunkRows: 7})
			c := &comparer{t: t, limit: tolerance(name), decode: 3}
			c.checkPrompt(e, fixtures.Reference(t, name), "p9")
			t.Logf("largest difference %.1e", c.worst)
		})
	}
}
