package stages

import "slices"

// Probe computes parts of a model by themselves, on numbers from outside. Its chunk's steps have no
// company, and the layers of its sequence do not fit together afterwards: the sequence is poisoned.
// Shared, read-only.
type Probe struct {
	// Layers are computed, ascending. The others leave the residual stream alone.
	Layers []int
	// Given are hidden states [rows, hidden] of the chunk's last rows. They take the place of the
	// residual stream before each of the layers At, ascending; the number of layers stands for the
	// final norm.
	Given []float32
	At    []int
	// Experts leaves the mixers of the layers At out: Given is what their router and experts, or
	// their dense MLP, read, in all rows.
	Experts bool
	// Picks and Weights, [rows, TopK] with Experts, take the place of the router's choice.
	Picks   []int32
	Weights []float32
}

// Runs reports whether a layer is computed. It is without a probe.
func (p *Probe) Runs(layer int) bool {
	if p == nil {
		return true
	}
	_, ok := slices.BinarySearch(p.Layers, layer)
	return ok
}

// Gives reports whether a layer, or the final norm, reads what is given.
func (p *Probe) Gives(layer int) bool {
	if p == nil {
		return false
	}
	_, ok := slices.BinarySearch(p.At, layer)
	return ok
}

// Chooses reports whether a layer's experts are given.
func (p *Probe) Chooses(layer int) bool { return p.Gives(layer) && p.Experts && p.Picks != nil }

// row returns which of n rows that are given at a chunk's end the first row of a segment is;
// negative if it comes before them.
func (g *Segment) given(n int) int {
	return g.Pos - g.ChunkPos - g.ChunkRows + n
}

// GivenRows returns the rows of a batch that belongs to a probe whose n last rows are given: rows
// from row first on read what is given from at on.
func (b *Batch) GivenRows(n int) (first, at, rows int) {
	g := &b.Segments[0]
	at = g.given(n)
	first = max(0, -at)
	return first, max(0, at), max(0, g.Rows-first)
}
