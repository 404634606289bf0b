package router_test

import (
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/router"
)

// A prompt is predicted one layer ahead beside a text that decodes, and else two.
func TestAheadOfPrompts(t *testing.T) {
	for _, c := range []struct {
		beside bool
		rows   int
		layer  int
		want   []int // layers
	}{
		{false, 16, 0, []int{0, 1, 2}}, {true, 16, 0, []int{0, 1}}, {false, 16, 2, []int{4}}, {true, 16, 2, []int{3}}, {true, 16, 5, nil},
	} {
		core := router.New(router.Config{Layers: 6, Experts: 8, TopK: 2, LastToken: true, NextGate: true, Ahead: 2, AheadRows: 4, PrefetchSlots: 8})
		b := &stages.Batch{Rows: make([]stages.Row, c.rows), Segments: []stages.Segment{{Seq: 1, Rows: c.rows}}, Beside: c.beside}
		var out stages.Outbox
		if err := core.Step(&stages.BeginLayer{Step: stages.Step{ID: 1, Layer: c.layer, Batch: b}}, &out); err != nil {
			t.Fatal(err)
		}
		var got []int
		for _, s := range out.Sends {
			got = append(got, s.Msg.(*stages.PrefetchExperts).Layer)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("layer %d, beside a text %v: hints for layers %v, want %v", c.layer, c.beside, got, c.want)
		}
	}
}
