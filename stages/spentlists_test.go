package stages

import (
	"reflect"
	"slices"
	"testing"
)

// fill gives every field of a message but its head a value.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 3, 3))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString("x")
	default:
		switch {
		case v.CanInt():
			v.SetInt(1)
		case v.CanUint():
			v.SetUint(1)
		}
	}
}

// TestSpentEmpties spends a message of each kind whose memory is used again: the next of its kind
// lies in the same memory and has nothing of the old one but room in the slices that its sender
// fills anew. Slices that pass hands stay with who has them.
func TestSpentEmpties(t *testing.T) {
	keeps := map[string][]string{
		"PrefetchExperts": {"Experts", "Chances"}, "PicksReady": {"Picks", "Weights", "Inputs"}, "ScoresAhead": {"Scores"},
		"WaveResident": {"Uses", "Answers"}, "StepRouted": {"Picks", "Near"},
		"ExpertsUsed": {"Uses"}, "MoveExperts": {"Come", "Leave"}, "SlotsVacated": {"Slots"},
	}
	n := 0
	for _, blank := range Blanks() {
		typ := reflect.TypeOf(blank).Elem()
		p := reflect.New(typ)
		fill(p.Elem())
		before := reflect.New(typ)
		fill(before.Elem())
		var s Spent
		s.Handled(p.Interface().(Message))
		kept := keptBy(&s)
		if len(kept) == 0 {
			if !reflect.DeepEqual(p.Interface(), before.Interface()) {
				t.Errorf("%s was changed, and is not to be used again", typ.Name())
			}
			continue
		}
		n++
		if len(kept) != 1 || kept[0] != p.Interface() {
			t.Errorf("%s was taken back as %v", typ.Name(), kept)
		}
		for i := range typ.NumField() {
			f, name := p.Elem().Field(i), typ.Field(i).Name
			if slices.Contains(keeps[typ.Name()], name) {
				if f.Len() != 0 || f.Cap() != 3 {
					t.Errorf("%s.%s has %d items and room for %d, want room for 3", typ.Name(), name, f.Len(), f.Cap())
				}
			} else if !f.IsZero() {
				t.Errorf("%s.%s is %v after the message was handled", typ.Name(), name, f)
			}
		}
	}
	if lists := lists(); n != len(lists) {
		t.Errorf("%d kinds are used again, want the %d of Spent, each with a spend: %v",
			n, len(lists), lists)
	}
}

// lists returns the messages for which Spent has a list, but for those that are not spent when they
// have been handled: logits when their step ends, and answers by callers.
func lists() (names []string) {
	typ, message := reflect.TypeFor[Spent](), reflect.TypeFor[Message]()
	others := []reflect.Type{reflect.TypeFor[*LogitsReady](), reflect.TypeFor[*ChunkEvaluated]()}
	for i := range typ.NumField() {
		if items := typ.Field(i).Type; items.Kind() == reflect.Struct {
			of := items.Field(0).Type.Elem()
			if of.Implements(message) && !slices.Contains(others, of) {
				names = append(names, of.Elem().Name())
			}
		}
	}
	return names
}

// keptBy returns the messages that s keeps.
func keptBy(s *Spent) (kept []any) {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		if items := v.Field(i); items.Kind() == reflect.Struct {
			items = items.Field(0)
			for k := range items.Len() {
				if items.Index(k).Kind() != reflect.Pointer {
					continue // slices for logits
				}
				kept = append(kept, reflect.NewAt(items.Index(k).Type().Elem(), items.Index(k).UnsafePointer()).Interface())
			}
		}
	}
	return kept
}

// TestSpentTakes takes what was spent, of the right kind and once.
func TestSpentTakes(t *testing.T) {
	var s Spent
	a, b := s.TicketDone(Step{ID: 1}, 2), s.LayerRetired(Step{ID: 1}, 0)
	s.Handled(a)
	s.Handled(b)
	if got := s.LayerRetired(Step{ID: 3}, 4); got != b || got.ID != 3 || got.More != 4 {
		t.Errorf("got %+v at %p, want the memory at %p", got, got, b)
	}
	if got := s.LayerRetired(Step{}, 0); got == b {
		t.Error("one message was given twice")
	}
	if got := s.TicketDone(Step{}, 5); got != a || got.Step.ID != 0 || got.ID != 5 {
		t.Errorf("got %+v at %p, want the memory at %p", got, got, a)
	}
	for range 2 * keepMost {
		s.Handled(new(TicketDone))
	}
	if n := len(s.tickets.items); n != keepMost {
		t.Errorf("%d messages of a kind are kept, want %d at most", n, keepMost)
	}
}

// BenchmarkSpent is what a message's memory costs: taken once, and given back once.
func BenchmarkSpent(b *testing.B) {
	var s Spent
	b.ReportAllocs()
	for b.Loop() {
		s.Handled(s.TicketDone(Step{ID: 1}, 2))
	}
}
