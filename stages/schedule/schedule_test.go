package schedule_test

import (
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// newSchedule returns a schedule of one step of each kind at a time.
func newSchedule(rows int) schedule.Schedule[*chunk] {
	return schedule.New[*chunk](schedule.Config{Rows: rows, Steps: 1, Layers: 2, Share: 0.5})
}

// TestAddAt puts what is tried again before the others of its kind.
func TestAddAt(t *testing.T) {
	s := newSchedule(8)
	a, b, c := &chunk{id: 1, left: 2}, &chunk{id: 2, left: 2}, &chunk{id: 3, left: 2}
	s.Add(c)
	s.AddAt(0, a)
	s.AddAt(1, b)
	_, got := s.Next(1)
	if want := []schedule.Share[*chunk]{{a, 2}, {b, 2}, {c, 2}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestRoom tells how many steps of each kind there may be.
func TestRoom(t *testing.T) {
	s := schedule.New[*chunk](schedule.Config{Rows: 1, Steps: 2, Layers: 1, Share: 0.5})
	for i := range 4 {
		s.Add(&chunk{id: i, left: 1})
		s.Add(&chunk{id: 10 + i, left: 5})
	}
	next := func(id uint64, want schedule.Kind, some bool) {
		t.Helper()
		if k, shares := s.Next(id); len(shares) > 0 != some || some && k != want {
			t.Fatalf("step %d: %v of kind %d, want any: %t, of kind %d", id, shares, k, some, want)
		}
	}
	next(1, schedule.Decode, true)
	next(2, schedule.Prompt, false) // it could not begin: a decode step has layers left
	s.Asked(1)
	next(2, schedule.Prompt, true)
	next(3, schedule.Prompt, true)
	next(4, schedule.Prompt, false) // three are all there are
	s.Ended(1)
	next(4, schedule.Prompt, false) // two of a kind are all there are
	s.Begun(2, 1)                   // a prompt's layer was due before the next decode step
	next(4, schedule.Decode, true)
	s.Ended(3)
	next(5, schedule.Decode, false) // who comes now goes with the next one
	s.Ended(4)
	next(5, schedule.Decode, true)
}

// TestWaiting tells when a step is held back, and until when.
func TestWaiting(t *testing.T) {
	one, prompt := &chunk{id: 1, left: 1}, &chunk{id: 2, left: 4}
	next := func(t *testing.T, s *schedule.Schedule[*chunk], shares int, round uint64) {
		t.Helper()
		if _, got := s.Next(1); len(got) != shares {
			t.Fatalf("%v, want %d shares", got, shares)
		}
		if r, _ := s.Timer(); r != round {
			t.Fatalf("a timer for round %d, want %d", r, round)
		}
	}
	t.Run("nothing to wait with", func(t *testing.T) {
		s := newSchedule(4)
		s.Expect(7)
		next(t, &s, 0, 0)
	})
	t.Run("until the last of them is back", func(t *testing.T) {
		s := newSchedule(4)
		s.Expect(7)
		s.Expect(8)
		s.Expect(8)
		s.Add(one)
		next(t, &s, 0, 1)
		next(t, &s, 0, 0)
		s.Unexpect(7)
		next(t, &s, 0, 0)
		s.Unexpect(8)
		next(t, &s, 1, 0)
	})
	t.Run("until time is over", func(t *testing.T) {
		s := newSchedule(4)
		s.Expect(7)
		s.Add(one)
		next(t, &s, 0, 1)
		s.WaitOver(1)
		if s.Expected() != 0 || s.Expects(7) {
			t.Fatal("somebody is still expected")
		}
		next(t, &s, 1, 0)
	})
	t.Run("an earlier wait says nothing", func(t *testing.T) {
		s := newSchedule(4)
		s.Expect(7)
		s.Add(one)
		next(t, &s, 0, 1)
		s.Unexpect(7)
		next(t, &s, 1, 0)
		s.Ended(1)
		s.Expect(7)
		s.WaitOver(1)
		s.Add(one)
		next(t, &s, 0, 2)
		s.WaitOver(1)
		next(t, &s, 0, 0)
	})
	t.Run("not with a full step, and no prompt", func(t *testing.T) {
		s := newSchedule(1)
		s.Expect(7)
		s.Add(one)
		next(t, &s, 1, 0)
		s.Ended(1)
		s.Add(prompt)
		next(t, &s, 1, 0)
	})
	t.Run("a prompt that has had its turn waits as long", func(t *testing.T) {
		s := newSchedule(4)
		s.Expect(7)
		s.Add(prompt)
		next(t, &s, 1, 0)
		if n := s.Layers(1, 1); n != 0 {
			t.Fatalf("%d layers, want none", n)
		}
		if r, _ := s.Timer(); r != 1 {
			t.Fatalf("round %d, want 1", r)
		}
		s.WaitOver(1)
		if n := s.Layers(1, 1); n != 1 {
			t.Fatalf("%d layers, want 1", n)
		}
	})
}

func TestNothingIsAllocated(t *testing.T) {
	s := newSchedule(64)
	c, now, id := &chunk{id: 1, left: 1}, int64(0), uint64(0)
	p := &chunk{id: 2, left: 1 << 30}
	s.Add(p)
	step := func(k schedule.Kind) {
		id++
		got, shares := s.Next(id)
		if len(shares) != 1 || got != k {
			t.Fatalf("%v of kind %d", shares, got)
		}
		for s.Layers(id, 1) == 0 {
			t.Fatal("it may not begin")
		}
		s.Begun(id, 2)
		s.Asked(id)
		now += 1000
		s.Now(now)
		s.Retired(id, 2)
		s.Ended(id)
		s.Add(shares[0].Request)
		s.Remove(c)
	}
	turn := func() {
		step(schedule.Prompt)
		s.Expect(1)
		s.Unexpect(1)
		s.Add(c)
		step(schedule.Decode)
	}
	turn()
	if n := testing.AllocsPerRun(100, turn); n != 0 {
		t.Errorf("%v allocations a turn", n)
	}
}
