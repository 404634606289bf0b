//go:build nvrtc && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/emu"
	"github.com/moeflux/moeflux-actor/gpu/gputest"
	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/gpu/msl"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// compiling is the emulator, but compiles every kernel for a GPU as well.
type compiling struct {
	launch.Backend
	t  *testing.T
	c  *compiler
	mu sync.Mutex
	n  int
}

func (b *compiling) Compile(k launch.Kernel, m *msl.Module) (launch.Pipeline, error) {
	_, log, err := b.c.build(m.Emit(msl.CUDA, k.Name, k.Defines), options(nvrtcArch))
	switch {
	case err != nil:
		b.t.Errorf("%s with %q: %v\n%s", k.Name, k.Defines, err, log)
	case log != "":
		b.t.Logf("%s with %q: %s", k.Name, k.Defines, log)
	}
	b.mu.Lock()
	b.n++
	b.mu.Unlock()
	return b.Backend.Compile(k, m)
}

// Every kernel that the suite uses compiles for a GPU, those for aligned operands included. The
// emulator runs the suite meanwhile.
func TestKernelsCompile(t *testing.T) {
	c := openNVRTC(t)
	dir, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	// the cache of gpu/emu's tests
	e, err := emu.Open(emu.Config{Cache: filepath.Join(dir, "moeflux-actor", "emulator")})
	if err != nil {
		t.Fatal(err)
	}
	b := &compiling{Backend: e, t: t, c: c}
	d, err := launch.New(b)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(testenv.Thorough, "1") // every case, for every kernel
	t.Run("odd", func(t *testing.T) { gputest.Run(t, d, 1) })
	t.Run("aligned", func(t *testing.T) { gputest.RunAligned(t, d, 1) })
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	t.Logf("%d kernels", b.n)
}

// Each kernel compiles in two variants, and in all of them if there is time.
func TestEachKernelCompiles(t *testing.T) {
	c := openNVRTC(t)
	modules, err := launch.Modules()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for name, m := range modules {
		all := launch.Variants(name)
		for _, defines := range all[:min(len(all), testenv.Rounds(1, 2, len(all)))] {
			n++
			source := m.Emit(msl.CUDA, name, defines)
			if _, log, err := c.build(source, options(nvrtcArch)); err != nil {
				t.Errorf("%s with %q: %v\n%s", name, defines, err, log)
			} else if log != "" {
				t.Logf("%s with %q: %s", name, defines, log)
			}
		}
	}
	t.Logf("%d kernels, %d variants", len(modules), n)
}

// The kernels that make limbs for others compile: the emulator takes no limbs.
func TestLimbMakersCompile(t *testing.T) {
	c := openNVRTC(t)
	modules, err := launch.Modules()
	if err != nil {
		t.Fatal(err)
	}
	norm := "#define WEIGHTED 1\n#define TEAM 16\n#define QUADS 1\n#define WIDE 1\n#define SHARED 0\n"
	for name, defines := range map[string]string{
		"rms_norm": norm, "add_norm": norm, "combine_norm": norm, "attention_merge": "#define HEAD_DIM 128\n#define VALUE_DIM 128\n#define SPANS 0\n",
	} {
		for _, group := range []int{32, 64, 128} {
			for _, limbs := range [][2]int{{group, 0}, {0, group}, {group, group}} {
				source := modules[name].Emit(msl.CUDA, name, fmt.Sprintf("%s#define LIMBS %d\n#define ROUNDED %d\n", defines, limbs[0], limbs[1]))
				if _, log, err := c.build(source, options(nvrtcArch)); err != nil || log != "" {
					t.Errorf("%s for groups %v: %v\n%s", name, limbs, err, log)
				}
			}
		}
	}
}
