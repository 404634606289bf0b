package gputest

import (
	"cmp"
	"fmt"
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
)

func attentionCases() []testCase {
	var all []testCase
	for _, a := range []attentionShape{
		{heads: 1, kvHeads: 1, dim: 1, pageRows: 1, segments: [][2]int{{0, 1}}},
		{heads: 1, kvHeads: 1, dim: 7, pageRows: 3, segments: [][2]int{{0, 5}}},
		{heads: 4, kvHeads: 2, dim: 16, pageRows: 16, segments: [][2]int{{0, 1}, {15, 1}, {16, 1}, {30, 3}}},
		{heads: 8, kvHeads: 1, dim: 32, pageRows: 8, segments: [][2]int{{31, 2}, {0, 17}, {7, 1}}, gated: true},
		{heads: 6, kvHeads: 2, dim: 64, pageRows: 64, segments: [][2]int{{63, 66}}, gated: true},
		// groups that do not divide evenly
		{heads: 50, kvHeads: 2, dim: 8, pageRows: 16, segments: [][2]int{{40, 1}}},
		{heads: 2, kvHeads: 2, dim: 128, pageRows: 100, segments: [][2]int{{4095, 2}}},
		{heads: 2, kvHeads: 1, dim: 16, pageRows: 256, segments: [][2]int{{19999, 1}}},
		{heads: 2, kvHeads: 1, dim: 16, pageRows: 10, segments: [][2]int{{40, 3}}, scale: 40},
		// Blocks and tiles of rows, longer looks back, and more channels than a vector divides.
		{heads: 6, kvHeads: 2, dim: 20, pageRows: 7, segments: [][2]int{{1020, 9}, {62, 1}, {63, 1}, {64, 1}}},
		{heads: 16, kvHeads: 2, dim: 256, pageRows: 256, segments: [][2]int{{1022, 5}, {0, 70}}, gated: true},
		{heads: 8, kvHeads: 1, dim: 64, pageRows: 48, segments: [][2]int{{9000, 1}}},
		{heads: 3, kvHeads: 3, dim: 12, pageRows: 16, segments: [][2]int{{0, 300}}},
		// Scores without a value: rows alone, shared by heads, in tiles, and far back.
		{heads: 3, kvHeads: 3, dim: 7, pageRows: 3, segments: [][2]int{{0, 1}, {4, 2}}, sinks: true},
		{heads: 16, kvHeads: 2, dim: 64, pageRows: 16, segments: [][2]int{{0, 40}, {511, 8}, {700, 1}}, sinks: true},
		{heads: 6, kvHeads: 2, dim: 20, pageRows: 7, segments: [][2]int{{1020, 9}, {62, 1}, {0, 70}}, sinks: true},
		{heads: 8, kvHeads: 1, dim: 64, pageRows: 48, segments: [][2]int{{9000, 1}}, gated: true, sinks: true},
		// A row whose keys and values are NaN is one that others do not see.
		{heads: 4, kvHeads: 2, dim: 32, pageRows: 16, segments: [][2]int{{50, 30}}, poisoned: 9},
		{heads: 4, kvHeads: 1, dim: 64, pageRows: 128, segments: [][2]int{{50, 30}}, poisoned: 9},
		// Heads that share no keys, in tiles, in one page and over a border of pages.
		{heads: 2, kvHeads: 2, dim: 64, pageRows: 96, segments: [][2]int{{20, 70}, {90, 40}}},
	} {
		all = append(all, a.cases()...)
		a.group = a.dim
		all = append(all, a.cases()...)
	}
	for _, a := range windowShapes() {
		all = append(all, a.cases()...)
	}
	// Several scales a head, in groups that vectors divide and that they do not.
	for _, a := range []attentionShape{
		{heads: 6, kvHeads: 2, dim: 20, pageRows: 7, segments: [][2]int{{62, 1}, {1020, 9}}, group: 5},
		{heads: 4, kvHeads: 2, dim: 128, pageRows: 64, segments: [][2]int{{200, 1}, {0, 70}}, group: 64},
		{heads: 4, kvHeads: 1, dim: 66, pageRows: 5, segments: [][2]int{{130, 3}}, group: 33},
		{heads: 2, kvHeads: 2, dim: 8, pageRows: 8, segments: [][2]int{{9, 2}}, group: 1},
	} {
		all = append(all, a.cases()...)
	}
	return append(all, testCase{"appendkv/int8/extreme", appendExtreme})
}

func (a attentionShape) cases() []testCase {
	name := fmt.Sprintf("heads=%d/kv=%d/dim=%d/page=%d/at=%v/scale=%g/poisoned=%d", a.heads, a.kvHeads, a.dim, a.pageRows, a.segments, a.scale, a.poisoned)
	if a.sinks {
		name += "/sinks"
	}
	if a.window > 0 || a.valueDim > 0 {
		name += fmt.Sprintf("/window=%d/values=%d·%g", a.window, a.valueDim, a.valueScale)
	}
	if a.group > 0 {
		name += fmt.Sprintf("/int8=%d", a.group)
	}
	all := []testCase{{"attention/" + name, func(s *setup) { attention(s, a) }}}
	if a.segments[0][0] < 1000 && a.window == 0 {
		all = append(all, testCase{"appendkv/" + name, func(s *setup) { appendKV(s, a) }})
	}
	return all
}

type attentionShape struct {
	heads, kvHeads, dim, pageRows int
	segments                      [][2]int // position and rows
	// queries have gates between them, and rows of other segments before them
	gated    bool
	scale    float32 // 0 is dim^-0.5
	group    int     // see cacheShape
	poisoned int     // rows at a segment's end whose keys and values are NaN
	sinks    bool
	window   int // 0: none
	// of a value; 0 is dim
	valueDim   int
	valueScale float32
}

// rows returns the first row of each segment, one after the other with a row between them that no
// segment has, and the number of all rows.
func (a *attentionShape) rows() (first []int, n int) {
	for i, seg := range a.segments {
		if i > 0 {
			n++
		}
		first = append(first, n)
		n += seg[1]
	}
	return first, n
}

// attention: s_j = Scale·q·k_j for j = 0..p, a = softmax(s), perhaps with a sink, y = Σ a_j·v_j.
func attention(s *setup, a attentionShape) {
	s.attended(a)
	s.run()
}

// attended adds an attention. It returns the result and how many rows that has.
func (s *setup) attended(a attentionShape) (y *operand, rows int) {
	if a.scale == 0 {
		a.scale = float32(1 / math.Sqrt(float64(a.dim)))
	}
	headStride := a.dim
	if a.gated {
		headStride = 2 * a.dim
	}
	rowStride := a.heads*headStride + 3
	if s.aligned { // as tiles of rows need it
		rowStride++
	}
	valueDim := cmp.Or(a.valueDim, a.dim)
	first, n := a.rows()
	rows = n
	data := s.normal((rows-1)*rowStride + (a.heads-1)*headStride + a.dim)
	q := s.input("Q", data)
	y = s.output("Y", rows*a.heads*valueDim)
	op := gpu.Attention{Q: q.view(), Y: y.view(), QRowStride: rowStride, QHeadStride: headStride, Heads: a.heads,
		KVHeads: a.kvHeads, HeadDim: a.dim, ValueDim: a.valueDim, Window: a.window, Scale: a.scale, ValueScale: a.valueScale}
	sinks := fill(a.heads, math.Inf(-1))
	if a.sinks {
		some := s.normal(a.heads)
		for h := range some { // some above all scores, some below
			some[h] = 4*some[h] + 2
			sinks[h] = float64(some[h])
		}
		op.Sinks = s.input("Sinks", some).view()
	}
	want, limit, used := make([]float64, rows*a.heads*valueDim), make([]float64, rows*a.heads*valueDim), make([]bool, rows)
	for i, seg := range a.segments {
		n := seg[0] + seg[1]
		c := a.cache(s, fmt.Sprintf("sequence %d", i), seg[0], n)
		op.Cache, op.Segments = c.kv.KVLayout, append(op.Segments, gpu.KVSegment{Row: first[i], Rows: seg[1], Pos: seg[0], Pages: c.kv.Pages})
		for r := range seg[1] {
			used[first[i]+r] = true
			if s.unchecked {
				continue
			}
			if r >= seg[1]-a.poisoned {
				copy(want[(first[i]+r)*a.heads*valueDim:], fill(a.heads*valueDim, math.NaN()))
				continue
			}
			for h := range a.heads {
				at := (first[i]+r)*rowStride + h*headStride
				out, g, n := ((first[i]+r)*a.heads+h)*valueDim, h/(a.heads/a.kvHeads), seg[0]+r+1
				q, scale := s.query(&c.kv, data[at:at+a.dim], a.scale)
				c.attend(q, g*a.dim, g*valueDim, a.from(n-1), n, scale, sinks[h],
					want[out:out+valueDim], limit[out:out+valueDim])
				for d := range valueDim {
					want[out+d] *= float64(cmp.Or(a.valueScale, 1))
					limit[out+d] *= float64(cmp.Or(a.valueScale, 1))
				}
			}
		}
	}
	y.where(func(i int) bool { return used[i/(a.heads*valueDim)] }).expect(want, limit)
	gpu.Encode(&s.cmds, op)
	return y, rows
}

// attend computes one head over the positions from first to the one before n, whose channels begin
// at at, and those of values at vAt. A sink of -Inf is none.
func (c *cache) attend(q []float64, at, vAt, first, n int, scale, sink float64, y, limit []float64) {
	scores, top, off := make([]float64, n), sink, 0.0
	for j := first; j < n; j++ {
		magnitude := 0.0
		for d, v := range q {
			p := scale * v * float64(c.k[j][at+d])
			scores[j] += p
			magnitude += math.Abs(p)
		}
		top = max(top, scores[j])
		off = max(off, sumTolerance(len(q))*magnitude)
	}
	sum := math.Exp(sink - top)
	for j := first; j < n; j++ {
		scores[j] = math.Exp(scores[j] - top)
		sum += scores[j]
	}
	for j := first; j < n; j++ {
		for d := range y {
			p := scores[j] / sum * float64(c.v[j][vAt+d])
			y[d] += p
			limit[d] += math.Abs(p)
		}
	}
	for d := range limit {
		limit[d] = limit[d]*attentionTolerance(n-first, off) + tiny
	}
}

// appendKV writes rows of keys and values to the pages, exactly.
func appendKV(s *setup, a attentionShape) {
	dim := a.kvHeads * a.dim
	first, rows := a.rows()
	kStride, vStride := dim+3, dim
	k, v := s.normal((rows-1)*kStride+dim), s.normal(rows*vStride)
	op := gpu.AppendKV{K: s.input("K", k).view(), V: s.input("V", v).view(), KStride: kStride}
	for i, seg := range a.segments {
		c := s.cache(fmt.Sprintf("sequence %d", i), cacheShape{a.pageRows, dim, a.group, 0}, seg[0]+seg[1], seg[0])
		op.Cache, op.Segments = c.kv.KVLayout, append(op.Segments, gpu.KVSegment{Row: first[i], Rows: seg[1], Pos: seg[0], Pages: c.kv.Pages})
		var keys, values [][]float32
		for r := first[i]; r < first[i]+seg[1]; r++ {
			keys, values = append(keys, k[r*kStride:][:dim]), append(values, v[r*vStride:][:dim])
		}
		c.expect(seg[0], keys, values)
	}
	gpu.Encode(&s.cmds, op)
	s.run()
}

// appendExtreme writes rows of every size to a cache of 8 bits, and rows with numbers that are not
// finite.
func appendExtreme(s *setup) {
	const group, groups = 24, 40
	k, v := s.extreme(group*groups), s.normal(group*groups)
	for g := range groups { // of every size: from what counts as zero to what is nearly infinite
		for i := range group {
			v[g*group+i] = float32(math.Ldexp(float64(v[g*group+i]), g*7-140))
		}
	}
	special := []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.MaxFloat32, -math.MaxFloat32}
	for i, x := range special {
		k[(2*i+3)*group+i] = x
	}
	clear(k[20*group : 21*group])
	for i := range group { // halves, of which the even ones are the nearest
		k[22*group+i] = float32(i) - 11.5
	}
	k[22*group] = 127
	c := s.cache("sequence", cacheShape{4, groups * group, group, 0}, 6, 5)
	c.expect(5, [][]float32{k}, [][]float32{v})
	gpu.Encode(&s.cmds, gpu.AppendKV{K: s.input("K", k).view(), V: s.input("V", v).view(), Cache: c.kv.KVLayout, Segments: []gpu.KVSegment{{Rows: 1, Pos: 5, Pages: c.kv.Pages}}})
	s.run()
}
