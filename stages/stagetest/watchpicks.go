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
	picks, uses, err := w.routedLayers(w.fresh.picks, w.fresh.uses, out.NowNS)
	if err != nil {
		return err
	}
	switch m.(type) {
	case *stages.StepRouted, *stages.CountPicks: // the rest may come later
	default:
		if len(w.counted) > 0 {
			return fmt.Errorf("%d layers of %v are not recorded with the next message", w.counted[0].left, &w.counted[0].step)
		}
	}
	switch m := m.(type) {
	case *stages.PicksReady:
		if slices.ContainsFunc(out.Sends, func(s stages.Send) bool { _, failed := s.Msg.(*stages.StepFailed); return failed }) {
			break
		}
		k := len(m.Picks) / len(m.Batch.Rows)
		w.topK = k
		if picks, err = w.picks(m.Head(), m.Layer, 0, picks, func(row int) []int32 { return m.Picks[row*k:][:k] }); err != nil {
			return err
		}
	case *stages.ScoresAhead:
		if picks, err = w.ranks(m, picks); err != nil {
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

// countedStep is what a device has routed by itself and the router has not recorded yet.
type countedStep struct {
	step  stages.Step
	layer int     // the next
	picks []int32 // of the layers that are left
	left  int
}

// stepRouted keeps what the router is told of a step that the device has routed.
func (w *watchedRecords) stepRouted(m *stages.StepRouted) {
	c := &countedStep{step: m.Step, picks: slices.Clone(m.Picks), layer: -1, left: w.routedBy}
	c.step.Batch = &stages.Batch{Rows: slices.Clone(m.Batch.Rows), Segments: slices.Clone(m.Batch.Segments)}
	w.counted = append(w.counted, c)
}

// routedLayers takes the records of what a device has routed by itself, of whole layers. A layer in
// which no row could be routed has none.
func (w *watchedRecords) routedLayers(picks []record.Picks, uses []record.Use, now int64) ([]record.Picks, []record.Use, error) {
	for len(w.counted) > 0 {
		c := w.counted[0]
		n := len(c.picks) / c.left
		of, k := c.picks[:n], n/len(c.step.Batch.Rows)
		if len(uses) == 0 && slices.ContainsFunc(of, func(e int32) bool { return e >= 0 }) {
			break
		}
		if c.layer++; c.layer == 0 && len(uses) > 0 {
			c.layer = int(uses[0].Layer)
		}
		layer := c.layer
		c.picks = c.picks[n:]
		rows := make(map[int32]int32)
		for _, e := range of {
			if e >= 0 {
				rows[e]++
			}
		}
		w.hits[int32(layer)] += int64(len(rows))
		for range len(rows) {
			if len(uses) == 0 {
				return nil, nil, fmt.Errorf("%v: no use is recorded of the experts %v of layer %d", &c.step, rows, layer)
			}
			u := uses[0]
			want := record.Use{Step: uint64(c.step.ID), AtNS: now, Layer: int32(layer), Expert: u.Expert, Slot: -1, Rows: rows[u.Expert], Found: record.Resident}
			if u != want || u.Rows == 0 {
				return nil, nil, fmt.Errorf("a use is recorded as %+v, want %+v", u, want)
			}
			delete(rows, u.Expert)
			uses = uses[1:]
		}
		var err error
		if picks, err = w.picks(&c.step, layer, 0, picks, func(row int) []int32 { return of[row*k:][:k] }); err != nil {
			return nil, nil, err
		}
		if c.left--; c.left == 0 {
			w.counted = w.counted[1:]
		}
	}
	return picks, uses, nil
}
