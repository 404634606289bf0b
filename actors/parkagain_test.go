package actors_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestDeclaredBehindIdle has a text that declares its end come when all the memory that it lacks is
// that of a sequence that rests and has declared nothing. It gets the memory: the other is parked,
// even if it could not be parked before for lack of room. It is refused only where there is no room
// still, and the other loses nothing in any case.
func TestDeclaredBehindIdle(t *testing.T) {
	dir, dev := fixtures.Packed(t, fixtures.Qwen3MoEBF16, 0), device(t, 2)
	ample := open(t, actors.Config{Model: dir, Device: dev, Context: 256})
	const first, tokens = 20, 180 // of 64 positions to a page: all four
	one, two := prompt(1, first, ample.Model().VocabSize), prompt(2, first, ample.Model().VocabSize)
	want, err := greedy(sequence(t, ample), two, tokens)
	if err != nil {
		t.Fatal(err)
	}
	alone := sequence(t, ample)
	eval(t, alone, one...)
	next := eval(t, alone, 7)
	i := ample.Info()
	for _, c := range []struct {
		name           string
		before, leaves bool // another state is in the only place to park, and gives it up in time
		refused        bool
	}{{"room", false, false, false}, {"room by now", true, true, false}, {"no room", true, false, true}} {
		t.Run(c.name, func(t *testing.T) {
			e := open(t, actors.Config{
				Model: dir, Device: dev, Context: 256, StateMemory: 4 * 64 * i.KVBytesPerPos, ParkedMemory: 3 * first * i.KVBytesPerPos / 2,
			})
			rests := sequence(t, e)
			if c.before {
				other, err := e.NewSequence(ctx)
				if err != nil {
					t.Fatal(err)
				}
				defer other.Close()
				eval(t, other, one...)
				if err := other.Park(ctx); err != nil {
					t.Fatal(err)
				}
				eval(t, rests, one...)
				if err := rests.Park(ctx); !errors.As(err, new(*stages.ParkFullError)) {
					t.Fatalf("parked beside another: %v", err)
				}
				if c.leaves {
					other.Close()
					if held := states(t, e).ParkedHost; held > 0 {
						t.Fatalf("%d bytes are held for a text that was closed", held)
					}
				}
			} else {
				eval(t, rests, one...)
			}
			got, err := greedy(sequence(t, e), two, tokens)
			if c.refused {
				if !errors.As(err, new(*stages.StateMemoryError)) {
					t.Errorf("%d tokens, %v; want a StateMemoryError", len(got), err)
				}
			} else if err != nil || !slices.Equal(got, want) || states(t, e).Parked != 1 {
				t.Errorf("%d tokens, %v; want %d, and %+v", len(got), err, len(want), states(t, e))
			}
			if c.refused && !slices.Equal(eval(t, rests, 7), next) {
				t.Error("who rested has other logits")
			}
		})
	}
}
