package stagetest

import (
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// fewRows is the most rows of a step whose picks are all recorded.
const fewRows = 32

// router looks at what the router makes of a message.
func (w *watchedRecords) router(m stages.Message, out *stages.Outbox) error {
	if f := &w.fresh; len(f.reads)+len(f.guesses)+len(f.evictions)+len(f.waits) > 0 {
		return fmt.Errorf("the router records what is others': %+v", f)
	}
	picks, uses := w.fresh.picks, w.fresh.uses
	switch m := m.(type) {
	case *stages.PicksReady:
		if slices.ContainsFunc(out.Sends, func(s stages.Send) bool { _, failed := s.Msg.(*stages.StepFailed); return failed }) {
			break
		}
		k := len(m.Picks) / len(m.Batch.Rows)
		w.topK = k
		var err error
		if picks, err = w.picks(m.Head(), m.Layer, 0, picks, func(row int) []int32 { return m.Picks[row*k:][:k] }); err != nil {
			return err
		}
	case *stages.ScoresAhead:
		var err error
		if picks, err = w.ranks(m, picks); err != nil {
			return err
		}
	case *stages.StepRouted:
		var err error
		if picks, uses, err = w.stepRouted(m, picks, uses, out.NowNS); err != nil {
			return err
		}
	case *stages.CollectStats:
		hits := make([]int64, len(m.Stats.Layers))
		for i := range hits {
			if hits[i] = m.Stats.Layers[i].Hits; hits[i] != w.hits[int32(i)] {
				return fmt.Errorf("layer %d: %d uses are recorded, the router counts %d", i, w.hits[int32(i)], hits[i])
			}
		}
		w.routed[m.Stats] = hits
	}
	if len(picks)+len(uses) > 0 {
		return fmt.Errorf("the router records picks %+v and uses %+v too many", picks, uses)
	}
	return nil
}

// picks takes the records of a layer's picks from the front, and returns the rest. of returns what
// a row picked.
func (w *watchedRecords) picks(s *stages.Step, layer, ahead int, recs []record.Picks, of func(row int) []int32) ([]record.Picks, error) {
	for _, g := range s.Batch.Segments {
		for row := g.Row; row < g.Row+g.Rows; row++ {
			want := of(row)
			if len(s.Batch.Rows) > fewRows && row != g.Row+g.Rows-1 || want[0] < 0 {
				continue
			}
			var got []int32
			for len(got) < len(want) && len(recs) > 0 {
				r := recs[0]
				if r.Step != uint64(s.ID) || int(r.Layer) != layer || int(r.Row) != row || int(r.Ahead) != ahead || int(r.First) != len(got) || r.N == 0 {
					break
				}
				for _, e := range r.Experts[:r.N] {
					got = append(got, int32(e))
				}
				recs = recs[1:]
			}
			if !slices.Equal(got, want) {
				return nil, fmt.Errorf("%v, row %d: recorded are the experts %v for layer %d, %d layers ahead, want %v", s, row, got, layer, ahead, want)
			}
		}
	}
	return recs, nil
}

// ranks takes the records of what scores ahead rank first.
func (w *watchedRecords) ranks(m *stages.ScoresAhead, recs []record.Picks) ([]record.Picks, error) {
	if len(recs) == 0 {
		return nil, fmt.Errorf("nothing is recorded of scores ahead of %v", &m.Step)
	}
	rows, n := len(m.Batch.Rows), 0
	layers := int(recs[len(recs)-1].Layer) - m.Layer
	experts := len(m.Scores) / rows / layers
	for _, r := range recs { // of the first row and layer
		if r.Layer == recs[0].Layer && r.Row == recs[0].Row {
			n += int(r.N)
		}
	}
	if w.topK > 0 && n != min(2*w.topK, experts) {
		return nil, fmt.Errorf("%d experts of %v are recorded as ranked first, want twice the %d that a row picks", n, &m.Step, w.topK)
	}
	for layer := m.Layer + 1; layer <= m.Layer+layers; layer++ {
		ahead := layer - m.Layer
		scores := m.Scores[(ahead-1)*rows*experts:]
		var err error
		if recs, err = w.picks(m.Head(), layer, ahead, recs, func(row int) []int32 { return best(scores[row*experts:][:experts], n) }); err != nil {
			return nil, err
		}
	}
	return recs, nil
}

// best returns the n experts with the highest scores, of equal ones the lower first.
func best(scores []float32, n int) []int32 {
	all := make([]int32, len(scores))
	for i := range all {
		all[i] = int32(i)
	}
	slices.SortStableFunc(all, func(a, b int32) int {
		switch {
		case scores[a] > scores[b]:
			return -1
		case scores[a] < scores[b]:
			return 1
		}
		return 0
	})
	return all[:n]
}

// stepRouted takes the records of what a device has routed by itself.
func (w *watchedRecords) stepRouted(m *stages.StepRouted, picks []record.Picks, uses []record.Use, now int64) ([]record.Picks, []record.Use, error) {
	if len(uses) == 0 {
		return nil, nil, fmt.Errorf("%v: no use is recorded", &m.Step)
	}
	first, last := int(uses[0].Layer), int(uses[len(uses)-1].Layer)
	layers := last - first + 1
	n := len(m.Picks) / layers
	k := n / len(m.Batch.Rows)
	for i := range layers {
		layer, of := first+i, m.Picks[i*n:][:n]
		rows := make(map[int32]int32)
		for _, e := range of {
			if e >= 0 {
				rows[e]++
			}
		}
		w.hits[int32(layer)] += int64(len(rows))
		for range len(rows) {
			if len(uses) == 0 {
				return nil, nil, fmt.Errorf("%v: no use is recorded of the experts %v of layer %d", &m.Step, rows, layer)
			}
			u := uses[0]
			want := record.Use{Step: uint64(m.ID), AtNS: now, Layer: int32(layer), Expert: u.Expert, Slot: -1, Rows: rows[u.Expert], Found: record.Resident}
			if u != want || u.Rows == 0 {
				return nil, nil, fmt.Errorf("a use is recorded as %+v, want %+v", u, want)
			}
			delete(rows, u.Expert)
			uses = uses[1:]
		}
		var err error
		if picks, err = w.picks(m.Head(), layer, 0, picks, func(row int) []int32 { return of[row*k:][:k] }); err != nil {
			return nil, nil, err
		}
	}
	return picks, uses, nil
}
