package host

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// TestLatentSpans compares heads whose positions are divided among threads with one thread, which
// divides nothing: the bits are the same. A short text travels with a long one, whose rows begin in
// one span and end in another.
func TestLatentSpans(t *testing.T) {
	const heads, rank, nope, rope, dim, rows, pos = 3, 64, 32, 16, 24, 20, 1780
	const width = nope + rope
	rng := rand.New(rand.NewPCG(5, 6))
	qs := normals(rng, (rows+2)*heads*width)
	for _, codes := range []bool{false, true} {
		var want []float32
		for _, threads := range []int{1, 2, 3, 5, 16, 64} {
			d := open(t, threads)
			cache := gpu.KV{KVLayout: gpu.KVLayout{PageRows: 48, Dim: rank + rope, Group: 16, VOffset: -1}}
			long, short := int8Cache(t, d, cache, pos+rows), int8Cache(t, d, cache, 2)
			if !codes {
				long, short = asFloats(t, d, &long), asFloats(t, d, &short)
			}
			w := benchMatrix(t, d, heads*(nope+dim), rank, quant.BF16)
			q, y := benchFloats(t, d, len(qs)), benchFloats(t, d, (rows+2)*heads*dim)
			copy(floatsAt(q, len(qs)), qs)
			var cmd gpu.Commands
			gpu.Encode(&cmd, gpu.LatentAttention{Q: q, Y: y, QRowStride: heads * width, QHeadStride: width, Keys: w, Values: w, KeyRows: nope + dim,
				ValueRows: nope + dim, FirstValue: nope, Heads: heads, Rank: rank, Nope: nope, Rope: rope, ValueDim: dim, Scale: float32(1 / math.Sqrt(width)),
				Cache: long.KVLayout, Segments: []gpu.KVSegment{{Rows: rows, Pos: pos, Pages: long.Pages}, {Row: rows, Rows: 2, Pages: short.Pages}}})
			if err := d.Run(&cmd); err != nil {
				t.Fatal(err)
			}
			got := floatsAt(y, (rows+2)*heads*dim)
			if want == nil {
				want = append(want, got...)
			}
			if err := numcmp.Equal(got, want); err != nil {
				t.Errorf("8 bits %v, %d threads against one: %v", codes, threads, err)
			}
		}
	}
}

// TestLatentRound checks that threads which heads leave idle get spans, four chunks each where
// there are so many.
func TestLatentRound(t *testing.T) {
	for _, c := range []struct{ heads, spans, threads, ns, want int }{
		{16, 16, 1, 1e9, 0},
		{16, 16, 8, 1e9, 0},
		{16, 16, 9, 1e9, 3},
		{16, 16, 64, 1e9, 16},
		{16, 64, 64, 1e9, 16},
		{32, 64, 64, 1e9, 8},
		{128, 64, 64, 1e9, 0},
		{20, 2, 64, 1e9, 2},
		{20, 1, 64, 1e9, 0},
		{20, 16, 64, 8000, 0},
	} {
		if got := latentRound(c.heads, c.spans, c.threads, c.ns); got != c.want {
			t.Errorf("%d heads, %d spans, %d threads, %d ns: %d spans a round, want %d", c.heads, c.spans, c.threads, c.ns, got, c.want)
		}
	}
}

// BenchmarkLatentPrompt takes 256 rows at 3,840 positions through a layer of few heads.
func BenchmarkLatentPrompt(b *testing.B) {
	const rank, nope, rope, dim, rows, pos = 512, 128, 64, 128, 256, 3840
	const width = nope + rope
	for _, heads := range []int{1, 3} {
		b.Run(fmt.Sprintf("heads=%d", heads), func(b *testing.B) {
			eachThreads(b, func(b *testing.B, d *Device) {
				kv, _ := layeredCaches(b, d, 1, pos+rows, rank+rope, 0, true)
				w := benchMatrix(b, d, heads*(nope+dim), rank, quant.BF16)
				var cmd gpu.Commands
				gpu.Encode(&cmd, gpu.LatentAttention{Q: benchFloats(b, d, rows*heads*width), Y: benchFloats(b, d, rows*heads*dim), QRowStride: heads * width, QHeadStride: width,
					Keys: w, Values: w, KeyRows: nope + dim, ValueRows: nope + dim, FirstValue: nope, Heads: heads, Rank: rank, Nope: nope, Rope: rope, ValueDim: dim,
					Scale: 0.1, Cache: kv[0].KVLayout, Segments: []gpu.KVSegment{{Rows: rows, Pos: pos, Pages: kv[0].Pages}}})
				for b.Loop() {
					if err := d.Run(&cmd); err != nil {
						b.Fatal(err)
					}
				}
			})
		})
	}
}
