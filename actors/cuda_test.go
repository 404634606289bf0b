//go:build cuda && linux && (amd64 || arm64)

package actors_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/cuda"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
)

// The tests of this file need a GPU: go test -tags cuda -run CUDA.

func openCUDA(tb testing.TB) *cuda.Device {
	tb.Helper()
	d, err := cuda.Open(cuda.Config{
		Driver: os.Getenv(cuda.DriverVariable), Compiler: os.Getenv(cuda.CompilerVariable), CacheDir: os.Getenv("MOEFLUX_CUDA_CACHE"),
		Ahead: 4, // as engines have it: which kernel computes a step depends on the compiler's progress
	})
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

// TestCUDAFixtures wants the reference's numbers of all fixtures from the GPU, with all experts
// there and with slots.
func TestCUDAFixtures(t *testing.T) {
	dev := openCUDA(t)
	for _, name := range fixtures.All() {
		dir, ref := fixtures.Packed(t, name, 0), fixtures.Reference(t, name)
		for _, chunk := range []int{128, 7, 1} {
			for _, io := range []actors.ExpertIO{actors.ExpertIOMmap, actors.ExpertIOBuffered} {
				t.Run(fmt.Sprintf("%s/chunk=%d/io=%s", name, chunk, io), func(t *testing.T) {
					e := open(t, actors.Config{Model: dir, Device: dev, ChunkRows: chunk, ExpertIO: io})
					c := &comparer{t: t, limit: fixtures.Tolerance(name)}
					for _, prompt := range fixtures.Prompts(name) {
						c.checkPrompt(e, ref, prompt)
					}
					t.Logf("largest difference %.1e", c.worst)
				})
			}
		}
	}
}

// TestCUDADemo wants the reference's losses of the demo model from the GPU.
func TestCUDADemo(t *testing.T) {
	e, ref := openDemo(t, openCUDA(t), actors.Config{})
	worst := 0.0
	s := sequence(t, e)
	for w := range ref.Windows {
		ids := ref.EvalIDs[w*ref.Seq : (w+1)*ref.Seq+1]
		if err := s.Reset(context.Background()); err != nil {
			t.Fatal(err)
		}
		r, err := s.EvalChunk(context.Background(), actors.Chunk{Tokens: ids[:ref.Seq], Logits: actors.AllLogits})
		if err != nil {
			t.Fatal(err)
		}
		d := math.Abs(meanLoss(r.Logits, ids[1:]) - ref.NLL[w])
		worst = max(worst, d)
		if !(d <= 1e-4) {
			t.Errorf("window %d: the loss is off by %.1e", w, d)
		}
	}
	t.Logf("%d windows: largest difference of a loss %.1e", ref.Windows, worst)
}

func TestCUDALargeSteps(t *testing.T) { testLargeSteps(t, openCUDA(t), 4096) }

// TestCUDAEqualBits wants the same bits from the GPU whatever changes speed only.
func TestCUDAEqualBits(t *testing.T) {
	dev := openCUDA(t)
	for _, name := range []string{fixtures.Qwen35MoEQ4, fixtures.DeepseekV3BF16} {
		dir := fixtures.Packed(t, name, 0)
		base := open(t, actors.Config{Model: dir, Device: dev, RingDepth: 1, ExpertIO: actors.ExpertIOMmap, ChunkRows: 12})
		p := prompt(1, 21, base.Model().VocabSize)
		want, err := transcript(sequence(t, base), p, 6)
		if err != nil {
			t.Fatal(err)
		}
		slot := int64(base.Info().SlotBytes+4095) / 4096 * 4096
		for depth := 1; depth <= 3; depth++ {
			for _, c := range []struct {
				io           actors.ExpertIO
				slots, waves int
				prefetch     actors.Prefetch
			}{
				{actors.ExpertIOMmap, 0, 0, actors.PrefetchOff}, {actors.ExpertIOMmap, 0, 3, actors.PrefetchOff}, {actors.ExpertIOBuffered, 4, 4, actors.PrefetchBoth},
				{actors.ExpertIOBuffered, 24, 3, actors.PrefetchBoth}, {actors.ExpertIOBuffered, 128, 16, actors.PrefetchOff},
			} {
				t.Run(fmt.Sprintf("%s/depth=%d/io=%s/slots=%d/waves=%d/prefetch=%s", name, depth, c.io, c.slots, c.waves, c.prefetch), func(t *testing.T) {
					e := open(t, actors.Config{
						Model: dir, Device: dev, RingDepth: depth, ExpertIO: c.io, ExpertMemory: int64(c.slots) * slot, WaveSlots: c.waves, Prefetch: c.prefetch, ChunkRows: 12,
					})
					got, err := transcript(sequence(t, e), p, 6)
					if err != nil {
						t.Fatal(err)
					}
					for i := range want {
						if err := numcmp.Equal(got[i], want[i]); err != nil {
							t.Fatalf("token %d: %v", i, err)
						}
					}
				})
			}
		}
	}
}

// TestCUDANear has the GPU read experts in the host's memory, of all fixtures.
func TestCUDANear(t *testing.T) {
	dev := openCUDA(t)
	for _, name := range fixtures.All() {
		t.Run(name, func(t *testing.T) { testNear(t, nearTest{name, 4, dev, dev, nil}) })
	}
}

// TestCUDADump wants the insides of layers from the GPU.
func TestCUDADump(t *testing.T) {
	testDump(t, openCUDA(t), fixtures.All(), []int{64, 4, 1})
}

// TestCUDAProbe computes parts of models on the GPU.
func TestCUDAProbe(t *testing.T) { testProbe(t, openCUDA(t), fixtures.All()) }

// TestCUDAPlain compares joined launches with their parts.
func TestCUDAPlain(t *testing.T) { testPlain(t, openCUDA(t), fixtures.All()) }

func TestCUDALayerTimes(t *testing.T) { checkLayerTimes(t, openCUDA(t)) }

// TestCUDAWhyPlanted wants causes that are planted in an engine on the GPU to be named first.
func TestCUDAWhyPlanted(t *testing.T) {
	dev := openCUDA(t)
	for _, c := range plantedFar() {
		t.Run(c.name, func(t *testing.T) {
			c.record(t, dev) // the first run compiles kernels
			c.check(t, dev)
		})
	}
}
