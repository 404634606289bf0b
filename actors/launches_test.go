//go:build linux && (amd64 || arm64)

package actors_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/emu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// noting is a back end that notes which kernels are launched.
type noting struct {
	launch.Backend
	mu       sync.Mutex
	launched []string
}

func (n *noting) NewStream() (launch.Stream, error) {
	s, err := n.Backend.NewStream()
	return &notingStream{s, n}, err
}

// take returns what was launched since it was called last.
func (n *noting) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	l := n.launched
	n.launched = nil
	return l
}

type notingStream struct {
	launch.Stream
	n *noting
}

func (s *notingStream) Launch(p launch.Pipeline, l *launch.Launch) error {
	s.n.mu.Lock()
	s.n.launched = append(s.n.launched, l.Kernel.Name)
	s.n.mu.Unlock()
	return s.Stream.Launch(p, l)
}

// TestLaunches bounds how many kernels a decoded token takes in each family, of fixtures of 2, 8,
// 4, 4, 2 and 2 layers. docs/gpu.md has them by the layer.
func TestLaunches(t *testing.T) {
	n, d := notingDevice(t)
	for name, most := range map[string]int{
		fixtures.Qwen3MoEQ4: 25, fixtures.Qwen35MoEQ4: 123, fixtures.Qwen3NextQ4: 64, fixtures.DeepseekV3Q4: 65, fixtures.DeepseekV3Q4KVB: 33,
		fixtures.DeepseekV32BF16: 37,
	} {
		t.Run(name, func(t *testing.T) {
			e := open(t, actors.Config{Model: fixtures.Packed(t, name, 0), Device: d, Prefetch: actors.PrefetchOff, ExpertIO: actors.ExpertIOMmap})
			s := sequence(t, e)
			text := prompt(1, 6, e.Model().VocabSize)
			for i, id := range text {
				if i == len(text)-1 {
					n.take()
				}
				if _, err := s.Eval(t.Context(), []int32{id}); err != nil {
					t.Fatal(err)
				}
			}
			if got := n.take(); len(got) > most {
				t.Errorf("%d launches for a token, want at most %d: %v", len(got), most, got)
			}
		})
	}
}

// TestDumpKeepsJoins decodes a token with and without a dump of everything: what is launched is the
// same but for the sums that are nowhere, which a combine of their own computes.
func TestDumpKeepsJoins(t *testing.T) {
	n, d := notingDevice(t)
	for _, name := range fixtures.All() {
		for _, resident := range []actors.Resident{actors.ResidentOn, actors.ResidentOff} {
			e := open(t, actors.Config{Model: fixtures.Packed(t, name, 0), Device: d, Prefetch: actors.PrefetchOff, ExpertIO: actors.ExpertIOMmap, Resident: resident})
			s := sequence(t, e)
			launched := func(wants []actors.Want, plain bool) []string {
				if err := s.Reset(t.Context()); err != nil {
					t.Fatal(err)
				}
				n.take()
				if _, err := s.EvalChunk(t.Context(), actors.Chunk{Tokens: []int32{5}, Dump: wants, Plain: plain}); err != nil {
					t.Fatal(err)
				}
				return slices.DeleteFunc(n.take(), func(kernel string) bool { return kernel == "combine" })
			}
			want, got := launched(nil, false), launched(actors.WantsOf(e.Model(), allLayers(e)), false)
			if plain := launched(nil, true); len(plain) <= len(want) || slices.ContainsFunc(plain, func(k string) bool { return k == "matmuls" || k == "add_norm" || k == "head_vectors" }) {
				t.Errorf("%s: one by one the launches are %v, joined %v", name, plain, want)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, resident %v: a dump launches %v, without it %v", name, resident, got, want)
			}
		}
	}
}

// notingDevice makes an emulator that notes launches.
func notingDevice(t *testing.T) (*noting, gpu.Device) {
	t.Helper()
	cache := t.TempDir()
	if dir, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(dir, "moeflux-actor", "emulator")
	}
	b, err := emu.Open(emu.Config{Cache: cache})
	if errors.Is(err, emu.ErrNoCompiler) {
		testenv.Missing(t, err.Error(), testenv.CXXCompilers...)
	}
	if err != nil {
		t.Fatal(err)
	}
	n := &noting{Backend: b}
	d, err := launch.New(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return n, d
}
