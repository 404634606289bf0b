package host

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
)

// TestSpanCut checks that every head of every span of every tile is in exactly one chunk, and that
// a thread's runs of spans are its own.
func TestSpanCut(t *testing.T) {
	for _, tiles := range []int{1, 3} {
		for _, heads := range []int{1, 2, 5} {
			for _, threads := range []int{1, 2, 3, 8} {
				for last := 1; last < 20*attnSpan; last += 53 {
					name := fmt.Sprintf("%d tiles, %d heads, %d threads, %d positions", tiles, heads, threads, last)
					c := cutSpans(tiles, heads, last, threads)
					seen := map[[3]int]int{}
					for i := range c.chunks {
						s := c.chunk(i)
						if s.until <= s.span || s.span >= c.count || s.tile >= tiles {
							t.Fatalf("%s: chunk %d is %+v of %+v", name, i, s, c)
						}
						for g := range heads {
							if !s.alone || g == s.head {
								seen[[3]int{s.tile, s.span, g}]++
							}
						}
					}
					for _, n := range seen {
						if n != 1 {
							t.Fatalf("%s: a span's head is in %d chunks", name, n)
						}
					}
					if want := tiles * heads * chunks(last, attnSpan); len(seen) != want {
						t.Fatalf("%s: %d spans of heads, want %d", name, len(seen), want)
					}
				}
			}
		}
	}
}

// TestMultiplyAhead checks that the bits are those of multiply, and that next advances to last and
// no further.
func TestMultiplyAhead(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	eachVectors(t, func(t *testing.T, v *vectors) {
		if v.multiplyAhead == nil {
			return
		}
		for _, size := range [][3]int{{8, 64, 128}, {15, 3, 31}, {4, 128, 64}, {7, 5, 100}, {1, 1, 1}} {
			rows, depth, cols := size[0], size[1], size[2]
			a, b, c := normals(rng, rows*depth), normals(rng, depth*cols), normals(rng, rows*cols)
			for _, sum := range []bool{false, true} {
				for _, n := range []int{0, 64, 640, 1 << 20} {
					mem := make([]byte, n+aheadBytes)
					l := aheadLines{unsafe.Pointer(&mem[0]), unsafe.Pointer(&mem[n])}
					got, want := slices.Clone(c), slices.Clone(c)
					v.multiplyAhead(got, a, b, cols, depth, cols, rows, depth, cols, sum, (*byte)(unsafe.Pointer(&l)))
					v.multiply(want, a, b, cols, depth, cols, rows, depth, cols, sum)
					if err := numcmp.Equal(got, want); err != nil {
						t.Errorf("%v sum=%t: %v", size, sum, err)
					}
					moved := int(uintptr(l.next) - uintptr(unsafe.Pointer(&mem[0])))
					if moved < min(n, depth*4*v.lanes) || moved > n || l.last != unsafe.Pointer(&mem[n]) {
						t.Errorf("%v: next moved by %d of %d bytes", size, moved, n)
					}
				}
			}
		}
	})
}

// exactAttention is a row's attention in float64, for one head over n positions of keys and values
// [n, dim].
func exactAttention(q []float32, keys, values func(p int) []float32, n int, scale float64) []float64 {
	weights, sum, y := make([]float64, n), 0., make([]float64, len(q))
	top := math.Inf(-1)
	for p := range weights {
		for i, x := range keys(p) {
			weights[p] += float64(q[i]) * float64(x) * scale
		}
		top = max(top, weights[p])
	}
	for p, w := range weights {
		w = math.Exp(w - top)
		sum += w
		for i, x := range values(p) {
			y[i] += w * float64(x)
		}
	}
	for i := range y {
		y[i] /= sum
	}
	return y
}

// TestFewRows compares attention of few rows with its definition, and its bits with those of the
// same rows among many, which take another path. Texts end at odd places of spans, blocks and
// pages, with any number of threads and several segments.
func TestFewRows(t *testing.T) {
	const heads, kvHeads, dim, scale, most = 6, 2, 48, 0.2, 1400
	rng := rand.New(rand.NewPCG(11, 12))
	k, v, q := normals(rng, most*kvHeads*dim), normals(rng, most*kvHeads*dim), normals(rng, most*heads*dim)
	row := func(x []float32, p, width int) []float32 { return x[p*width : (p+1)*width] }
	for _, variant := range floatVariants() {
		for _, pageRows := range []int{64, 48, 200} {
			var alone []float32
			for _, threads := range []int{1, 2, 3, 64} {
				t.Run(fmt.Sprintf("variant=%s/pageRows=%d/threads=%d", variant, pageRows, threads), func(t *testing.T) {
					d := openVariant(t, threads, variant)
					place := func(x []float32) gpu.View {
						view := benchFloats(t, d, len(x))
						copy(floatsAt(view, len(x)), x)
						return view
					}
					kv := gpu.KV{KVLayout: gpu.KVLayout{PageRows: pageRows, Dim: kvHeads * dim}}
					kv.VOffset = kv.PartBytes()
					for p := 0; p < most; p += pageRows {
						kv.Pages = kv.Pages.Append(benchFloats(t, d, kv.PartBytes()/2))
					}
					run := func(c *gpu.Commands) {
						if err := d.Run(c); err != nil {
							t.Fatal(err)
						}
					}
					var c gpu.Commands
					gpu.Encode(&c, gpu.AppendKV{K: place(k), V: place(v), Cache: kv.KVLayout, Segments: []gpu.KVSegment{{Rows: most, Pages: kv.Pages}}})
					run(&c)
					attend := func(segments ...gpu.KVSegment) []float32 {
						var rows []float32
						for i := range segments {
							s := &segments[i]
							s.Row = len(rows) / (heads * dim)
							rows = append(rows, q[s.Pos*heads*dim:(s.Pos+s.Rows)*heads*dim]...)
							s.Pages = kv.Pages
						}
						y := benchFloats(t, d, len(rows))
						var c gpu.Commands
						gpu.Encode(&c, gpu.Attention{Q: place(rows), Y: y, QRowStride: heads * dim, QHeadStride: dim, Heads: heads, KVHeads: kvHeads, HeadDim: dim,
							Scale: scale, Cache: kv.KVLayout, Segments: segments})
						run(&c)
						return floatsAt(y, len(rows))
					}
					many := attend(gpu.KVSegment{Rows: most})
					if alone == nil {
						alone = slices.Clone(many) // the memory is the device's
					}
					if err := numcmp.Equal(many, alone); err != nil {
						t.Fatalf("many rows: %v", err)
					}
					for _, n := range []int{1, 17, 64, 255, 256, 257, 430, 511, 512, 513, 700, 801, 1023, 1100, 1399} {
						for _, rows := range []int{1, 3} {
							if n < rows {
								continue
							}
							got := attend(gpu.KVSegment{Rows: rows, Pos: n - rows})
							if err := numcmp.Equal(got, many[(n-rows)*heads*dim:n*heads*dim]); err != nil {
								t.Fatalf("%d rows to position %d: %v", rows, n, err)
							}
						}
						if threads > 1 {
							continue
						}
						for h := range heads {
							at := h / (heads / kvHeads) * dim
							part := func(x []float32) func(p int) []float32 {
								return func(p int) []float32 { return row(x, p, kvHeads*dim)[at : at+dim] }
							}
							want := exactAttention(row(q, n-1, heads*dim)[h*dim:(h+1)*dim], part(k), part(v), n, scale)
							for i, w := range want {
								// values are about 1, sums of 1,400 weights
								if g := row(many, n-1, heads*dim)[h*dim+i]; math.Abs(float64(g)-w) > 2e-6 {
									t.Fatalf("position %d, head %d, channel %d: %v, want %v", n, h, i, g, w)
								}
							}
						}
					}
					got := attend(gpu.KVSegment{Rows: 1, Pos: 1300}, gpu.KVSegment{Rows: 2, Pos: 600}, gpu.KVSegment{Rows: 1, Pos: 3})
					want := slices.Concat(row(many, 1300, heads*dim), many[600*heads*dim:602*heads*dim], row(many, 3, heads*dim))
					if err := numcmp.Equal(got, want); err != nil {
						t.Errorf("three segments: %v", err)
					}
				})
			}
		}
	}
}

// TestDivideHeads checks how many pieces the attention of a row of 32 heads on 4 has: one for each
// thread where there are many, and all query heads of a key-value head together where there are
// few. A span that has just begun divides nothing.
func TestDivideHeads(t *testing.T) {
	for _, c := range []struct{ threads, positions, pieces int }{
		{4, 500, 8}, {8, 500, 8}, {16, 500, 16}, {16, 513, 24}, {32, 500, 32}, {64, 500, 64},
		{16, 200, 16}, {64, 200, 32}, {8, 760, 24}, {16, 1000, 16}, {64, 4000, 64},
	} {
		a := attnTask{heads: 32, kvHeads: 4, perKV: 1, perHead: 8, perRow: 1, segments: []gpu.KVSegment{{Rows: 1}}}
		a.count(8)
		a.divideHeads(8, c.positions, c.threads)
		if got := a.tiles * chunks(c.positions, attnSpan); got != c.pieces {
			t.Errorf("%d threads, %d positions: %d pieces, want %d", c.threads, c.positions, got, c.pieces)
		}
	}
}
