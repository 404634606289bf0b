package stages_test

import (
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
)

// The router may come to a StepRouted when the sequencer has used the step's batch for another one.
func TestStepRoutedKeepsItsBatch(t *testing.T) {
	var s stages.Spent
	for _, traced := range []bool{false, true} { // the second time in the same memory
		b := &stages.Batch{Traced: traced, Rows: []stages.Row{{Seq: 1}, {Seq: 2}}, Segments: []stages.Segment{{Seq: 1, Rows: 1}, {Seq: 2, Row: 1, Rows: 1}}, Lane: 1}
		m := s.StepRouted(stages.Step{ID: 3, Batch: b}, 4)
		b.Rows, b.Segments = append(b.Rows[:0], stages.Row{Seq: 9}), append(b.Segments[:0], stages.Segment{Seq: 9})
		if rows := m.Batch.Rows; !slices.Equal(rows, []stages.Row{{Seq: 1}, {Seq: 2}}) || m.Batch.Segments[1].Seq != 2 || m.Batch.Lane != 1 {
			t.Errorf("rows %+v in segments %+v", rows, m.Batch.Segments)
		}
		s.Handled(m)
	}
}
