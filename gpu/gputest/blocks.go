package gputest

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// blockShape is one case of attention whose key-value heads have lists of their own: of positions,
// or of blocks.
type blockShape struct {
	attentionShape
	budget, block int
}

func (b *blockShape) name() string {
	return fmt.Sprintf("heads=%d/kv=%d/dim=%d/at=%v/int8=%d/chosen=%d/block=%d", b.heads, b.kvHeads, b.dim, b.segments, b.group, b.budget, b.block)
}

func blockCases() []testCase {
	var all []testCase
	for _, b := range []blockShape{
		{attentionShape{heads: 4, kvHeads: 2, dim: 32, pageRows: 16, segments: [][2]int{{0, 5}, {70, 3}, {11, 2}}}, 3, 4},
		{attentionShape{heads: 1, kvHeads: 1, dim: 7, pageRows: 3, segments: [][2]int{{9, 4}}}, 1, 5},
		{attentionShape{heads: 6, kvHeads: 3, dim: 20, pageRows: 7, segments: [][2]int{{200, 2}}}, 9, 0},
		{attentionShape{heads: 16, kvHeads: 2, dim: 64, pageRows: 64, segments: [][2]int{{700, 8}, {1500, 1}}}, 5, 100},
		{attentionShape{heads: 64, kvHeads: 4, dim: 128, pageRows: 64, segments: [][2]int{{2100, 1}}}, 4, 128},
	} {
		for _, b.group = range []int{0, b.dim} {
			all = append(all, testCase{"attention/" + b.name(), func(s *setup) { blockAttention(s, b, s.someEntries) }})
		}
	}
	return all
}

// someEntries draws n of the entries 0 to last, rising, of which the last is one.
func (s *setup) someEntries(n, last int) []int32 {
	list := []int32{int32(last)}
	for _, j := range s.rng.Perm(last)[:n-1] {
		list = append(list, int32(j))
	}
	slices.Sort(list)
	return list
}

// blockAttention is attention of each key-value head to what its list says.
func blockAttention(s *setup, b blockShape, list func(n, last int) []int32) *operand {
	first, rows := b.rows()
	width, block := b.heads*b.dim, max(b.block, 1)
	data, chosen := s.normal(rows*width), make([]int32, rows*b.kvHeads*b.budget)
	q, y := s.input("Q", data), s.output("Y", rows*width)
	op := gpu.Attention{Q: q.view(), Y: y.view(), QRowStride: width, QHeadStride: b.dim, Heads: b.heads, KVHeads: b.kvHeads, HeadDim: b.dim,
		Scale: float32(1 / math.Sqrt(float64(b.dim))), Budget: b.budget, Block: b.block}
	want, limit, used := make([]float64, rows*width), make([]float64, rows*width), make([]bool, rows)
	for i, seg := range b.segments {
		c := s.cache(fmt.Sprintf("sequence %d", i), cacheShape{b.pageRows, b.kvHeads * b.dim, b.group, 0}, seg[0]+seg[1], seg[0]+seg[1])
		op.Cache, op.Segments = c.kv.KVLayout, append(op.Segments, gpu.KVSegment{Row: first[i], Rows: seg[1], Pos: seg[0], Pages: c.kv.Pages})
		for r := range seg[1] {
			row, pos := first[i]+r, seg[0]+r
			used[row] = true
			for g := range b.kvHeads {
				some := list(min(b.budget, pos/block+1), pos/block)
				copy(chosen[(row*b.kvHeads+g)*b.budget:], some)
				if s.unchecked {
					continue
				}
				only := new(cache)
				for _, e := range some {
					for j := int(e) * block; j < min((int(e)+1)*block, pos+1); j++ {
						only.k, only.v = append(only.k, c.k[j]), append(only.v, c.v[j])
					}
				}
				for h := g * (b.heads / b.kvHeads); h < (g+1)*(b.heads/b.kvHeads); h++ {
					at := row*width + h*b.dim
					q, scale := s.query(&c.kv, data[at:at+b.dim], op.Scale)
					only.attend(q, g*b.dim, g*b.dim, 0, len(only.k), scale, math.Inf(-1), want[at:at+b.dim], limit[at:at+b.dim])
				}
			}
		}
	}
	op.Chosen = s.place("Chosen", intBytes(chosen), 4).view()
	y.where(func(i int) bool { return used[i/width] }).expect(want, limit)
	gpu.Encode(&s.cmds, op)
	s.run()
	return y
}

// testAllBlocks wants the bits of attention to all positions from rows that have chosen all blocks.
func testAllBlocks(t *testing.T, d gpu.Device) {
	all := func(n, _ int) []int32 {
		list := make([]int32, n)
		for i := range list {
			list[i] = int32(i)
		}
		return list
	}
	for i, segments := range [][][2]int{{{0, 5}, {70, 2}}, {{1000, 1}}, {{900, 7}, {255, 3}}} {
		for j, group := range []int{0, 64} {
			if !testenv.ShareOf(t, "segments", 2*i+j, 6, testenv.Rounds(3, 1, 1)) {
				continue
			}
			shape := attentionShape{heads: 8, kvHeads: 2, dim: 64, pageRows: 64, segments: segments, group: group}
			t.Run(fmt.Sprintf("at=%v/int8=%d", segments, group), func(t *testing.T) {
				var y [2][]float32
				for i, budget := range []int{1000, 0} { // with 0 there is no list
					s := newSetup(t, d, "blocks")
					s.unchecked = true
					if budget > 0 {
						y[i] = blockAttention(s, blockShape{shape, budget, 12}, all).floats()
						continue
					}
					y[i] = denseAttention(s, blockShape{attentionShape: shape}).floats()
				}
				if err := numcmp.Equal(y[0], y[1]); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// denseAttention is blockAttention without lists.
func denseAttention(s *setup, b blockShape) *operand {
	first, rows := b.rows()
	width := b.heads * b.dim
	q, y := s.input("Q", s.normal(rows*width)), s.output("Y", rows*width)
	op := gpu.Attention{Q: q.view(), Y: y.view(), QRowStride: width, QHeadStride: b.dim, Heads: b.heads, KVHeads: b.kvHeads, HeadDim: b.dim,
		Scale: float32(1 / math.Sqrt(float64(b.dim)))}
	for i, seg := range b.segments {
		c := s.cache(fmt.Sprintf("sequence %d", i), cacheShape{b.pageRows, b.kvHeads * b.dim, b.group, 0}, seg[0]+seg[1], seg[0]+seg[1])
		op.Cache, op.Segments = c.kv.KVLayout, append(op.Segments, gpu.KVSegment{Row: first[i], Rows: seg[1], Pos: seg[0], Pages: c.kv.Pages})
	}
	gpu.Encode(&s.cmds, op)
	s.run()
	return y
}
