package host

import (
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// opCase is one operation of a step, and what it costs.
type opCase struct {
	name       string
	encode     func(b *testing.B, d *Device, c *gpu.Commands)
	multiplies int // fused multiply-adds, 0 where bytes tell more
	bytes      int // read and written
}

// benchCache returns pages of 256 positions for n positions: float32, or with group above 0 8 bits
// in groups of that many channels.
func benchCache(b *testing.B, d *Device, n, dim, group int) gpu.KV {
	kv := gpu.KV{KVLayout: gpu.KVLayout{PageRows: 256, Dim: dim, Group: group}}
	if group > 0 {
		kv.Format = gpu.KVInt8
	}
	kv.VOffset = kv.PartBytes()
	for p := 0; p < n; p += kv.PageRows {
		kv.Pages = kv.Pages.Append(benchFloats(b, d, kv.PartBytes()/2))
	}
	return kv
}

func attentionCase(name string, rows, pos, heads, kvHeads, dim int) opCase {
	looks := 0
	for r := range rows {
		looks += pos + r + 1
	}
	return opCase{name, func(b *testing.B, d *Device, c *gpu.Commands) {
		kv := benchCache(b, d, pos+rows, kvHeads*dim, 0)
		gpu.Encode(c, gpu.Attention{Q: benchFloats(b, d, rows*heads*dim), Y: benchFloats(b, d, rows*heads*dim), QRowStride: heads * dim,
			QHeadStride: dim, Heads: heads, KVHeads: kvHeads, HeadDim: dim, Scale: 1. / 11,
			Cache: kv.KVLayout, Segments: []gpu.KVSegment{{Rows: rows, Pos: pos, Pages: kv.Pages}}})
	}, 2 * looks * heads * dim, (pos + rows) * kvHeads * dim * 8}
}

func deltaCase(rows int) opCase {
	const keyHeads, valueHeads, dim = 16, 32, 128
	return opCase{"deltarule", func(b *testing.B, d *Device, c *gpu.Commands) {
		gpu.Encode(c, gpu.DeltaRule{QKV: benchFloats(b, d, rows*(2*keyHeads+valueHeads)*dim),
			Alpha: benchFloats(b, d, rows*valueHeads), Beta: benchFloats(b, d, rows*valueHeads),
			ALog: benchFloats(b, d, valueHeads), DtBias: benchFloats(b, d, valueHeads),
			Y: benchFloats(b, d, rows*valueHeads*dim), KeyHeads: keyHeads, ValueHeads: valueHeads, KeyDim: dim, ValueDim: dim,
			Segments: []gpu.StateSegment{{Rows: rows, State: benchFloats(b, d, valueHeads*dim*dim)}}})
	}, 4 * rows * valueHeads * dim * dim, 2 * valueHeads * dim * dim * 4}
}

// rowCases returns the operations whose cost depends only on the number of rows: H = 2048, 32 query
// and 4 key-value heads of 128, 8 experts picked; the gate of 16 heads of 256, a convolution of
// 8192 channels, a gated norm of 32 heads of 128.
func rowCases(rows int) []opCase {
	const dim = 2048
	vec := func(name string, n, streams int, encode func(f func(n int) gpu.View, c *gpu.Commands)) opCase {
		return opCase{name, func(b *testing.B, d *Device, c *gpu.Commands) {
			encode(func(n int) gpu.View { return benchFloats(b, d, n) }, c)
		}, 0, rows * n * streams * 4}
	}
	type view = func(n int) gpu.View
	return []opCase{
		vec("rmsnorm", dim, 2, func(f view, c *gpu.Commands) {
			gpu.Encode(c, gpu.RMSNorm{X: f(rows * dim), W: f(dim), Y: f(rows * dim), Vectors: rows, Dim: dim, Eps: 1e-6})
		}),
		vec("headnorm", 32*128, 2, func(f view, c *gpu.Commands) {
			x := f(rows * 32 * 128)
			gpu.Encode(c, gpu.RMSNorm{X: x, W: f(128), Y: x, Vectors: rows * 32, Dim: 128, Eps: 1e-6})
		}),
		vec("gatednorm", 32*128, 3, func(f view, c *gpu.Commands) {
			gpu.Encode(c, gpu.GatedNorm{X: f(rows * 32 * 128), W: f(128), Z: f(rows * 32 * 128), Y: f(rows * 32 * 128), Vectors: rows * 32, Dim: 128, Eps: 1e-6})
		}),
		vec("rope", 32*128, 2, func(f view, c *gpu.Commands) {
			gpu.Encode(c, gpu.Rope{X: f(rows * 32 * 128), Table: f(rows * 128), Rows: rows, Heads: 32, Rotary: 128, RowStride: 32 * 128, HeadStride: 128})
		}),
		vec("swiglu", 8*768, 3, func(f view, c *gpu.Commands) {
			n := rows * 8 * 768
			gpu.Encode(c, gpu.SwiGLU{Gate: f(n), Up: f(n), Y: f(n), Rows: rows, Dim: 8 * 768})
		}),
		vec("sigmoidgate", 16*256, 3, func(f view, c *gpu.Commands) {
			gpu.Encode(c, gpu.SigmoidGate{X: f(rows * 16 * 256), G: f(rows * 16 * 256), Rows: rows, Heads: 16, Dim: 256, GRowStride: 16 * 256, GHeadStride: 256})
		}),
		vec("add", dim, 3, func(f view, c *gpu.Commands) {
			gpu.Encode(c, gpu.Add{A: f(rows * dim), B: f(rows * dim), Y: f(rows * dim), N: rows * dim})
		}),
		vec("combine", dim, 11, func(f view, c *gpu.Commands) {
			gpu.Encode(c, gpu.Combine{Routed: f(rows * 8 * dim), Shared: f(rows * dim), SharedGate: f(rows), Residual: f(rows * dim),
				Y: f(rows * dim), Weights: gpu.List[float32]{Host: make([]float32, rows*8)}, Rows: rows, TopK: 8, Dim: dim})
		}),
		vec("causalconv", 8192, 2, func(f view, c *gpu.Commands) {
			gpu.Encode(c, gpu.CausalConv{X: f(rows * 8192), W: f(4 * 8192), Y: f(rows * 8192), Channels: 8192, Kernel: 4,
				Segments: []gpu.StateSegment{{Rows: rows, State: f(3 * 8192)}}})
		}),
		productCase("matmul/1x2048", rows, 1, dim),
		productCase("matmul/24x2048", rows, 24, dim),
		{"embed", func(b *testing.B, d *Device, c *gpu.Commands) {
			gpu.Encode(c, gpu.Embed{Table: benchMatrix(b, d, 1024, dim, q4), Tokens: make([]int32, rows), Y: benchFloats(b, d, rows*dim)})
		}, 0, rows * dim * 4},
		{"appendkv", func(b *testing.B, d *Device, c *gpu.Commands) {
			kv := benchCache(b, d, rows, 512, 0)
			gpu.Encode(c, gpu.AppendKV{K: benchFloats(b, d, rows*512), V: benchFloats(b, d, rows*512), Cache: kv.KVLayout,
				Segments: []gpu.KVSegment{{Rows: rows, Pages: kv.Pages}}})
		}, 0, rows * 512 * 4 * 4},
		{"appendkv/kv=int8", func(b *testing.B, d *Device, c *gpu.Commands) {
			kv := benchCache(b, d, rows, 512, 128)
			gpu.Encode(c, gpu.AppendKV{K: benchFloats(b, d, rows*512), V: benchFloats(b, d, rows*512), Cache: kv.KVLayout,
				Segments: []gpu.KVSegment{{Rows: rows, Pages: kv.Pages}}})
		}, 0, rows * 2 * (512*5 + 4*4)},
	}
}

// productCase is a product with a matrix in rows, such as a shared expert's gate, or a router whose
// experts do not fill panels.
func productCase(name string, rows, out, in int) opCase {
	return opCase{name, func(b *testing.B, d *Device, c *gpu.Commands) {
		gpu.Encode(c, gpu.MatMul{W: benchMatrix(b, d, out, in, q4), X: benchFloats(b, d, rows*in), Y: benchFloats(b, d, rows*out), Rows: rows})
	}, rows * out * in, q4.Bytes(out, in)}
}

func opCases(rows int) []opCase {
	list := append(rowCases(rows), deltaCase(rows))
	if rows == 1 {
		return append(list,
			attentionCase("attention/heads=32,4x128/positions=128", 1, 127, 32, 4, 128),
			attentionCase("attention/heads=32,4x128/positions=1024", 1, 1023, 32, 4, 128),
			attentionCase("attention/heads=16,2x256/positions=1024", 1, 1023, 16, 2, 256),
			attentionCase("attention/heads=16,2x256/positions=16384", 1, 16383, 16, 2, 256))
	}
	return append(list, attentionCase("attention/heads=32,4x128", rows, 0, 32, 4, 128), attentionCase("attention/heads=16,2x256", rows, 0, 16, 2, 256))
}

// bestOf returns the seconds of c's fastest run, which other work on the machine disturbs least.
// With one thread it is processor time.
func bestOf(b *testing.B, d *Device, c *gpu.Commands) float64 {
	b.Helper()
	start := time.Now()
	clock := func() time.Duration { return time.Since(start) }
	if d.Threads() == 1 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		clock = testenv.ThreadTime
	}
	best := math.Inf(1)
	for b.Loop() {
		from := clock()
		if err := d.Run(c); err != nil {
			b.Fatal(err)
		}
		best = min(best, (clock() - from).Seconds())
	}
	return best
}

// BenchmarkOps runs each operation beside matrix products, at the sizes of qwen3-30b-a3b and
// qwen3.5-35b-a3b, for one row and for a prompt. Shares of the peak follow from GMAC/s and GB/s.
func BenchmarkOps(b *testing.B) {
	counts := []int{1}
	if n := runtime.GOMAXPROCS(0); n > 1 {
		counts = append(counts, n)
	}
	for _, rows := range []int{1, 512} {
		for _, o := range opCases(rows) {
			for _, variant := range Variants() {
				for _, threads := range counts {
					b.Run(fmt.Sprintf("op=%s/rows=%d/variant=%s/threads=%d", o.name, rows, variant, threads), func(b *testing.B) {
						d := openVariant(b, threads, variant)
						var c gpu.Commands
						o.encode(b, d, &c)
						best := bestOf(b, d, &c)
						b.ReportMetric(best*1e9, "best-ns")
						b.ReportMetric(float64(o.bytes)/best/1e9, "GB/s")
						if o.multiplies > 0 {
							b.ReportMetric(float64(o.multiplies)/best/1e9, "GMAC/s")
						}
					})
				}
			}
		}
	}
}

// layeredCaches returns the keys and values of n positions in several layers as an engine keeps
// them: a page is 64 positions of all layers in one buffer, float32 or 8 bits in groups of
// channels. Latents are both keys and values.
func layeredCaches(b *testing.B, d *Device, layers, n, dim, group int, latent bool) (caches []gpu.KV, bytes int) {
	kv := gpu.KV{KVLayout: gpu.KVLayout{PageRows: 64, Dim: dim, Group: group}}
	if group > 0 {
		kv.Format = gpu.KVInt8
	}
	part := kv.PartBytes()
	size := 2 * part
	if latent {
		size = part
	}
	for range layers {
		caches = append(caches, kv)
	}
	for range n / kv.PageRows {
		page := benchFloats(b, d, layers*size/4)
		for i := range caches {
			c := &caches[i]
			c.Pages = c.Pages.Append(page)
			c.KOffset, c.VOffset = i*size, i*size+size-part
		}
	}
	return caches, n / kv.PageRows * size
}

// BenchmarkDecodeAttention takes one row through the attention of layers whose keys and values
// together exceed every cache, as decoding does: 32 heads on 4 key-value heads of 128, 16 on 2 of
// 256, and the folded form of latent attention, whose 128 heads share 576 channels. GB/s count keys
// and values as they are stored.
func BenchmarkDecodeAttention(b *testing.B) {
	for _, shape := range []struct {
		name                           string
		heads, kvHeads, dim, value, by int
	}{{"heads=32,4x128", 32, 4, 128, 0, 128}, {"heads=16,2x256", 16, 2, 256, 0, 128}, {"latent=128x576", 128, 1, 576, 512, 64}} {
		for _, positions := range []int{512, 4096} {
			for _, held := range heldKeys {
				eachThreadsOf(b, held.queries, func(b *testing.B, d *Device) {
					b.Run(fmt.Sprintf("%s/positions=%d/%v", shape.name, positions, held), func(b *testing.B) {
						group, layers := 0, 64*512/positions
						if held.keys == gpu.KVInt8 {
							group, layers = shape.by, 4*layers
						}
						caches, bytes := layeredCaches(b, d, layers, positions, shape.kvHeads*shape.dim, group, shape.value > 0)
						ops := make([]gpu.Commands, layers)
						for i := range ops {
							gpu.Encode(&ops[i], gpu.Attention{Q: benchFloats(b, d, shape.heads*shape.dim), Y: benchFloats(b, d, shape.heads*shape.dim),
								QRowStride: shape.heads * shape.dim, QHeadStride: shape.dim, Heads: shape.heads, KVHeads: shape.kvHeads, HeadDim: shape.dim, ValueDim: shape.value,
								Scale: 1. / 11, Cache: caches[i].KVLayout, Segments: []gpu.KVSegment{{Rows: 1, Pos: positions - 1, Pages: caches[i].Pages}}})
						}
						walk(b, d, ops, bytes)
						b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N*len(ops)), "us/layer")
					})
				})
			}
		}
	}
}

// held is how keys are held, and queries where keys are in 8 bits.
type held struct {
	keys    gpu.KVFormat
	queries Activations
}

func (h held) String() string { return fmt.Sprintf("kv=%v/activations=%v", h.keys, h.queries) }

var heldKeys = []held{{gpu.KVF32, F32}, {gpu.KVInt8, F32}, {gpu.KVInt8, Int8}}

// BenchmarkPromptAttention takes 512 rows of a prompt through the attention of a layer, the first
// ones and those behind 3,584 others: 32 heads on 4 key-value heads of 128.
func BenchmarkPromptAttention(b *testing.B) {
	const heads, kvHeads, dim, rows = 32, 4, 128, 512
	for _, pos := range []int{0, 3584} {
		for _, held := range heldKeys {
			eachThreadsOf(b, held.queries, func(b *testing.B, d *Device) {
				b.Run(fmt.Sprintf("pos=%d/%v", pos, held), func(b *testing.B) {
					group := 0
					if held.keys == gpu.KVInt8 {
						group = dim
					}
					kv, _ := layeredCaches(b, d, 1, pos+rows, kvHeads*dim, group, false)
					var c gpu.Commands
					gpu.Encode(&c, gpu.Attention{Q: benchFloats(b, d, rows*heads*dim), Y: benchFloats(b, d, rows*heads*dim), QRowStride: heads * dim, QHeadStride: dim,
						Heads: heads, KVHeads: kvHeads, HeadDim: dim, Scale: 1. / 11, Cache: kv[0].KVLayout, Segments: []gpu.KVSegment{{Rows: rows, Pos: pos, Pages: kv[0].Pages}}})
					for b.Loop() {
						if err := d.Run(&c); err != nil {
							b.Fatal(err)
						}
					}
					products := 2 * heads * dim * rows * (pos + (rows+1)/2)
					b.ReportMetric(float64(products)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GMAC/s")
				})
			})
		}
	}
}

// BenchmarkChoose takes one row through the indexers of layers as DeepSeek V3.2 has them, 64 heads
// of 128 channels, and through attention to the 2,048 positions that are chosen.
func BenchmarkChoose(b *testing.B) {
	const heads, dim, k, mixed, width, value = 64, 128, 2048, 128, 576, 512
	for _, positions := range []int{4096, 32768} {
		eachThreads(b, func(b *testing.B, d *Device) {
			keys, bytes := layeredCaches(b, d, 4, positions, dim, 0, true)
			latents, more := layeredCaches(b, d, 4, positions, width, 0, true)
			scored, attended := make([]gpu.Commands, 4), make([]gpu.Commands, 4)
			for i := range scored {
				chosen := benchFloats(b, d, k)
				list := intsAt(chosen, k)
				for j := range list {
					list[j] = int32(j * (positions / k))
				}
				gpu.Encode(&scored[i], gpu.Choose{Q: benchFloats(b, d, heads*dim), Weights: benchFloats(b, d, heads), Chosen: benchFloats(b, d, k),
					Heads: heads, Dim: dim, K: k, Scale: 1. / 11, Cache: keys[i].KVLayout, Segments: []gpu.KVSegment{{Rows: 1, Pos: positions - 1, Pages: keys[i].Pages}}})
				gpu.Encode(&attended[i], gpu.Attention{Q: benchFloats(b, d, mixed*width), Y: benchFloats(b, d, mixed*width), QRowStride: mixed * width,
					QHeadStride: width, Heads: mixed, KVHeads: 1, HeadDim: width, ValueDim: value, Scale: 1. / 11, Chosen: chosen, Budget: k,
					Cache: latents[i].KVLayout, Segments: []gpu.KVSegment{{Rows: 1, Pos: positions - 1, Pages: latents[i].Pages}}})
			}
			for name, ops := range map[string][]gpu.Commands{"choose": scored, "attend": attended} {
				b.Run(fmt.Sprintf("%s/positions=%d", name, positions), func(b *testing.B) {
					walk(b, d, ops, bytes+more)
					b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N*len(ops)), "us/layer")
				})
			}
		})
	}
}

// BenchmarkDecodeConv takes one row through the convolutions of layers whose weights and states
// together exceed every cache. GB/s count weights, and states once.
func BenchmarkDecodeConv(b *testing.B) {
	eachThreads(b, func(b *testing.B, d *Device) {
		const layers, channels = 384, 8192
		w, states := benchFloats(b, d, layers*4*channels), benchFloats(b, d, layers*3*channels)
		x, y := benchFloats(b, d, channels), benchFloats(b, d, channels)
		ops := make([]gpu.Commands, layers)
		for i := range ops {
			gpu.Encode(&ops[i], gpu.CausalConv{X: x, W: w.At(i * 16 * channels), Y: y, Channels: channels, Kernel: 4,
				Segments: []gpu.StateSegment{{Rows: 1, State: states.At(i * 12 * channels)}}})
		}
		walk(b, d, ops, 28*channels)
		b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N*len(ops)), "us/layer")
	})
}
