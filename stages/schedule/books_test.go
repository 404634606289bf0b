package schedule_test

import (
	"slices"

	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// books is what keys had of the rows of prompts, counted row by row.
type books struct {
	ready     []*chunk // in order of arrival, of both kinds
	reading   []*chunk // prompts in the step before, which is over
	of        map[string]*had
	now, part int // what an active key had on average, and what was read since that moved
	most      int
}

// had is what a key had, in pieces by its weight: a row is so many pieces for a weight of 1, and
// what is less than a piece waits for the next row.
type had struct{ pieces, rest, weight int }

// pieces of a row; package fair has as many.
const pieces = 1 << 16

func (h *had) with(rows int) int { return h.pieces + (h.rest+rows*pieces)/h.weight }

func (h *had) row() {
	h.pieces, h.rest = h.with(1), (h.rest+pieces)%h.weight
}

// key returns what a key had.
func (b *books) key(c *chunk) *had {
	if b.of[c.key] == nil {
		b.of[c.key] = &had{weight: 1}
	}
	return b.of[c.key]
}

// weights returns the sum of those of the active keys.
func (b *books) weights() (n int) {
	for key := range b.active() {
		n += b.of[key].weight
	}
	return n
}

// active returns the keys with prompts that are ready or being read.
func (b *books) active() map[string]bool {
	keys := make(map[string]bool)
	for _, c := range b.reading {
		keys[c.key] = true
	}
	for _, c := range b.ready {
		if c.left > 1 {
			keys[c.key] = true
		}
	}
	return keys
}

func (b *books) add(c *chunk) {
	if h := b.key(c); c.left > 1 {
		if h.weight = max(1, c.weight); !b.active()[c.key] && h.pieces <= b.now {
			h.pieces, h.rest = b.now, 0
		}
	}
	b.ready = append(b.ready, c)
}

// gone is called when a prompt is neither ready nor being read any more.
func (b *books) gone() {
	if len(b.active()) == 0 {
		b.now, b.part = max(b.now, b.most), 0
	}
}

func (b *books) remove(i int) {
	prompt := b.ready[i].left > 1
	b.ready = slices.Delete(b.ready, i, i+1)
	if prompt {
		b.gone()
	}
}

// step forms a step by definition, where nothing is in the pipeline: all that decodes, or prompts.
func (b *books) step(rows int) (schedule.Kind, []schedule.Share[*chunk]) {
	if len(b.reading) > 0 {
		b.reading = nil
		b.gone()
	}
	if slices.ContainsFunc(b.ready, func(c *chunk) bool { return c.left == 1 }) {
		return schedule.Decode, b.decode(rows)
	}
	return schedule.Prompt, b.prompts(rows)
}

func (b *books) decode(rows int) (shares []schedule.Share[*chunk]) {
	for _, c := range slices.Clone(b.ready) {
		if c.left == 1 && len(shares) < rows && (len(shares) == 0 || !c.alone && !shares[0].Request.alone) {
			shares = append(shares, schedule.Share[*chunk]{Request: c, Rows: 1})
			b.ready = slices.DeleteFunc(b.ready, func(o *chunk) bool { return o == c })
		}
	}
	return shares
}

func (b *books) prompts(rows int) (shares []schedule.Share[*chunk]) {
	weights := b.weights()
	for room := rows; room > 0; {
		var next *chunk
		for _, c := range b.ready {
			first := slices.IndexFunc(b.ready, func(o *chunk) bool { return o.key == c.key && fits(o, shares) })
			if first < 0 || b.ready[first] != c {
				continue // another one of its key goes first
			}
			if next == nil || b.key(c).with(min(c.left, rows)) < b.key(next).with(min(next.left, rows)) {
				next = c
			}
		}
		if next == nil {
			break
		}
		n := min(next.left, room)
		room -= n
		shares = append(shares, schedule.Share[*chunk]{Request: next, Rows: n})
		b.ready = slices.DeleteFunc(b.ready, func(o *chunk) bool { return o == next })
		b.reading = append(b.reading, next)
		for range n {
			h := b.key(next)
			h.row()
			b.most = max(b.most, h.pieces)
			b.part += pieces
			b.now, b.part = b.now+b.part/weights, b.part%weights
		}
	}
	return shares
}

// fits reports whether a request may join a step.
func fits(c *chunk, shares []schedule.Share[*chunk]) bool {
	return len(shares) == 0 || !c.alone && !shares[0].Request.alone
}
