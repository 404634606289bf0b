package launch

import "github.com/moeflux/moeflux-actor/gpu"

type chooseParams struct{ k, stride, block, local uint32 }

const (
	scoredPositions = 256      // of a threadgroup
	chooseThreads   = 512      // of a list
	maxScores       = 16 << 20 // bounds the scratch memory that scores take, in float32
)

// choose scores what as many rows see as scratch memory is taken for, and chooses.
func (x *encoder) choose(o *gpu.Choose) {
	keys := &gpu.Attention{QRowStride: o.Heads * o.Dim, QHeadStride: o.Dim, Heads: o.Heads, KVHeads: 1, HeadDim: o.Dim,
		ValueDim: o.Dim, Scale: o.Scale, Cache: o.Cache, Segments: o.Segments}
	a := attending{encoder: x, op: o, Attention: keys, q: place{view: o.Q}, valueDim: o.Dim, format: cacheFormat(keys), keysOnly: true}
	a.set, a.pages = x.pages.find(o.Segments, o.Cache.PageRows)
	a.wide = widePages(keys, o.Dim, a.set)
	rows, _ := a.rows() // it has no tiles
	block, kernel := max(o.Block, 1), "index_scores"
	// the entries that a threadgroup scores: positions, or whole blocks
	each := max(1, scoredPositions/block)
	if o.Block > 0 {
		kernel = "block_scores"
	}
	for len(rows) > 0 {
		n, stride := scoredTogether(rows, o.Lists(), block, each)
		at := 0
		scores := x.reserve(&at, n*o.Lists()*stride)
		p := chooseParams{uint32(o.K), uint32(stride), uint32(block), uint32(o.Local)}
		list := table(x, rows[:n])
		x.begin(o, kernel, o.Dim, o.Dim, flag(a.wide), a.format)
		x.views(o.Q)
		if o.Block == 0 {
			x.views(o.Weights)
		}
		x.tableAt(list)
		x.pageTable(a.pages)
		x.places(scores)
		constants(x, a.params(1, 1, 1))
		constants(x, p)
		x.end(scoredPositions, stride/each, n)
		x.begin(o, "choose_entries")
		x.places(scores)
		x.tableAt(list)
		x.views(o.Chosen)
		constants(x, p)
		x.end(chooseThreads, o.Lists(), n)
		rows = rows[n:]
	}
}

// scoredTogether returns how many of the rows, at least one, have their scores in memory at once,
// and how many scores each of their lists has room for: a multiple of each.
func scoredTogether(rows []attentionRow, lists, block, each int) (n, stride int) {
	for n < len(rows) {
		room := max(stride, ceil(int(rows[n].pos)/block+1, each)*each)
		if n > 0 && (n+1)*lists*room > maxScores {
			break
		}
		n, stride = n+1, room
	}
	return n, stride
}
