package launch

import "github.com/moeflux/moeflux-actor/gpu"

type chooseParams struct{ k, stride uint32 }

const (
	scoredPositions = 256      // of a threadgroup
	chooseThreads   = 512      // of a row
	maxScores       = 16 << 20 // bounds the scratch memory that scores take, in float32
)

// choose scores the positions of as many rows as scratch memory is taken for, and chooses.
func (x *encoder) choose(o *gpu.Choose) {
	keys := &gpu.Attention{QRowStride: o.Heads * o.Dim, QHeadStride: o.Dim, Heads: o.Heads, KVHeads: 1, HeadDim: o.Dim,
		ValueDim: o.Dim, Scale: o.Scale, Segments: o.Segments}
	a := attending{encoder: x, op: o, Attention: keys, q: place{view: o.Q}, valueDim: o.Dim, format: cacheFormat(keys), keysOnly: true}
	a.set, a.pages = x.pages.find(o.Segments)
	a.wide = widePages(keys, o.Dim, a.set)
	rows, _ := a.rows() // it has no tiles
	for len(rows) > 0 {
		n, stride := scoredTogether(rows)
		at := 0
		scores, p := x.reserve(&at, n*stride), chooseParams{uint32(o.K), uint32(stride)}
		list := table(x, rows[:n])
		x.begin(o, "index_scores", o.Dim, o.Dim, flag(a.wide), a.format)
		x.views(o.Q, o.Weights)
		x.tableAt(list)
		x.pageTable(a.pages)
		x.places(scores)
		constants(x, a.params(1, 1, 1))
		constants(x, p)
		x.end(scoredPositions, stride/scoredPositions, n)
		x.begin(o, "choose_positions")
		x.places(scores)
		x.tableAt(list)
		x.views(o.Chosen)
		constants(x, p)
		x.end(chooseThreads, n)
		rows = rows[n:]
	}
}

// scoredTogether returns how many of the rows, at least one, have their scores in memory at once,
// and how many scores each has room for.
func scoredTogether(rows []attentionRow) (n, stride int) {
	for n < len(rows) {
		room := max(stride, ceil(int(rows[n].pos)+1, scoredPositions)*scoredPositions)
		if n > 0 && (n+1)*room > maxScores {
			break
		}
		n, stride = n+1, room
	}
	return n, stride
}
