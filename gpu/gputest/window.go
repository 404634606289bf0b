package gputest

import (
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

// windowShapes are attention to the last positions alone, and values that are narrower than keys,
// or scaled. Windows begin and end inside chunks, blocks, spans and pages, and in the middle of a
// tile's rows.
func windowShapes() []attentionShape {
	all := []attentionShape{
		{heads: 2, kvHeads: 1, dim: 7, pageRows: 3, segments: [][2]int{{0, 5}, {40, 1}}, window: 1},
		{heads: 4, kvHeads: 2, dim: 16, pageRows: 16, segments: [][2]int{{0, 40}, {127, 2}, {300, 1}}, window: 5},
		{heads: 4, kvHeads: 2, dim: 16, pageRows: 64, segments: [][2]int{{383, 1}, {384, 1}, {390, 3}}, window: 128, sinks: true},
		{heads: 16, kvHeads: 2, dim: 64, pageRows: 64, segments: [][2]int{{0, 200}, {640, 70}, {5000, 1}}, window: 128, sinks: true},
		{heads: 8, kvHeads: 2, dim: 64, pageRows: 16, segments: [][2]int{{500, 40}, {1015, 12}}, window: 9, gated: true},
		{heads: 6, kvHeads: 2, dim: 20, pageRows: 7, segments: [][2]int{{1020, 9}, {62, 1}}, window: 70},
		{heads: 8, kvHeads: 1, dim: 64, pageRows: 48, segments: [][2]int{{3000, 1}, {3001, 33}}, window: 1500, sinks: true},
		{heads: 2, kvHeads: 2, dim: 128, pageRows: 64, segments: [][2]int{{700, 1}}, window: 600},
		{heads: 4, kvHeads: 2, dim: 24, pageRows: 16, segments: [][2]int{{100, 1}, {0, 40}}, valueDim: 16, valueScale: 0.707},
		{heads: 8, kvHeads: 2, dim: 192, pageRows: 64, segments: [][2]int{{600, 1}, {130, 40}}, valueDim: 128, valueScale: 0.707, sinks: true, window: 128},
	}
	for _, a := range all {
		a.group = a.dim
		if a.valueDim > 0 {
			a.group = 8
		}
		all = append(all, a)
	}
	return all
}

// from is the first position that a row at a position attends to.
func (a *attentionShape) from(pos int) int {
	if a.window == 0 {
		return 0
	}
	return max(0, pos-a.window+1)
}

// cache is the cache of a sequence of n positions whose rows begin at pos. Pages before all that
// they attend to are gone, and other positions there hold NaNs.
func (a *attentionShape) cache(s *setup, name string, pos, n int) *cache {
	from, drawn := a.from(pos), 0
	draw := func(channels int) []float32 {
		x := s.normal(channels)
		if drawn++; (drawn-1)/2 < from { // keys and values in turns
			for i := range x {
				x[i] = float32(math.NaN())
			}
		}
		return x
	}
	c := s.cacheOf(name, cacheShape{a.pageRows, a.kvHeads * a.dim, a.group, a.kvHeads * a.valueDim}, n, n-a.poisoned, draw)
	for p, was := 0, c.kv.Pages; p < was.Len() && from > 0; p++ {
		if p == 0 {
			c.kv.Pages = gpu.Pages{}
		}
		v := was.At(p)
		if p < from/a.pageRows {
			v = gpu.View{}
		}
		c.kv.Pages = c.kv.Pages.Append(v)
	}
	return c
}
