package launch

import (
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// Limits are those of the measured GPU, in the proportion of processors, rounded.
func TestLimits(t *testing.T) {
	for _, c := range []struct {
		processors int
		want       limits
	}{
		{1, limits{2, 1, 512, 3, 8, 16}},
		{82, limits{139, 70, 41984, 248, 656, 1312}},    // an RTX 3090
		{108, limits{183, 92, 55296, 327, 864, 1728}},   // an A100
		{128, limits{217, 109, 65536, 388, 1024, 2048}}, // an RTX 4090
		{132, limits{224, 112, 67584, 400, 1056, 2112}}, // an H200
		{148, limits{251, 126, 75776, 448, 1184, 2368}}, // a B200
		{170, limits{288, 144, 87040, 515, 1360, 2720}}, // an RTX 5090
	} {
		if got := limitsOf(c.processors); got != c.want {
			t.Errorf("%d processors: %v, want %v", c.processors, got, c.want)
		}
	}
	if got, want := limitsFor(struct{ Backend }{}), limitsOf(132); got != want {
		t.Errorf("a back end that does not know its size: %v, want %v", got, want)
	}
}

// A warp has the tiles of a gate and of its up. Of any other matrix it has one, or two where one
// each would take more warps than the GPU holds.
func TestExpertShape(t *testing.T) {
	l := limitsOf(132)
	for _, c := range []struct {
		rows, xrows, jobs int
		gated, made       bool
		warps             int // of a job
		want              limbShape
	}{
		{1, 1, 8, true, true, 192, limbShape{xrows: 8, tiles: 2, split: true}},
		{1, 1, 8, false, false, 256, limbShape{xrows: 8, tiles: 1}},
		{2, 2, 16, false, false, 256, limbShape{xrows: 8, tiles: 2}},
		{2, 2, 16, false, false, 128, limbShape{xrows: 8, tiles: 1}},
		{8, 8, 64, false, false, 256, limbShape{xrows: 8, tiles: 2}},
		{9, 8, 72, false, false, 256, limbShape{xrows: 8, tiles: 2, split: true}},
		{512, 48, 213, true, true, 192, limbShape{xrows: 48, tiles: 2, staged: true, split: true}},
	} {
		b := expertBatch{o: &gpu.Experts{Rows: c.rows}, jobTables: jobTables{n: c.jobs, xrows: c.xrows}}
		if got := l.expertShape(&b, c.gated, c.warps, c.made); got != c.want {
			t.Errorf("%d rows, %d jobs of %d warps, gated %t: %+v, want %+v", c.rows, c.jobs, c.warps, c.gated, got, c.want)
		}
	}
}

// How large a GPU is decides how many tiles of a matrix a warp takes, and how attention is cut:
// into chunks or spans, and with how many heads to a threadgroup.
func TestLaunchesOfSizes(t *testing.T) {
	for _, c := range []struct {
		processors int
		tiles      string // of a matrix of 400 tiles
		// threadgroups of attention with 1 and 40 rows of 512 positions, with 40 of 520, and with
		// 39 of 8 and one of 6,000
		one, forty, more, uneven [3]int
	}{
		// Chunks: 16 of a row, of 4 key-value heads in 2 blocks. With 40 rows 4 or 5 are a
		// threadgroup's, for 528 or 680 of them run at once.
		{132, "2", [3]int{16, 8, 1}, [3]int{160, 4, 1}, [3]int{120, 4, 1}, [3]int{480, 4, 1}},
		{60, "2", [3]int{16, 4, 1}, [3]int{40, 4, 1}, [3]int{80, 4, 1}, [3]int{480, 4, 1}},
		{170, "1", [3]int{16, 16, 1}, [3]int{160, 4, 1}, [3]int{200, 4, 1}, [3]int{480, 4, 1}},
	} {
		f := &fake{limbs: true, processors: c.processors}
		d := openFake(t, f)
		v, q := newBuffer(t, d, 1<<23), newQueue(t, d)
		cmds := new(gpu.Commands)
		gpu.Encode(cmds, gpu.MatMul{W: gpu.Matrix{Rows: 6400, Cols: 64, Format: quant.Affine(4, 64), Weight: v, Scales: v, Biases: v}, X: v, Y: v.Floats(1 << 18), Rows: 1})
		all := launchedBy(t, f, cmds, q)
		if defines := all[len(all)-1].Kernel.Defines; !strings.Contains(defines, "#define TILES "+c.tiles+"\n") {
			t.Errorf("%d processors: a matrix of 400 tiles has %q", c.processors, defines)
		}
		attention := func(rows, positions, last int) [3]int {
			const heads, kv, dim, page = 32, 4, 128, 512
			op := gpu.Attention{Q: v, Y: v.Floats(1 << 20), QRowStride: heads * dim, QHeadStride: dim, Heads: heads, KVHeads: kv, HeadDim: dim, Scale: 1}
			for r := range rows {
				cache := gpu.KV{KVLayout: gpu.KVLayout{PageRows: page, Dim: kv * dim}}
				cache.VOffset = cache.PartBytes()
				pos := positions - 1
				if r == rows-1 {
					pos = last - 1
				}
				for range pos/page + 1 {
					cache.Pages = cache.Pages.Append(v)
				}
				op.Cache, op.Segments = cache.KVLayout, append(op.Segments, gpu.KVSegment{Row: r, Rows: 1, Pos: pos, Pages: cache.Pages})
			}
			cmds := new(gpu.Commands)
			gpu.Encode(cmds, op)
			for _, l := range launchedBy(t, f, cmds, q) {
				if l.Kernel.Name == "attention" {
					return l.Groups
				}
			}
			return [3]int{}
		}
		for _, a := range []struct {
			rows, positions, last int
			want                  [3]int
		}{{1, 512, 512, c.one}, {40, 512, 512, c.forty}, {40, 520, 520, c.more}, {40, 8, 6000, c.uneven}} {
			if got := attention(a.rows, a.positions, a.last); got != a.want {
				t.Errorf("%d processors: attention of %d rows of %d positions, the last of %d, takes %v threadgroups, want %v", c.processors, a.rows, a.positions, a.last, got, a.want)
			}
		}
	}
}
