package gputest

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// chooseShape is one case of the operations that choose positions and attend to them.
type chooseShape struct {
	heads, dim, k, pageRows int
	segments                [][2]int // position and rows
	group                   int      // see cacheShape
	broken                  bool     // some keys are NaN
	block, local            int      // see gpu.Choose
}

func (c chooseShape) name() string {
	name := fmt.Sprintf("heads=%d/dim=%d/k=%d/at=%v/int8=%d/broken=%t", c.heads, c.dim, c.k, c.segments, c.group, c.broken)
	if c.block > 0 {
		name += fmt.Sprintf("/block=%d/local=%d", c.block, c.local)
	}
	return name
}

func chooseCases() []testCase {
	var all []testCase
	for _, dim := range []int{1, 3, 32, 64, 128, 257} {
		for _, vectors := range []int{1, 3, 33} {
			for _, inPlace := range []bool{false, true} {
				name := fmt.Sprintf("layernorm/dim=%d/vectors=%d/inplace=%t", dim, vectors, inPlace)
				all = append(all, testCase{name, func(s *setup) { layerNorm(s, vectors, dim, inPlace) }})
			}
		}
	}
	for _, c := range []chooseShape{
		{heads: 1, dim: 1, k: 1, pageRows: 3, segments: [][2]int{{0, 1}}},
		{heads: 4, dim: 32, k: 12, pageRows: 16, segments: [][2]int{{0, 5}, {70, 2}, {12, 1}}},
		{heads: 3, dim: 40, k: 100, pageRows: 64, segments: [][2]int{{99, 3}, {300, 1}}},
		{heads: 64, dim: 128, k: 64, pageRows: 64, segments: [][2]int{{200, 2}}},
		{heads: 5, dim: 16, k: 33, pageRows: 100, segments: [][2]int{{0, 150}}},
		{heads: 2, dim: 16, k: 2048, pageRows: 64, segments: [][2]int{{2500, 2}, {2046, 4}}},
		{heads: 2, dim: 8, k: 700, pageRows: 64, segments: [][2]int{{5000, 1}}},
		{heads: 4, dim: 32, k: 12, pageRows: 16, segments: [][2]int{{60, 9}}, broken: true},
		// Blocks: of one position, of a few, of as many as a device scores together and of more,
		// and of numbers that divide nothing.
		{heads: 2, dim: 32, k: 3, pageRows: 16, segments: [][2]int{{0, 5}, {70, 2}, {12, 1}, {11, 1}}, block: 4, local: 1},
		{heads: 1, dim: 1, k: 2, pageRows: 3, segments: [][2]int{{9, 3}}, block: 1, local: 2},
		{heads: 5, dim: 40, k: 4, pageRows: 64, segments: [][2]int{{99, 9}, {300, 1}}, block: 7, local: 3},
		{heads: 4, dim: 128, k: 16, pageRows: 64, segments: [][2]int{{2047, 2}, {5000, 1}}, block: 128, local: 1},
		{heads: 3, dim: 16, k: 2, pageRows: 100, segments: [][2]int{{1900, 9}, {0, 3}}, block: 300, local: 1},
		{heads: 2, dim: 8, k: 600, pageRows: 64, segments: [][2]int{{3000, 2}}, block: 4, local: 600},
		{heads: 2, dim: 8, k: 3, pageRows: 64, segments: [][2]int{{2500, 1}}, block: 1100, local: 2},
		{heads: 4, dim: 32, k: 12, pageRows: 16, segments: [][2]int{{160, 9}}, block: 5, local: 2, broken: true},
	} {
		all = append(all, testCase{"choose/" + c.name(), func(s *setup) { chooses(s, c) }})
		if coded := c; c.dim%8 == 0 && !c.broken {
			coded.group = 8
			all = append(all, testCase{"choose/" + coded.name(), func(s *setup) { chooses(s, coded) }})
		}
	}
	for _, l := range []latentShape{
		{heads: 1, rank: 6, rope: 2, pageRows: 3, segments: [][2]int{{9, 1}}},
		{heads: 3, rank: 64, rope: 16, pageRows: 16, segments: [][2]int{{0, 5}, {70, 2}, {300, 1}}},
		{heads: 20, rank: 64, rope: 32, pageRows: 64, segments: [][2]int{{700, 40}}},
		{heads: 128, rank: 32, rope: 16, pageRows: 64, segments: [][2]int{{600, 1}, {900, 2}}},
	} {
		for _, l.group = range []int{0, 2, 16} {
			l := l
			for _, budget := range []int{1, 12, 300} {
				if l.group == 0 || l.rank%l.group == 0 && l.rope%l.group == 0 {
					name := fmt.Sprintf("attention/chosen=%d/heads=%d/rank=%d/at=%v/int8=%d", budget, l.heads, l.rank, l.segments, l.group)
					all = append(all, testCase{name, func(s *setup) { chosenAttention(s, l, budget, s.rising) }})
				}
			}
		}
	}
	return all
}

// layerNorm: y = w ⊙ (x - mean)/sqrt(mean((x - mean)²)+eps) + b.
func layerNorm(s *setup, vectors, dim int, inPlace bool) {
	x, w, b := s.normal(vectors*dim), s.normal(dim), s.normal(dim)
	var want, limit []float64
	for v := range vectors {
		mean, size, squares := 0.0, 0.0, 0.0
		for i := range dim {
			x[v*dim+i] += 1.5
			mean += float64(x[v*dim+i]) / float64(dim)
			size += math.Abs(float64(x[v*dim+i])) / float64(dim)
		}
		for _, e := range x[v*dim : (v+1)*dim] {
			squares += (float64(e) - mean) * (float64(e) - mean) / float64(dim)
		}
		r := 1 / math.Sqrt(squares+1e-6)
		for i := range dim {
			y := float64(w[i]) * (float64(x[v*dim+i]) - mean) * r
			want = append(want, y+float64(b[i]))
			// What the mean is off by moves every element, and the others as much the other way.
			off := math.Abs(float64(w[i])) * r * (sumTolerance(dim)*size + unit*math.Abs(float64(x[v*dim+i])))
			limit = append(limit, off+2*normTolerance(dim)*math.Abs(y)+2*unit*(math.Abs(y)+math.Abs(float64(b[i])))+tiny)
		}
	}
	op := gpu.LayerNorm{W: s.input("W", w).view(), B: s.input("B", b).view(), Vectors: vectors, Dim: dim, Eps: 1e-6}
	y := s.inout("X", x)
	op.X, op.Y = y.view(), y.view()
	if !inPlace {
		y.expectBytes(gpu.FloatBytes(x))
		y = s.output("Y", vectors*dim)
		op.Y = y.view()
	}
	y.expect(want, limit)
	gpu.Encode(&s.cmds, op)
	s.run()
}

// whole draws whole numbers that 8 bits hold exactly: the first of each group is 127.
func (s *setup) whole(group int) func(n int) []float32 {
	return func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(s.rng.IntN(5) - 2)
			if group > 0 && i%group == 0 {
				x[i] = 127
			}
		}
		return x
	}
}

// chooses compares choices with the definition. All numbers are whole and small, so that scores are
// exact in any order of sums, and many are equal.
func chooses(s *setup, c chooseShape) {
	a := attentionShape{segments: c.segments}
	first, rows := a.rows()
	data, weights := s.whole(0)(rows*c.heads*c.dim), s.whole(0)(rows*c.heads)
	op := gpu.Choose{Q: s.input("Q", data).view(), Heads: c.heads, Dim: c.dim, K: c.k, Block: c.block, Local: c.local, Scale: 0.5}
	if c.block == 0 {
		op.Weights = s.input("Weights", weights).view()
	}
	width := op.Lists() * c.k // of a row of Chosen
	want := make([]int32, rows*width)
	for i := range want {
		want[i] = poison
	}
	for i, seg := range c.segments {
		keys := s.cacheOf(fmt.Sprintf("sequence %d", i), cacheShape{c.pageRows, c.dim, c.group, 0}, seg[0]+seg[1], seg[0]+seg[1], s.drawKeys(c))
		op.Cache, op.Segments = keys.kv.KVLayout, append(op.Segments, gpu.KVSegment{Row: first[i], Rows: seg[1], Pos: seg[0], Pages: keys.kv.Pages})
		for r := range seg[1] {
			at := first[i] + r
			c.define(want[at*width:(at+1)*width], data[at*c.heads*c.dim:], weights[at*c.heads:], keys.k[:seg[0]+r+1])
		}
	}
	chosen := s.output("Chosen", rows*width)
	op.Chosen = chosen.view()
	chosen.expectBytes(intBytes(want))
	gpu.Encode(&s.cmds, op)
	s.run()
}

// drawKeys draws keys, of which some are NaN if the case is broken.
func (s *setup) drawKeys(c chooseShape) func(n int) []float32 {
	draw := s.whole(c.group)
	return func(n int) []float32 {
		x := draw(n)
		if c.broken && s.rng.IntN(20) == 0 {
			x[s.rng.IntN(n)] = float32(math.NaN())
		}
		return x
	}
}

// define is the definition of a row's choice.
func (c *chooseShape) define(dst []int32, q, weights []float32, keys [][]float32) {
	product := func(h int, k []float32) (sum float64) {
		for d, x := range k {
			sum += 0.5 * float64(q[h*c.dim+d]) * float64(x)
		}
		return sum
	}
	if c.block == 0 {
		scores := make([]float64, len(keys))
		for j, k := range keys {
			for h := range c.heads {
				scores[j] += float64(weights[h]) * max(product(h, k), 0)
			}
		}
		copy(dst, best(scores, c.k))
		return
	}
	for h := range c.heads {
		scores := make([]float64, (len(keys)-1)/c.block+1)
		for b := range scores {
			scores[b] = math.Inf(-1)
			for _, k := range keys[b*c.block : min((b+1)*c.block, len(keys))] {
				scores[b] = max(scores[b], product(h, k)) // NaN if one of them is
			}
		}
		others := max(0, len(scores)-c.local)
		list := best(scores[:others], c.k-c.local)
		for b := others; b < len(scores); b++ {
			list = append(list, int32(b))
		}
		copy(dst[h*c.k:(h+1)*c.k], list)
	}
}

// best lists the k largest scores, or all if they are not more, rising: NaN before all, and of
// equal ones the lower first.
func best(scores []float64, k int) []int32 {
	order := make([]int32, len(scores))
	for j := range order {
		order[j] = int32(j)
		if math.IsNaN(scores[j]) {
			scores[j] = math.Inf(1)
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(scores[b], scores[a]) })
	order = order[:min(k, len(order))]
	slices.Sort(order)
	return order
}

// rising draws n of the positions 0 to p, rising.
func (s *setup) rising(n, p int) []int32 {
	var all []int32
	for _, j := range s.rng.Perm(p + 1)[:n] {
		all = append(all, int32(j))
	}
	slices.Sort(all)
	return all
}

// chosenAttention is attention to listed positions, whose values are the first channels of the
// keys.
func chosenAttention(s *setup, l latentShape, budget int, list func(n, p int) []int32) *operand {
	a := attentionShape{segments: l.segments}
	first, rows := a.rows()
	width := l.rank + l.rope
	data, chosen := s.normal(rows*l.heads*width), make([]int32, rows*budget)
	q, y := s.input("Q", data), s.output("Y", rows*l.heads*l.rank)
	op := gpu.Attention{Q: q.view(), Y: y.view(), QRowStride: l.heads * width, QHeadStride: width, Heads: l.heads, KVHeads: 1,
		HeadDim: width, ValueDim: l.rank, Scale: float32(1 / math.Sqrt(float64(width))), Budget: budget}
	want, limit, used := make([]float64, rows*l.heads*l.rank), make([]float64, rows*l.heads*l.rank), make([]bool, rows)
	for i, seg := range l.segments {
		c := s.latents(fmt.Sprintf("sequence %d", i), &l, seg[0]+seg[1])
		op.Cache, op.Segments = c.kv.KVLayout, append(op.Segments, gpu.KVSegment{Row: first[i], Rows: seg[1], Pos: seg[0], Pages: c.kv.Pages})
		for r := range seg[1] {
			row := first[i] + r
			some := list(min(budget, seg[0]+r+1), seg[0]+r)
			copy(chosen[row*budget:], some)
			used[row] = true
			if s.unchecked {
				continue
			}
			only := new(cache)
			for _, j := range some {
				only.k = append(only.k, c.k[j])
			}
			only.v = only.k
			for h := range l.heads {
				at, out := (row*l.heads+h)*width, (row*l.heads+h)*l.rank
				q, scale := s.query(&c.kv, data[at:at+width], op.Scale)
				only.attend(q, 0, 0, 0, len(some), scale, math.Inf(-1), want[out:out+l.rank], limit[out:out+l.rank])
			}
		}
	}
	op.Chosen = s.place("Chosen", intBytes(chosen), 4).view()
	y.where(func(i int) bool { return used[i/(l.heads*l.rank)] }).expect(want, limit)
	gpu.Encode(&s.cmds, op)
	s.run()
	return y
}

// testAllChosen wants the bits of attention to all positions from rows that have chosen all,
// however many rows there are.
func testAllChosen(t *testing.T, d gpu.Device) {
	all := func(n, _ int) []int32 {
		list := make([]int32, n)
		for i := range list {
			list[i] = int32(i)
		}
		return list
	}
	for i, segments := range [][][2]int{{{0, 5}, {70, 2}}, {{1000, 1}}, {{0, 300}}, {{900, 40}, {255, 3}}} {
		for j, group := range []int{0, 16} {
			if !testenv.ShareOf(t, "segments", 2*i+j, 8, testenv.Rounds(3, 1, 1)) {
				continue
			}
			l := latentShape{heads: 20, rank: 64, rope: 32, pageRows: 64, segments: segments, group: group}
			name := fmt.Sprintf("at=%v/int8=%d", segments, group)
			t.Run(name, func(t *testing.T) {
				chosen, dense := newSetup(t, d, name), newSetup(t, d, name)
				chosen.unchecked, dense.unchecked = true, true
				got := chosenAttention(chosen, l, 1000+1, all)
				sharedAttention(dense, l)
				for _, o := range dense.operands {
					if o.name == "Y" {
						if err := numcmp.Equal(got.floats(), o.floats()); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
	}
}

func aloneLayerNorm(s *setup, rows []int) *operand {
	const dim = 96
	x, w, b := choose(s.normal(company*dim), rows), s.normal(dim), s.normal(dim)
	y := s.output("Y", len(rows)*dim)
	gpu.Encode(&s.cmds, gpu.LayerNorm{X: s.input("X", x).view(), W: s.input("W", w).view(), B: s.input("B", b).view(), Y: y.view(),
		Vectors: len(rows), Dim: dim, Eps: 1e-6})
	return y
}

// aloneChoose has a sequence for each row: 200 positions of random numbers and more.
func aloneChoose(s *setup, rows []int, block int) *operand {
	const dim, k = 32, 24
	heads := 6
	if block > 0 { // each head chooses for itself
		heads = 2
	}
	q, w := choose(s.normal(company*heads*dim), rows), choose(s.normal(company*heads), rows)
	keys := s.cache("sequence", cacheShape{64, dim, 0, 0}, 200+company, 200+company)
	op := gpu.Choose{Q: s.input("Q", q).view(), Heads: heads, Dim: dim, K: k, Scale: 0.2}
	if op.Block = block; block > 0 {
		op.Local = 2
	} else {
		op.Weights = s.input("Weights", w).view()
	}
	y := s.output("Chosen", len(rows)*op.Lists()*k)
	op.Chosen = y.view()
	for i, r := range rows {
		op.Cache, op.Segments = keys.kv.KVLayout, append(op.Segments, gpu.KVSegment{Row: i, Rows: 1, Pos: 200 + r, Pages: keys.kv.Pages})
	}
	gpu.Encode(&s.cmds, op)
	return y
}

// piecesChosen appends the keys of each piece and chooses among what is there.
func piecesChosen(s *setup, pieces []int, group, block int) []*operand {
	const before, dim, k = 1010, 32, 40
	n, heads := total(pieces), 6
	if block > 0 {
		heads = 2
	}
	keys := s.cache("sequence", cacheShape{64, dim, group, 0}, before+n, before)
	keys.kv.VOffset = keys.kv.KOffset
	for _, p := range keys.pages {
		p.where(func(int) bool { return true })
	}
	q, w, added := s.input("Q", s.normal(n*heads*dim)), s.input("Weights", s.normal(n*heads)), s.input("K", s.normal(n*dim))
	op := gpu.Choose{Q: q.view(), Weights: w.view(), Heads: heads, Dim: dim, K: k, Scale: 0.2}
	if block > 0 {
		op.Weights, op.Block, op.Local = gpu.View{}, block, 1
	}
	y, row := s.output("Chosen", n*op.Lists()*k), 0
	op.Chosen = y.view()
	for _, p := range pieces {
		op.Cache, op.Segments = keys.kv.KVLayout, []gpu.KVSegment{{Row: row, Rows: p, Pos: before + row, Pages: keys.kv.Pages}}
		gpu.Encode(&s.cmds, gpu.AppendKV{K: added.view(), Cache: op.Cache, Segments: op.Segments})
		gpu.Encode(&s.cmds, op)
		row += p
	}
	return []*operand{y}
}
