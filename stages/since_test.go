package stages

import (
	"reflect"
	"slices"
	"testing"
)

// TestStatsSince fills every number of the earlier figures with 1 and of the later ones with 3: a
// count becomes 2, what describes a moment stays 3. A field that Since does not know fails.
func TestStatsSince(t *testing.T) {
	moments := []string{
		"Slots", "SlotsUsed", "SlotsMost", "RingHighWater", "PagesUsed", "PagesMax", "States.Kept", "Admission.Sequences", "Admission.PromisedBytes", "Admission.Waiting", "Admission.WaitingMost", "States.KeptBytes", "States.KeptMax", "States.Parked", "States.ParkedHost", "States.ParkedDisk", "States.StoredDisk",
		"Reads.Queued", "Reads.Running", "Reads.QueuedHigh", "Reads.RunningHigh", "Reads.AtOnce", "Memory.Available", "Memory.SlotsAsked", "Memory.SlotsHeld", "Memory.HostHeld",
		"Layers.PrefetchHeld",
	}
	earlier, later := filled(1), filled(3)
	d := later.Since(earlier)
	fields := 0
	numbers(reflect.ValueOf(d).Elem(), "", func(name string, v reflect.Value) {
		fields++
		want := int64(2)
		if slices.Contains(moments, name) {
			want = 3
		}
		if v.Int() != want {
			t.Errorf("%s is %d, want %d", name, v.Int(), want)
		}
	})
	if fields < 40 {
		t.Errorf("only %d fields were looked at", fields)
	}
	if !d.Layers[0].PrefetchPaused {
		t.Error("a layer that is paused at the later moment is not")
	}
	if d.Layers[0].Uses[0] = 9; later.Layers[0].Uses[0] != 3 {
		t.Error("the difference shares memory with the figures")
	}
	whole := later.Since(nil)
	if !reflect.DeepEqual(whole, later) {
		t.Errorf("since nil: %+v, want all of %+v", whole, later)
	}
	if !reflect.DeepEqual(earlier, filled(1)) || !reflect.DeepEqual(later, filled(3)) {
		t.Error("Since changes its operands")
	}
}

func filled(n int64) *Stats {
	s := &Stats{Hosts: make([]HostStats, 1), Layers: []LayerStats{{Uses: []int64{0}, PrefetchPaused: n == 3}}}
	numbers(reflect.ValueOf(s).Elem(), "", func(_ string, v reflect.Value) { v.SetInt(n) })
	return s
}

// numbers calls f with every integer in v, by the path of its fields; embedded structs and elements
// have no name.
func numbers(v reflect.Value, path string, f func(string, reflect.Value)) {
	switch v.Kind() {
	case reflect.Int, reflect.Int64:
		f(path, v)
	case reflect.Slice:
		for i := range v.Len() {
			numbers(v.Index(i), path, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			name := path
			if field := v.Type().Field(i); !field.Anonymous {
				if name != "" {
					name += "."
				}
				name += field.Name
			}
			numbers(v.Field(i), name, f)
		}
	}
}
