package router

import (
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// fewRows is the most rows of a step whose picks are all recorded. Of longer steps only the last
// row of each sequence is: what it picked predicts the next token, and a prompt of 512 rows would
// take as much of the log as everything else that it does.
const fewRows = 32

// noted reports whether the picks of a segment's row are recorded.
func noted(b *stages.Batch, g *stages.Segment, row int) bool {
	return len(b.Rows) <= fewRows || row == g.Row+g.Rows-1
}

// notePicks notes what the rows of a step picked in a layer. picks is [rows, TopK]; rows that could
// not be routed have negative ones, and are left out.
func (c *Core) notePicks(s *stages.Step, layer int, picks []int32, out *stages.Outbox) {
	k := c.cfg.TopK
	for i := range s.Batch.Segments {
		g := &s.Batch.Segments[i]
		for row := g.Row; row < g.Row+g.Rows; row++ {
			if p := picks[row*k : (row+1)*k]; noted(s.Batch, g, row) && p[0] >= 0 {
				c.noteRow(record.Picks{Step: uint64(s.ID), Layer: int32(layer), Row: int32(row)}, k, func(i int) int32 { return p[i] }, out)
			}
		}
	}
}

// noteRanks notes which experts scores ahead rank first for a row: its first guesses.
func (c *Core) noteRanks(f *prediction, row int, guesses []guess, out *stages.Outbox) {
	n := ranked(c.cfg.TopK, c.cfg.Experts)
	r := record.Picks{Step: uint64(f.step), Layer: int32(f.layer), Row: int32(row), Ahead: uint8(f.ahead)}
	c.noteRow(r, n, func(i int) int32 { return guesses[i].expert }, out)
}

// noteRow notes n experts of a row, in as many records as they take.
func (c *Core) noteRow(r record.Picks, n int, expert func(int) int32, out *stages.Outbox) {
	for first := 0; first < n; first += len(r.Experts) {
		r.First, r.N = uint8(first), uint8(min(len(r.Experts), n-first))
		r.Experts = [len(r.Experts)]int16{}
		for i := range int(r.N) {
			r.Experts[i] = int16(expert(first + i))
		}
		out.Records().Picks.Add(r)
	}
}
