//go:build linux && (amd64 || arm64)

package emu

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/gputest"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cache is where the tests of this machine keep what they compiled.
func cache(t testing.TB) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	if err != nil {
		return t.TempDir()
	}
	return filepath.Join(dir, "moeflux-actor", "emulator")
}

func open(t testing.TB, order Order) gpu.Device {
	t.Helper()
	d, err := New(Config{Order: order, Cache: cache(t)})
	if errors.Is(err, ErrNoCompiler) {
		testenv.Missing(t, err.Error(), testenv.CXXCompilers...)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestConformance runs the suite in three orders of threads, which are about different faults: what
// a thread reads before others wrote it shows in one of them. The shuffled one, which finds most,
// runs by itself unless there is time. Then there is time for all cases, too: the kernels of a case
// take the compiler up to a second.
func TestConformance(t *testing.T) {
	const oneIn = 10
	orders := map[string]Order{"shuffled": Shuffled}
	if testenv.Rounds(1, 1, 3) > 1 {
		orders["up"], orders["down"] = Up, Down
	}
	for name, order := range orders {
		t.Run("order="+name, func(t *testing.T) {
			t.Parallel()
			gputest.Run(t, open(t, order), oneIn)
		})
	}
	t.Run("aligned", func(t *testing.T) {
		t.Parallel()
		gputest.RunAligned(t, open(t, Shuffled), oneIn)
	})
}

func TestMarks(t *testing.T) { gputest.RunMarks(t, open(t, Up)) }

// A compiler that is found by a link, as in a folder for PATH, finds what it has built by its name.
func TestKeyOfLinkedCompiler(t *testing.T) {
	c, err := findCompiler("")
	if err != nil {
		testenv.Missing(t, err.Error(), testenv.CXXCompilers...)
	}
	link := filepath.Join(t.TempDir(), filepath.Base(c.path))
	if err := os.Symlink(c.path, link); err != nil {
		t.Fatal(err)
	}
	linked := *c
	linked.path = link
	if a, b := (&builder{compiler: c}).key("text"), (&builder{compiler: &linked}).key("text"); a != b {
		t.Errorf("%s and its link have keys %s and %s", c.path, a, b)
	}
	if a, b := (&builder{compiler: c}).key("text"), (&builder{compiler: c}).key("other"); a == b {
		t.Error("two sources have one key")
	}
}
