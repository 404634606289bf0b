package actors_test

import (
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestStatsAfterClose closes an engine, well or broken, and wants its last figures with the error.
func TestStatsAfterClose(t *testing.T) {
	ctx := context.Background()
	for _, stop := range []string{"closed", "broken"} {
		t.Run(stop, func(t *testing.T) {
			system := silentSystem(t)
			e, err := actors.Spawn(ctx, system, actors.Config{
				Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 2), ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 1 << 18,
			})
			if err != nil {
				t.Fatal(err)
			}
			s, err := e.NewSequence(ctx)
			if err != nil {
				t.Fatal(err)
			}
			eval(t, s, 1, 2, 3)
			first, err := e.Stats(ctx)
			if err != nil {
				t.Fatal(err)
			}
			eval(t, s, 4)
			if stop == "broken" {
				if err := system.Root.StopFuture(e.PID()).Wait(); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Close(context.Background()); (err != nil) != (stop == "broken") {
				t.Fatal(err)
			}
			last, err := e.Stats(ctx)
			if !errors.Is(err, stages.ErrClosed) || last == nil {
				t.Fatalf("after Close: figures %v, %v, want the last ones and ErrClosed", last, err)
			}
			d := last.Since(first)
			misses := int64(0)
			for _, l := range d.Layers {
				misses += l.Misses
			}
			if last.Rows != 4 || d.Rows != 1 || d.Steps != 1 || misses == 0 || d.Reads.Bytes == 0 || d.ComputeNS == 0 {
				t.Errorf("last figures: %d rows; since the first: %d rows, %d steps, %d misses, %d bytes, %d ns", last.Rows, d.Rows, d.Steps, misses, d.Reads.Bytes, d.ComputeNS)
			}
			last.Layers[0].Hits = -1
			if again, _ := e.Stats(ctx); reflect.DeepEqual(again, last) {
				t.Error("the last figures are the caller's to change")
			}
		})
	}
}
