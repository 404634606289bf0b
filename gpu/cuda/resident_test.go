//go:build linux && (amd64 || arm64)

package cuda

import (
	"context"
	"maps"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// TestTokensAreGraphs decodes where the device routes by itself, with kernels that do nothing: but
// for a few, tokens are launches of graphs that are there, the same number each.
func TestTokensAreGraphs(t *testing.T) {
	for _, model := range []string{fixtures.Qwen35MoEQ4, fixtures.Qwen3MoEQ4} {
		t.Run(model, func(t *testing.T) {
			d, f := openFakeDevice(t)
			f.total, f.idle = 1<<30, true
			e, err := actors.Open(context.Background(), actors.Config{Model: fixtures.Packed(t, model, 0), Device: d, Context: 256, ChunkRows: 8})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := e.Close(context.Background()); err != nil {
					t.Error(err)
				}
			}()
			if !e.Info().Resident {
				t.Fatalf("the device does not route by itself: %+v", e.Info())
			}
			s, err := e.NewSequence(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			token := func() map[string]int {
				f.mu.Lock()
				before := maps.Clone(f.counts)
				f.mu.Unlock()
				if _, err := s.Eval(context.Background(), []int32{1}); err != nil {
					t.Fatal(err)
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				now := map[string]int{}
				for name, n := range f.counts {
					now[name] = n - before[name]
				}
				return now
			}
			var usual map[string]int
			others := 0
			for i := range 150 {
				n := token()
				if n["cuGraphCreate"] != 0 || n["cuGraphLaunch"] == 0 || n["cuLaunchKernel"] > 3 || usual != nil && n["cuGraphLaunch"] != usual["cuGraphLaunch"] {
					others++
					continue
				}
				usual = n
				if i < 2 {
					t.Errorf("token %d is graphs: the test shows nothing", i)
				}
			}
			// At the beginning, and where attention comes to another number of pieces: its sums
			// between launches lie elsewhere then.
			if most := 2 + 2*150/32; others > most {
				t.Errorf("%d of 150 tokens are no launches of graphs that are there, want at most %d", others, most)
			}
			t.Logf("%d tokens are others; a token is %d launches of graphs, %d of kernels, %d copies to the device and %d from it, %d nodes are changed", others, usual["cuGraphLaunch"],
				usual["cuLaunchKernel"], usual["cuMemcpyHtoDAsync_v2"], usual["cuMemcpyDtoHAsync_v2"], usual["cuGraphExecKernelNodeSetParams_v2"])
		})
	}
}
