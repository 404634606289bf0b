package actors_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/refmodel"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
)

// ways are how experts of a file come into memory: all of them at once, or a few at a time.
var ways = []actors.Config{
	{},
	{ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 1 << 20},
	{ExpertIO: actors.ExpertIODirect, ExpertMemory: 1 << 20, Prefetch: actors.PrefetchBoth},
}

// A GGUF file that is used in place gives the reference's numbers, and to the bit those of the
// directory that convert makes of it.
func TestGGUF(t *testing.T) {
	dev := device(t, 2)
	for _, name := range fixtures.GGUFs() {
		dir := packedFrom(t, fixtures.GGUF(t, name))
		ids := ints(fixtures.Reference(t, name), "p9.ids")
		want := logitsOf(t, open(t, actors.Config{Model: dir, Device: dev}), ids)
		for i, cfg := range ways {
			t.Run(fmt.Sprintf("%s/%d", name, i), func(t *testing.T) {
				cfg.Model, cfg.Device = fixtures.GGUF(t, name), dev
				e := open(t, cfg)
				if got := logitsOf(t, e, ids); !slices.Equal(got, want) {
					t.Error("logits differ from those of the directory")
				}
				if name != fixtures.DeepseekV3BF16 { // whose file has another temperature
					c := &comparer{t: t, limit: fixtures.Tolerance(name), decode: 8}
					c.checkPrompt(e, fixtures.Reference(t, name), "p9")
				}
			})
		}
	}
}

func packedFrom(t *testing.T, path string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "packed")
	if err := convert.Convert(context.Background(), path, dir, convert.Options{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

func logitsOf(t *testing.T, e *actors.Engine, ids []int32) []float32 {
	t.Helper()
	s := sequence(t, e)
	defer s.Close()
	got, err := s.EvalChunk(context.Background(), actors.Chunk{Tokens: ids, Logits: actors.AllLogits})
	if err != nil {
		t.Fatal(err)
	}
	return got.Logits
}

// Blocks of many types, mixed by tensor and by layer, compute what their numbers say in float64.
func TestGGUFBlocks(t *testing.T) {
	ids := []int32{3, 14, 15, 9, 26, 53, 58, 9, 7, 9, 3, 23}
	for _, path := range []string{fixtures.Path(t, fixtures.ExactGGUF), fixtures.Path(t, fixtures.RoundedGGUF), fixtures.GGUF(t, fixtures.GptOssMXFP4)} {
		name := filepath.Base(path)
		reference, err := refmodel.Open(packedFrom(t, path))
		if err != nil {
			t.Fatal(err)
		}
		want := reference.Forward(ids)
		for i, cfg := range ways {
			cfg.Model, cfg.Device = path, device(t, 2)
			got := logitsOf(t, open(t, cfg), ids)
			vocab := len(want.Logits[0])
			worst, size := 0.0, 0.0
			for p, row := range want.Logits {
				for v, x := range row {
					worst, size = max(worst, math.Abs(float64(got[p*vocab+v])-x)), max(size, math.Abs(x))
				}
			}
			if !(worst <= 2e-5*size) || want.MinGap() < 1e-4 {
				t.Errorf("%s, way %d: logits of up to %g differ by %g; the least gap of routers is %g", name, i, size, worst, want.MinGap())
			}
		}
	}
}

// What cannot be done with a GGUF file is said, with what to do.
func TestGGUFRefuses(t *testing.T) {
	path := fixtures.GGUF(t, fixtures.Qwen35MoEBF16)
	short := filepath.Join(t.TempDir(), "short.gguf")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(short, raw[:len(raw)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		cfg  actors.Config
		want string
	}{
		{actors.Config{Model: path, ExpertsDir: t.TempDir()}, "as a whole"},
		{actors.Config{Model: path, Partial: true}, "as a whole"},
		{actors.Config{Model: path, ExpertIO: actors.ExpertIOMmap}, "leave it to auto"},
		{actors.Config{Model: path, Verify: true}, "no checksums"},
		{actors.Config{Model: path, VerifyReads: "on", ExpertIO: actors.ExpertIOBuffered}, "no checksums of records"},
		{actors.Config{Model: short}, "cut short or damaged"},
	} {
		c.cfg.Device = device(t, 1)
		e, err := actors.Open(context.Background(), c.cfg)
		if err == nil {
			e.Close(context.Background())
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: got %v, want %q", c.cfg.Model, err, c.want)
		}
	}
	if _, err := actors.Open(context.Background(), actors.Config{Model: path, ExpertsDir: t.TempDir(), Device: device(t, 1)}); !errors.Is(err, modelfiles.ErrWhole) {
		t.Errorf("got %v", err)
	}
	c, err := actors.Describe(actors.Config{Model: path})
	if err != nil || c.ExpertBytes == 0 || c.WeightBytes == 0 {
		t.Errorf("%+v, %v", c, err)
	}
}
