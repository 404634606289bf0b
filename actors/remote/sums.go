package remote

import (
	"slices"

	"github.com/moeflux/moeflux-actor/actors/remote/frame"
	"github.com/moeflux/moeflux-actor/stages"
)

// summed is an ask for sums. A host adds up a row's outputs, each times the pick's weight divided
// by the heaviest weight that the row has in the ask. That pick's output becomes the sum, and those
// of the row's other picks in the ask become zeros. So what combines picks multiplies the sum by
// the heaviest weight, and need not know of sums.
type summed struct {
	rows    int     // of inputs
	carries []int32 // of each pick, in the order of the question: the row whose sum it has, or none
}

const none = -1

// sumsOf asks for sums.
func sumsOf(a *stages.Ask, q *frame.Question, hidden int) *summed {
	s := &summed{rows: len(q.Inputs) / hidden}
	weights := make([]float32, 0, q.Picks())
	for _, u := range a.Uses {
		for _, pair := range a.Plan.Uses[u].Pairs {
			weights = append(weights, a.Plan.Weights[pair])
		}
	}
	heaviest := slices.Repeat([]int{none}, s.rows)
	eachPick(q, func(pick int, row int32) {
		if at := heaviest[row]; at == none || abs(weights[pick]) > abs(weights[at]) {
			heaviest[row] = pick
		}
	})
	s.carries, q.Scales = slices.Repeat([]int32{none}, len(weights)), make([]float32, len(weights))
	eachPick(q, func(pick int, row int32) {
		at := heaviest[row]
		if pick == at {
			s.carries[pick], q.Scales[pick] = row, 1
		} else if weights[at] != 0 {
			q.Scales[pick] = weights[pick] / weights[at]
		}
	})
	return s
}

// eachPick goes through the picks of a question.
func eachPick(q *frame.Question, f func(pick int, row int32)) {
	pick := 0
	for i := range q.Uses {
		for _, row := range q.Uses[i].Rows {
			f(pick, row)
			pick++
		}
	}
}

func abs(f float32) float32 { return max(f, -f) }

// outputs returns the outputs of all picks for the sums of rows.
func (s *summed) outputs(sums []float32, hidden int) []float32 {
	all := make([]float32, len(s.carries)*hidden)
	for pick, row := range s.carries {
		if row != none {
			copy(all[pick*hidden:], sums[int(row)*hidden:][:hidden])
		}
	}
	return all
}
