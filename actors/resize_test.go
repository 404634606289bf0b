package actors_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestResizeSlots takes slots away and gives them back between tokens: figures, log and answers say
// how many there are, the text stays the same, and without room there are more misses.
func TestResizeSlots(t *testing.T) {
	ctx := context.Background()
	var log testenv.Log
	cfg := actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), ExpertIO: actors.ExpertIOBuffered, WaveSlots: 3, Logger: log.Logger()}
	e := open(t, cfg)
	most := e.Info().Slots
	s := sequence(t, e)
	want, err := greedy(s, prompt(1, 20, 512), 10)
	if err != nil {
		t.Fatal(err)
	}
	missed := reads(t, e)
	for _, tc := range []struct{ ask, get int }{{most / 2, most / 2}, {0, 3}, {7, 7}, {1 << 40, most}, {4, 4}, {most, most}} {
		if n, err := e.ResizeSlots(ctx, tc.ask); n != tc.get || err != nil {
			t.Fatalf("%d slots asked for: %d, %v, want %d", tc.ask, n, err, tc.get)
		}
		st, err := e.Stats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if st.Slots != tc.get || st.SlotsMost != most || st.SlotsUsed > st.Slots {
			t.Errorf("figures after asking for %d: %d slots of %d, %d used, want %d of %d", tc.ask, st.Slots, st.SlotsMost, st.SlotsUsed, tc.get, most)
		}
		if err := s.Reset(ctx); err != nil {
			t.Fatal(err)
		}
		if got, err := greedy(s, prompt(1, 20, 512), 10); err != nil || !slices.Equal(got, want) {
			t.Fatalf("with %d slots: %v, %v, want %v", tc.get, got, err, want)
		}
		now := reads(t, e)
		if now == missed && tc.get < most {
			t.Errorf("with %d slots nothing was read again", tc.get)
		}
		missed = now
	}
	if text := log.String(); !strings.Contains(text, "expert slots") || !strings.Contains(text, "slots=7") {
		t.Errorf("the log says nothing of the slots: %s", text)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := e.ResizeSlots(gone, most); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled call: %v", err)
	}
	if err := e.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.ResizeSlots(ctx, most); !errors.Is(err, stages.ErrClosed) {
		t.Errorf("a closed engine: %v, want %v", err, stages.ErrClosed)
	}
}

// TestResizeMapped asks for fewer slots where experts are mapped: their number stays.
func TestResizeMapped(t *testing.T) {
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), ExpertIO: actors.ExpertIOMmap})
	if n, err := e.ResizeSlots(context.Background(), 1); n != e.Info().Slots || err != nil {
		t.Errorf("%d slots, %v, want %d", n, err, e.Info().Slots)
	}
}
