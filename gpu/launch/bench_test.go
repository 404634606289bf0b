package launch

import (
	"fmt"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
)

// BenchmarkStep is what the host does for one decoded step of many texts: checking and encoding the
// cache and attention of all layers, one Submit a layer. The back end does nothing.
func BenchmarkStep(b *testing.B) {
	for _, positions := range []int{64, 4096} {
		for _, texts := range []int{1, 128} {
			b.Run(fmt.Sprintf("texts=%d/positions=%d", texts, positions), func(b *testing.B) { benchStep(b, texts, positions) })
		}
	}
}

func benchStep(b *testing.B, texts, positions int) {
	const layers, heads, kvHeads, dim, pageRows = 48, 32, 4, 128, 64
	d := openFake(b, &fake{})
	q := newQueue(b, d)
	v := newBuffer(b, d, 1<<24)
	kv := gpu.KVLayout{PageRows: pageRows, Dim: kvHeads * dim}
	kv.VOffset = kv.PartBytes()
	page := newBuffer(b, d, layers*2*kv.PartBytes())
	var segments []gpu.KVSegment
	states := make([]gpu.StateSegment, texts)
	for t := range texts {
		var views []gpu.View
		for p := 0; p < positions; p += pageRows {
			views = append(views, page)
		}
		segments = append(segments, gpu.KVSegment{Row: t, Rows: 1, Pos: positions - 1, Pages: gpu.PagesOf(views...)})
		states[t] = gpu.StateSegment{Row: t, Rows: 1, State: newBuffer(b, d, 4*3*64)}
	}
	done := make(chan error, 1)
	tell := func(err error) { done <- err }
	c := new(gpu.Commands)
	b.ReportAllocs()
	for b.Loop() {
		for l := range layers {
			c.Reset()
			cache := kv
			cache.KOffset, cache.VOffset = l*2*kv.PartBytes(), (l*2+1)*kv.PartBytes()
			gpu.Encode(c, gpu.AppendKV{K: v, V: v, Cache: cache, Segments: segments})
			gpu.Encode(c, gpu.Attention{Q: v, Y: v.At(1 << 23), QRowStride: heads * dim, QHeadStride: dim, Heads: heads, KVHeads: kvHeads, HeadDim: dim,
				Scale: 1, Cache: cache, Segments: segments})
			gpu.Encode(c, gpu.CausalConv{X: v, W: v, Y: v.At(1 << 23), Channels: 64, Kernel: 4, Segments: states})
			t, err := q.Submit(c)
			if err != nil {
				b.Fatal(err)
			}
			t.OnDone(tell)
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/step")
}

// BenchmarkSubmit is what the host does for one Submit of nearly all operations: filling, checking
// and encoding Commands. The back end does nothing.
func BenchmarkSubmit(b *testing.B) {
	submit := many(b)
	b.ReportAllocs()
	for b.Loop() {
		submit()
	}
}
