package actors_test

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// The log tells in full of as many of the last steps as Info says, of each type of record, though
// many more have been forgotten.
func TestRecordsHeld(t *testing.T) {
	for name, cfg := range recordedEngines(t) {
		t.Run(name, func(t *testing.T) {
			s := new(seen)
			cfg.RecordMemory, cfg.Device = 1<<19, device(t, 2)
			actors.WrapCores(&cfg, func(id stages.StageID, c stages.Core) stages.Core { return &watched{c, id, s} })
			e := open(t, cfg)
			seq, held := sequence(t, e), e.Info().RecordSteps
			for done := 0; done < 3*held; done += 40 {
				if err := seq.Reset(context.Background()); err != nil {
					t.Fatal(err)
				}
				if _, err := greedy(seq, []int32{3, 1, 4}, 40); err != nil {
					t.Fatal(err)
				}
			}
			if err := e.Close(context.Background()); err != nil {
				t.Fatal(err)
			}
			r, err := e.Recording(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if held < 10 || len(r.StepsEnded) < held || len(r.Forgotten) == 0 {
				t.Fatalf("%d steps are to be held, %d are, %v are forgotten", held, len(r.StepsEnded), r.Forgotten)
			}
			first := r.StepsEnded[len(r.StepsEnded)-held].Step
			want, got := make(map[uint64]int), make(map[uint64]int)
			for _, m := range s.messages {
				want[m.rec.Step]++
			}
			for _, h := range r.Handled {
				got[h.Step]++
			}
			for _, end := range r.StepsEnded[len(r.StepsEnded)-held:] {
				if got[end.Step] != want[end.Step] || want[end.Step] == 0 {
					t.Errorf("step %d of %d to %d: %d messages are recorded, there were %d", end.Step, first, first+uint64(held)-1, got[end.Step], want[end.Step])
				}
			}
			for table, forgotten := range r.Forgotten {
				if oldest, ok := oldestStep(r, table); ok && oldest >= first {
					t.Errorf("%s: %d are forgotten, the oldest is of step %d, and the last %d steps begin with %d", table, forgotten, oldest, held, first)
				}
			}
		})
	}
}

// oldestStep returns the step of the oldest record of a table that is about one.
func oldestStep(r *record.Recording, table string) (step uint64, ok bool) {
	f := reflect.ValueOf(*r).FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, strings.ReplaceAll(table, "_", "")) })
	for i := range f.Len() {
		if of := f.Index(i).FieldByName("Step"); of.IsValid() && of.Uint() > 0 {
			return of.Uint(), true
		}
	}
	return 0, false
}
