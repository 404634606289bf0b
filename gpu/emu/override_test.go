//go:build linux && (amd64 || arm64)

package emu

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/gputest"
	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/gpu/msl"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// overriding is an emulator that runs the kernels of gpu/cuda/override, too: their text is C++ but
// for ptx.cu, in whose place testdata/override.h stands.
type overriding struct {
	*Backend
	rounds     bool
	processors int
}

func (overriding) LimbProducts() bool { return true }

func (b overriding) Rounds() bool { return b.rounds }

func (b overriding) Processors() int { return b.processors }

var (
	included  = regexp.MustCompile(`(?m)^#include "(.*)"$`)
	ownArrays = regexp.MustCompile(`__shared__ (\w+) (\w+)\[(.*)\];`)
)

// overrideText reads a file of gpu/cuda/override and those that it includes.
func overrideText(name string) (string, error) {
	if name == "ptx.cu" {
		return "", nil
	}
	b, err := os.ReadFile(filepath.Join("..", "cuda", "override", name))
	if err != nil {
		return "", err
	}
	text := included.ReplaceAllStringFunc(string(b), func(line string) string {
		var inner string
		if err == nil {
			inner, err = overrideText(included.FindStringSubmatch(line)[1])
		}
		return inner
	})
	return ownArrays.ReplaceAllString(text, "OWN_ARRAY($1, $2, ($3));"), err
}

// CompileOwn builds a kernel of gpu/cuda/override.
func (b overriding) CompileOwn(k launch.Kernel) (launch.Pipeline, error) {
	text, err := overrideText(k.Name + ".cu")
	if err != nil {
		return nil, err
	}
	header, err := os.ReadFile(filepath.Join("testdata", "override.h"))
	if err != nil {
		return nil, err
	}
	empty, err := msl.Parse("empty.metal", func(string) (string, error) { return "#include <metal_stdlib>\n", nil })
	if err != nil {
		return nil, err
	}
	source := fmt.Sprintf(`#include <utility>
%s%snamespace metal {
%s%s
extern "C" void msl_entry(void* const* a, const msl_ctx*, void* tg) { msl_own = tg; msl_enter(%s, a); }
extern "C" const unsigned* msl_meta() { return msl_params(%[5]s); }
}
`, empty.Emit(msl.Emulator, "", ""), k.Defines, header, text, k.Name)
	h, err := b.builder.open("kernel "+k.Name, source, false)
	if err != nil {
		return nil, err
	}
	s, err := symbols(h, "msl_entry", "msl_meta")
	if err != nil {
		return nil, err
	}
	p, _, _ := purego.SyscallN(s[1])
	n := *(*uint32)(pointer(p))
	sizes := unsafe.Slice((*uint32)(pointer(p)), n+1)[1:]
	args := make([]msl.Arg, n)
	for i := range args {
		args[i].Name = fmt.Sprintf("parameter %d", i)
	}
	return &pipeline{&msl.Kernel{Name: k.Name, Args: args}, s[0], 48 << 10, sizes}, nil
}

// openOverriding opens such a device.
func openOverriding(t testing.TB, order Order, rounds bool, processors int) gpu.Device {
	t.Helper()
	d, err := launch.New(overriding{backend(t, order), rounds, processors})
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

// The kernels of gpu/cuda/override compute what the suite wants of them, with operands that vectors
// can be loaded from and without. That takes minutes, so it is done where there is time; else only
// what kernels of both kinds have to do with each other.
func TestOverrides(t *testing.T) {
	d := openOverriding(t, Shuffled, false, 132)
	if testenv.Rounds(1, 1, 2) == 1 {
		gputest.RunMultiplied(t, d)
		return
	}
	t.Run("odd", func(t *testing.T) { gputest.Run(t, d, 1) })
	t.Run("aligned", func(t *testing.T) { gputest.RunAligned(t, d, 1) })
}

// They also round inputs to 8 bits, and what is launched for many rows is seen with few on a GPU
// that is small.
func TestOverridesOfOtherDevices(t *testing.T) {
	thorough := testenv.Rounds(1, 1, 2) == 2
	oneIn := testenv.Rounds(48, 48, 1)
	for name, rounds := range map[string]gputest.Rounds{"rounding": quant.Format.Affine, "exact": func(quant.Format) bool { return false }} {
		t.Run(name, func(t *testing.T) {
			d := openOverriding(t, Shuffled, name == "rounding", 1)
			if thorough || name == "rounding" {
				t.Run("multiplied", func(t *testing.T) { gputest.RunMultiplied(t, d) })
			}
			if thorough {
				t.Run("odd", func(t *testing.T) { gputest.RunRounded(t, d, oneIn, rounds) })
			}
			t.Run("aligned", func(t *testing.T) { gputest.RunRoundedAligned(t, d, oneIn, rounds) })
		})
	}
}

// A GPU with one processor runs few threadgroups at once, so each takes several chunks of
// positions.
func TestAttentionOfSmallDevices(t *testing.T) {
	gputest.RunAttention(t, openOverriding(t, Shuffled, false, 1), 3)
}

// clang leaves some loops of products as they are, and builds them all the same.
func TestLoopsThatClangLeaves(t *testing.T) {
	const clang = "clang++"
	e, err := Open(Config{Compiler: clang})
	if errors.Is(err, ErrNoCompiler) {
		testenv.Missing(t, err.Error(), clang)
	}
	if err != nil {
		t.Fatal(err)
	}
	b := overriding{Backend: e}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	text := "#define BITS 4\n#define GROUP 32\n#define LAYOUT 0\n#define WIDE 1\n#define ROUNDED 0\n" +
		"#define INPUTS 2880\n#define XROWS 4\n#define TILES 1\n" +
		"#define STAGED 0\n#define SPLIT 0\n#define PARTS 1\n"
	if _, err := b.CompileOwn(launch.Kernel{Name: "limbs_matmul", Defines: text}); err != nil {
		t.Error(err)
	}
}

// What a threadgroup of a staged product has fits into its memory, however long groups are.
func TestStagedProductsFit(t *testing.T) {
	b := overriding{Backend: backend(t, Shuffled)}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, group := range []int{128, 64, 32}[:testenv.Rounds(1, 1, 3)] {
		for _, name := range []string{"limbs_experts", "limbs_matmul"} {
			text := fmt.Sprintf("#define BITS 4\n#define GROUP %d\n#define LAYOUT 1\n#define WIDE 1\n#define ROUNDED 0\n#define INPUTS 2048\n#define XROWS %d\n#define TILES 2\n#define STAGED 1\n#define SPLIT 1\n"+
				"#define PARTS 1\n#define GATED 1\n#define BIASED 0\n#define CLAMPED 0\n"+
				"#define WHICH 0\n#define SETTLED 0\n",
				group, map[string]int{"limbs_experts": 48, "limbs_matmul": 32}[name])
			if _, err := b.CompileOwn(launch.Kernel{Name: name, Defines: text}); err != nil {
				t.Errorf("%s with groups of %d: %v", name, group, err)
			}
		}
	}
}
