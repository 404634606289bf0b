package router_test

import (
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/router"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Of a step of few rows all picks are recorded, of others those of the last row of each sequence.
// Many picks take several records, and rows that could not be routed have none.
func TestRecordedPicks(t *testing.T) {
	const k, experts = 12, 16
	for _, tc := range []struct {
		name string
		rows []int // of each sequence
		lost int   // row
		want []int // rows
	}{
		{"few rows", []int{2, 1}, 1, []int{0, 2}},
		{"as many as few are", []int{31, 1}, -1, all(32)},
		{"many rows", []int{30, 10}, -1, []int{29, 39}},
		{"one row more", []int{33}, -1, []int{32}},
		{"a last row is lost", []int{30, 10}, 29, []int{39}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := new(stages.Batch)
			for i, n := range tc.rows {
				b.Segments = append(b.Segments, stages.Segment{Seq: stages.SeqID(i + 1), Row: len(b.Rows), Rows: n})
				b.Rows = append(b.Rows, make([]stages.Row, n)...)
			}
			m := &stages.PicksReady{Step: stages.Step{ID: 7, Layer: 1, Batch: b}, Weights: make([]float32, len(b.Rows)*k)}
			for row := range b.Rows {
				for i := range k {
					m.Picks = append(m.Picks, int32((row+5*i)%experts))
					if row == tc.lost {
						m.Picks[len(m.Picks)-1] = -1
					}
				}
			}
			out := stages.Outbox{Log: record.NewLog(1 << 20)}
			if err := router.New(router.Config{Layers: 2, Experts: experts, TopK: k}).Step(m, &out); err != nil {
				t.Fatal(err)
			}
			got := out.Log.Recording().Picks
			if len(got) != 2*len(tc.want) {
				t.Fatalf("%d records, want two for each of the rows %v", len(got), tc.want)
			}
			for i, r := range got {
				row, first := tc.want[i/2], 10*(i%2)
				want := record.Picks{Step: 7, Layer: 1, Row: int32(row), First: uint8(first), N: uint8(min(10, k-first))}
				for j := range want.N {
					want.Experts[j] = int16((row + 5*(first+int(j))) % experts)
				}
				if r != want {
					t.Errorf("recorded is %+v, want %+v", r, want)
				}
			}
		})
	}
}

func all(n int) (rows []int) {
	for i := range n {
		rows = append(rows, i)
	}
	return rows
}
