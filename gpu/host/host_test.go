package host

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/moeflux/moeflux-actor/gpu/gputest"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/model/quant"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t testing.TB, threads int) *Device { return openVariant(t, threads, "") }

func openVariant(t testing.TB, threads int, variant string) *Device {
	t.Helper()
	return openConfig(t, Config{Threads: threads, Variant: variant})
}

func openConfig(t testing.TB, cfg Config) *Device {
	t.Helper()
	d, err := New(cfg)
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

// allConfigs returns all variants and kinds of activations with the given numbers of threads.
func allConfigs(threads ...int) (all []Config) {
	for _, variant := range Variants() {
		for _, a := range []Activations{F32, Int8} {
			for _, n := range threads {
				all = append(all, Config{Variant: variant, Activations: a, Threads: n})
			}
		}
	}
	return all
}

// floatVariants are the variants whose kernels for float32 differ: avxvnni has those of avx2.
func floatVariants() []string {
	return slices.DeleteFunc(Variants(), func(name string) bool { return name == "avxvnni" })
}

func TestConformance(t *testing.T) {
	// TestThreads has the bits of other numbers
	const oneIn = 4 // what is computed is compared with takes longer than the kernels
	counts := []int{5}
	if testenv.Rounds(1, 1, 3) > 1 {
		counts = []int{1, 2, 5}
	}
	for _, variant := range floatVariants() {
		for _, threads := range counts {
			t.Run(fmt.Sprintf("variant=%s/threads=%d", variant, threads), func(t *testing.T) {
				gputest.Run(t, openVariant(t, threads, variant), oneIn)
			})
		}
	}
}

// rounds reports whether inputs are rounded where a matrix is of a format.
func rounds(f quant.Format) bool { return f.Rounded() > 0 }

// TestRounded checks that int8 activations give the same bits in all variants and numbers of
// threads. avxvnni has those of avx2 in everything.
func TestRounded(t *testing.T) {
	const oneIn = 2
	counts := []int{1, 5}
	outputs := map[string]map[string][]float32{}
	for i, variant := range Variants() {
		mine := counts
		if testenv.Rounds(1, 1, 2) == 1 { // TestThreads compares numbers of threads
			mine = counts[(i+1)%2:][:1]
		}
		for _, threads := range mine {
			d := openConfig(t, Config{Threads: threads, Variant: variant, Activations: Int8})
			if variant != "avxvnni" {
				t.Run(fmt.Sprintf("variant=%s/threads=%d", variant, threads), func(t *testing.T) { gputest.RunRounded(t, d, oneIn, rounds) })
			}
			got := gputest.OutputsRounded(t, d, oneIn, rounds)
			for of, want := range outputs {
				for name, w := range want {
					// Experts use silu, which variants may round differently, and some formats are
					// not rounded.
					if all := variant == of || variant == "avx2" && of == "avxvnni"; !all && (strings.HasPrefix(name, "experts/") || exact.MatchString(name)) {
						continue
					}
					if err := numcmp.Equal(got[name], w); err != nil {
						t.Errorf("%s: %s, %d threads against %s: %v", name, variant, threads, of, err)
					}
				}
			}
			outputs[variant] = got
		}
	}
}

// exact is in the names of cases whose inputs are not rounded, or not all.
var exact = regexp.MustCompile("bf16|f32|f16|fp8|joined|exact")

// TestRoundedQueries checks attention of devices that round inputs to keys in 8 bits.
func TestRoundedQueries(t *testing.T) {
	const oneIn = 6 // how positions are cut is tested with float32
	for i, variant := range floatVariants() {
		threads := 1 + 4*(i%2)
		t.Run(fmt.Sprintf("variant=%s/threads=%d", variant, threads), func(t *testing.T) {
			gputest.RunRoundedQueries(t, openConfig(t, Config{Threads: threads, Variant: variant, Activations: Int8}), oneIn)
		})
	}
}

// TestThreads checks that any number of threads gives the same bits.
func TestThreads(t *testing.T) {
	if testing.Short() {
		t.Skip("runs the suite twice for each variant")
	}
	const oneIn = 2
	processors(t, 8)
	counts := []int{64}
	if testenv.Rounds(1, 1, 2) > 1 {
		counts = []int{2, 3, 5, 16, 64}
	}
	for _, variant := range floatVariants() {
		want := gputest.Outputs(t, openVariant(t, 1, variant), oneIn)
		for _, threads := range counts {
			got := gputest.Outputs(t, openVariant(t, threads, variant), oneIn)
			if len(got) != len(want) || len(want) < 100 {
				t.Errorf("%s: %d outputs with %d threads, %d with one", variant, len(got), threads, len(want))
			}
			for name, w := range want {
				if err := numcmp.Equal(got[name], w); err != nil {
					t.Errorf("%s: %s: %d threads against one: %v", variant, name, threads, err)
				}
			}
		}
	}
}

func TestMarks(t *testing.T) { gputest.RunMarks(t, open(t, 2)) }

// TestRuns wants every kind of operation to have what runs it.
func TestRuns(t *testing.T) {
	for k, run := range runs {
		if run == nil {
			t.Errorf("nothing runs operations of kind %d", k)
		}
	}
}
