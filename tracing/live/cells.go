package live

import (
	"math"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// heatHalfLife is how long ago a use counts half, and heatStep how much a heat must have changed to
// be told.
const (
	heatHalfLife = 10e9 // ns
	heatStep     = 8
)

// cells is what is known of each expert. Tables of records are read one after the other, so every
// fact has its time, and an older one does not undo a newer.
type cells struct {
	experts  int
	where    []Cell
	whereAt  []int64
	guessed  []int64 // when it was guessed last; 0: never
	used     []int64
	wasted   []int64
	picked   []bool // since the last frame
	heat     []float64
	cooledAt int64

	sent     []byte // of the last frame; nil: nothing was sent
	sentHeat []byte
}

func newCells(layers, experts int) *cells {
	n := layers * experts
	return &cells{
		experts: experts, where: make([]Cell, n), whereAt: make([]int64, n), guessed: make([]int64, n), used: make([]int64, n),
		wasted: make([]int64, n), picked: make([]bool, n), heat: make([]float64, n),
	}
}

// key returns the cell of an expert; -1 if there is none.
func (c *cells) key(layer, expert int32) int {
	if k := int(layer)*c.experts + int(expert); layer >= 0 && expert >= 0 && int(expert) < c.experts && k < len(c.where) {
		return k
	}
	return -1
}

// is notes where an expert is from a moment on.
func (c *cells) is(k int, where Cell, atNS int64) {
	if atNS >= c.whereAt[k] {
		c.where[k], c.whereAt[k] = where, atNS
	}
}

func (c *cells) use(u *record.Use) {
	k := c.key(u.Layer, u.Expert)
	if k < 0 {
		return
	}
	c.used[k], c.picked[k] = max(c.used[k], u.AtNS), true
	c.heat[k] += float64(u.Rows)
	switch u.Found {
	case record.Resident:
		c.is(k, InSlot, u.AtNS)
	case record.Missing, record.Late, record.Shared:
		c.is(k, Reading, u.AtNS)
	case record.Far:
		c.is(k, OnDisk, u.AtNS)
	}
}

func (c *cells) read(r *record.Read) {
	k := c.key(r.Layer, r.Expert)
	if k < 0 {
		return
	}
	where := InSlot
	if r.Failed == 1 {
		where = OnDisk
	}
	if c.is(k, where, max(r.PlacedNS, r.EndedNS)); r.Hint != 0 {
		c.guessed[k] = max(c.guessed[k], r.AskedNS)
	}
}

func (c *cells) guess(g *record.Guess) {
	if k := c.key(g.Layer, g.Expert); k >= 0 && g.Verdict == record.Issued {
		c.is(k, Reading, g.AtNS)
		c.guessed[k] = max(c.guessed[k], g.AtNS)
	}
}

func (c *cells) evict(e *record.Eviction) {
	k := c.key(e.Layer, e.Expert)
	if k < 0 {
		return
	}
	if c.is(k, OnDisk, e.AtNS); e.Unused == 1 {
		c.wasted[k] = max(c.wasted[k], e.AtNS)
	}
}

// cell returns what is told of an expert.
func (c *cells) cell(k int) Cell {
	cell := c.where[k]
	if cell != OnDisk && c.guessed[k] > c.used[k] {
		cell |= Guessed
	}
	if c.wasted[k] > c.used[k] {
		cell |= Wasted
	}
	if c.picked[k] {
		cell |= Picked
	}
	return cell
}

// cool lets uses of earlier count less.
func (c *cells) cool(now int64) {
	factor := math.Exp2(-float64(now-c.cooledAt) / heatHalfLife)
	for k := range c.heat {
		c.heat[k] *= factor
	}
	c.cooledAt = now
}

// frame returns what has changed since the last frame; nil if nothing has.
func (c *cells) frame(now int64) *Cells {
	c.cool(now)
	most := 1e-9
	for _, h := range c.heat {
		most = max(most, h)
	}
	f := &Cells{Full: c.sent == nil}
	if f.Full {
		c.sent, c.sentHeat = make([]byte, len(c.where)), make([]byte, len(c.where))
	}
	for k := range c.where {
		cell, heat := c.cell(k), byte(255*math.Sqrt(c.heat[k]/most))
		switch cell & Where {
		case InSlot:
			f.InSlot++
		case InHost:
			f.InHost++
		case Reading:
			f.Reading++
		}
		c.picked[k] = false
		if !f.Full && byte(cell) == c.sent[k] && max(heat, c.sentHeat[k])-min(heat, c.sentHeat[k]) <= heatStep {
			continue
		}
		c.sent[k], c.sentHeat[k] = byte(cell), heat
		if !f.Full {
			f.Index = append(f.Index, int32(k))
		}
		f.Cells, f.Heat = append(f.Cells, byte(cell)), append(f.Heat, heat)
	}
	if !f.Full && len(f.Index) == 0 {
		return nil
	}
	return f
}
