package live

import (
	"testing"

	"github.com/moeflux/moeflux-actor/tracing/record"
)

// A step whose end is read before its beginning is not under way for ever, nor is one whose end was
// forgotten.
func TestStepsEnd(t *testing.T) {
	var f flow
	var w window
	f.init(&record.Meta{})
	f.ended(&w, &record.StepEnded{Step: 1, EndedNS: 5})
	f.settle(&w, false)
	f.step(&record.Step{Step: 1, BeganNS: 2})
	f.step(&record.Step{Step: 2, BeganNS: 3})
	f.settle(&w, false)
	if all := f.underWay(10); len(all) != 1 || all[0].Step != 2 {
		t.Errorf("under way are %+v, want step 2", all)
	}
	f.settle(&w, true)
	if all := f.underWay(10); len(all) != 0 || len(f.early) != 0 {
		t.Errorf("after ends were lost %+v are under way, and %v wait", all, f.early)
	}
}
