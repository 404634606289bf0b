package host

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// TestWiden8 checks that products of every shape are exact whatever follows the codes, and that
// nothing is written beside them.
func TestWiden8(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	eachVectors(t, func(t *testing.T, v *vectors) {
		for _, c := range []struct{ rows, group, groups int }{{1, 1, 1}, {3, 1, 5}, {2, 7, 3}, {5, 16, 1}, {4, 15, 2}, {64, 64, 9}, {16, 128, 1}, {3, 33, 2}, {2, 257, 1}} {
			width := c.group * c.groups
			codeStride, scaleStride := width+3, c.rows+1
			codes, scales := make([]byte, c.rows*codeStride+16), normals(rng, c.groups*scaleStride)
			for i := range codes {
				codes[i] = byte(rng.Uint32())
			}
			got := make([]float32, c.rows*width+2)
			got[c.rows*width], got[c.rows*width+1] = -7, -7
			v.widen8(got[:c.rows*width:c.rows*width], codes, scales, c.group, width, codeStride, scaleStride)
			for i, g := range got {
				want := float32(-7)
				if r, ch := i/width, i%width; r < c.rows {
					want = float32(int8(codes[r*codeStride+ch])) * scales[ch/c.group*scaleStride+r]
				}
				if g != want {
					t.Fatalf("%+v: element %d is %v, want %v", c, i, g, want)
				}
			}
		}
	})
}

// TestTranspose8 checks that products in columns are exact, and that nothing is written beside
// them.
func TestTranspose8(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 8))
	eachVectors(t, func(t *testing.T, v *vectors) {
		for _, c := range []struct{ rows, group, groups int }{{16, 16, 1}, {16, 128, 1}, {32, 16, 3}, {64, 64, 9}, {48, 256, 1}} {
			width := c.group * c.groups
			dstStride, codeStride, scaleStride := c.rows+3, width+5, c.rows+1
			codes, scales := make([]byte, c.rows*codeStride), normals(rng, c.groups*scaleStride)
			for i := range codes {
				codes[i] = byte(rng.Uint32())
			}
			got := make([]float32, width*dstStride)
			for i := range got {
				got[i] = -7
			}
			v.transpose8(got, codes, scales, c.group, width, dstStride, codeStride, scaleStride, c.rows)
			for i, g := range got {
				want := float32(-7)
				if ch, r := i/dstStride, i%dstStride; r < c.rows {
					want = float32(int8(codes[r*codeStride+ch])) * scales[ch/c.group*scaleStride+r]
				}
				if g != want {
					t.Fatalf("%+v: element %d is %v, want %v", c, i, g, want)
				}
			}
		}
	})
}

// asFloats returns a float32 cache with the numbers of kv.
func asFloats(t *testing.T, d *Device, kv *gpu.KV) gpu.KV {
	f := gpu.KV{KVLayout: gpu.KVLayout{PageRows: kv.PageRows, Dim: kv.Dim, VOffset: 4 * kv.PageRows * kv.Dim}}
	if kv.VOffset == kv.KOffset {
		f.VOffset = 0
	}
	for page := range kv.Pages.Len() {
		v := benchFloats(t, d, 2*kv.PageRows*kv.Dim)
		f.Pages = f.Pages.Append(v)
		for _, part := range [][2]int{{kv.KOffset, f.KOffset}, {kv.VOffset, f.VOffset}} {
			to := floatsAt(v.At(part[1]), kv.PageRows*kv.Dim)
			q, scales := codes(kv, page, part[0])
			for i := range to {
				to[i] = float32(int8(q[i])) * scales[i%kv.Dim/kv.Group*kv.PageRows+i/kv.Dim]
			}
		}
	}
	return f
}

// int8Cache returns an 8-bit cache with random rows at n positions.
func int8Cache(t *testing.T, d *Device, kv gpu.KV, n int) gpu.KV {
	kv.Format = gpu.KVInt8
	keysOnly := kv.VOffset < 0
	if kv.VOffset = kv.PartBytes(); keysOnly {
		kv.VOffset = 0
	}
	for p := 0; p < n; p += kv.PageRows {
		kv.Pages = kv.Pages.Append(benchFloats(t, d, kv.PartBytes()/2))
	}
	rng := rand.New(rand.NewPCG(uint64(n), uint64(kv.Dim)))
	place := func() gpu.View {
		v := benchFloats(t, d, n*kv.Dim)
		copy(floatsAt(v, n*kv.Dim), normals(rng, n*kv.Dim))
		return v
	}
	op := gpu.AppendKV{K: place(), Cache: kv.KVLayout, Segments: []gpu.KVSegment{{Rows: n, Pages: kv.Pages}}}
	if !keysOnly {
		op.V = place()
	}
	var c gpu.Commands
	gpu.Encode(&c, op)
	if err := d.Run(&c); err != nil {
		t.Fatal(err)
	}
	return kv
}

// TestInt8Cache checks that attention over 8 bits gives the same bits as attention over float32
// with the same numbers, for each variant, any threads and pages, and that all variants write the
// same pages. So what holds for float32 holds for 8 bits: rows do not depend on their company, on
// chunks or on threads. Where queries are rounded, too, it checks that threads do not matter; see
// TestRoundedQueries.
func TestInt8Cache(t *testing.T) {
	for _, c := range []struct{ heads, kvHeads, dim, group, pageRows, pos, rows int }{
		{32, 4, 128, 128, 64, 1500, 1}, {8, 2, 64, 16, 48, 700, 5}, {6, 3, 20, 20, 7, 100, 40}, {4, 1, 33, 11, 5, 64, 3}, {16, 2, 256, 256, 64, 3000, 2},
	} {
		var first [][]byte
		rounded := map[string][]float32{} // by variants
		for _, cfg := range allConfigs(1, 3) {
			t.Run(fmt.Sprintf("%+v/%+v", c, cfg), func(t *testing.T) {
				d := openConfig(t, cfg)
				kv := int8Cache(t, d, gpu.KV{KVLayout: gpu.KVLayout{PageRows: c.pageRows, Dim: c.kvHeads * c.dim, Group: c.group}}, c.pos+c.rows)
				var pages [][]byte
				for i := range kv.Pages.Len() {
					pages = append(pages, bytesAt(kv.Pages.At(i), 2*kv.PartBytes()))
				}
				if first == nil {
					for _, p := range pages {
						first = append(first, bytes.Clone(p))
					}
				}
				for i, p := range pages {
					if !bytes.Equal(p, first[i]) {
						t.Fatalf("page %d differs from that of the first variant", i)
					}
				}
				q := benchFloats(t, d, c.rows*c.heads*c.dim)
				copy(floatsAt(q, c.rows*c.heads*c.dim), normals(rand.New(rand.NewPCG(3, 4)), c.rows*c.heads*c.dim))
				attend := func(kv gpu.KV) []float32 {
					y := benchFloats(t, d, c.rows*c.heads*c.dim)
					var cmd gpu.Commands
					gpu.Encode(&cmd, gpu.Attention{Q: q, Y: y, QRowStride: c.heads * c.dim, QHeadStride: c.dim, Heads: c.heads, KVHeads: c.kvHeads, HeadDim: c.dim,
						Scale: 0.2, Cache: kv.KVLayout, Segments: []gpu.KVSegment{{Rows: c.rows, Pos: c.pos, Pages: kv.Pages}}})
					if err := d.Run(&cmd); err != nil {
						t.Fatal(err)
					}
					return floatsAt(y, c.rows*c.heads*c.dim)
				}
				y, want := attend(kv), attend(asFloats(t, d, &kv))
				if cfg.Activations == Int8 && c.group%codeColumns == 0 {
					if numcmp.Equal(y, want) == nil {
						t.Error("queries were not rounded")
					}
					if want = rounded[cfg.Variant]; want == nil {
						want = slices.Clone(y)
					}
					rounded[cfg.Variant] = want
				}
				if err := numcmp.Equal(y, want); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestInt8Latents is TestInt8Cache for compressed vectors, in the expanded form.
func TestInt8Latents(t *testing.T) {
	const heads, rank, nope, rope, dim, rows, pos = 3, 64, 32, 16, 24, 5, 130
	for _, cfg := range allConfigs(1, 3) {
		t.Run(fmt.Sprintf("%+v", cfg), func(t *testing.T) {
			d := openConfig(t, cfg)
			kv := int8Cache(t, d, gpu.KV{KVLayout: gpu.KVLayout{PageRows: 48, Dim: rank + rope, Group: 16, VOffset: -1}}, pos+rows)
			w := benchMatrix(t, d, heads*(nope+dim), rank, quant.BF16)
			const width = nope + rope
			q := benchFloats(t, d, rows*heads*width)
			copy(floatsAt(q, rows*heads*width), normals(rand.New(rand.NewPCG(3, 4)), rows*heads*width))
			attend := func(kv gpu.KV) []float32 {
				y := benchFloats(t, d, rows*heads*dim)
				var cmd gpu.Commands
				gpu.Encode(&cmd, gpu.LatentAttention{Q: q, Y: y, QRowStride: heads * width, QHeadStride: width, Keys: w, Values: w, KeyRows: nope + dim,
					ValueRows: nope + dim, FirstValue: nope, Heads: heads, Rank: rank, Nope: nope, Rope: rope, ValueDim: dim, Scale: float32(1 / math.Sqrt(width)),
					Cache: kv.KVLayout, Segments: []gpu.KVSegment{{Rows: rows, Pos: pos, Pages: kv.Pages}}})
				if err := d.Run(&cmd); err != nil {
					t.Fatal(err)
				}
				return floatsAt(y, rows*heads*dim)
			}
			if err := numcmp.Equal(attend(kv), attend(asFloats(t, d, &kv))); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTouch reads rows at both ends of memory that lies between unreadable pages.
func TestTouch(t *testing.T) {
	page := unix.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 3*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	for _, guard := range [][]byte{mem[:page], mem[2*page:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	inner := mem[page : 2*page]
	eachVectors(t, func(t *testing.T, v *vectors) {
		for _, width := range []int{1, 4, 63, 64, 65, 128, 516} {
			for _, rows := range []int{1, 3} {
				stride := width + 7
				v.touch(inner, width, stride, rows)
				v.touch(inner[page-(rows-1)*stride-width:], width, stride, rows)
			}
		}
	})
}
