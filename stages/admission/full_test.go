package admission_test

import (
	"fmt"
	"testing"

	"github.com/moeflux/moeflux-actor/stages/admission"
)

// TestFull fills the queue: the newest of the longest line goes, of the lowest class.
func TestFull(t *testing.T) {
	q := admission.New[string](3, 3)
	many, few, high := q.Join(1, "many", 1), q.Join(1, "few", 1), q.Join(2, "high", 1)
	grown := q.Join(0, "grown", 1)
	for i, c := range []struct {
		share *admission.Share[string]
		name  string
		gone  string
	}{
		{many, "m1", ""}, {many, "m2", ""}, {many, "m3", ""}, {many, "m4", "m4"}, {few, "f1", "m3"}, {few, "f2", "f2"},
		{high, "h1", "m2"}, {q.Join(0, "low", 1), "l1", "l1"}, {high, "h2", "f1"}, {high, "h3", "m1"}, {high, "h4", "h4"},
	} {
		if i == 5 {
			q.Grow(grown, "g1") // is not counted
		}
		_, gone := q.Add(c.share, c.name)
		if gone == nil && c.gone != "" || gone != nil && gone.For != c.gone {
			t.Errorf("%s: %+v goes, want %q", c.name, gone, c.gone)
		}
	}
	if q.Len() != 4 || q.Head().For != "h1" {
		t.Errorf("%d wait, %s is next", q.Len(), q.Head().For)
	}
}

// TestFullByWeight fills the queue: a key of weight 3 may have three times as many asks there as
// one of weight 1.
func TestFullByWeight(t *testing.T) {
	q := admission.New[string](1, 8)
	heavy, light := q.Join(0, "heavy", 3), q.Join(0, "light", 1)
	for range 20 {
		q.Add(light, "light")
		q.Add(heavy, "heavy")
	}
	waiting := make(map[string]int)
	q.All(func(a *admission.Ask[string]) bool { waiting[a.For]++; return true })
	if waiting["heavy"] != 6 || waiting["light"] != 2 {
		t.Errorf("%v wait, want 6 of weight 3 and 2 of weight 1", waiting)
	}
}

// TestManyKeys lets more keys come and go than are remembered.
func TestManyKeys(t *testing.T) {
	q := admission.New[string](1, 10)
	q.Join(0, "slow", 1).Begin(1)
	for i := range 5000 {
		s := q.Join(0, fmt.Sprint(i), 1)
		s.Begin(5000 - i)
		s.Serve(5000 - i)
		s.End(0)
		q.Leave(s)
	}
	if n := q.Keys(); n > 1100 {
		t.Errorf("%d keys are remembered", n)
	}
}
