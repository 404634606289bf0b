package dispatch

import (
	"math"
	"testing"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestRopeTable asks for positions repeatedly, some of which share a slot: every row must be that
// of its own position.
func TestRopeTable(t *testing.T) {
	m := &model.Config{RotaryDim: 6, RopeTheta: 1e4, HeadDim: 8}
	if small := newRope(m, model.FullAttention, 20); len(small.of) != 20 {
		t.Errorf("keeps %d of 20 positions", len(small.of))
	}
	r := newRope(m, model.FullAttention, 1<<20)
	for i, positions := range [][]int32{{0, 1, 2}, {1, turnsKept + 1, 1}, {turnsKept, 0}, {0, 2, turnsKept + 1, 3*turnsKept + 2, 2}} {
		var rows []stages.Row
		for _, p := range positions {
			rows = append(rows, stages.Row{Pos: p})
		}
		got := r.table([]float32{-1}, rows)
		if len(got) != 1+6*len(rows) || got[0] != -1 {
			t.Fatalf("table %d has %d numbers after %v, want %d after -1", i, len(got)-1, got[0], 6*len(rows))
		}
		for n, p := range positions {
			for pair := range 3 {
				angle := float64(p) * math.Pow(1e4, -float64(pair)/3)
				cos, sin := got[1+6*n+2*pair], got[1+6*n+2*pair+1]
				// Half a unit in the last place of numbers up to 1, and what a large angle loses in
				// float64.
				if limit := 0x1p-25 + math.Abs(angle)*0x1p-50; math.Abs(float64(cos)-math.Cos(angle)) > limit || math.Abs(float64(sin)-math.Sin(angle)) > limit {
					t.Errorf("table %d, position %d, pair %d: %v and %v, want %v and %v", i, p, pair, cos, sin, math.Cos(angle), math.Sin(angle))
				}
			}
		}
	}
}

// BenchmarkRopeTable makes the table of 2,048 rows of a prompt after the first one, and of 128
// texts that decode at different positions.
func BenchmarkRopeTable(b *testing.B) {
	for _, c := range []struct {
		name       string
		rows, step int
	}{{"prompt", 2048, 1}, {"decode", 128, 17}} {
		b.Run(c.name, func(b *testing.B) {
			r := newRope(&model.Config{RotaryDim: 128, RopeTheta: 1e6, HeadDim: 128}, model.FullAttention, turnsKept)
			rows, dst, at := make([]stages.Row, c.rows), make([]float32, 0, c.rows*128), 0
			for b.Loop() {
				for i := range rows {
					rows[i].Pos = int32(at + i*c.step)
				}
				if dst = r.table(dst[:0], rows); c.step > 1 {
					at++
				}
			}
		})
	}
}
