package actors_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/stages"
)

// until waits until an engine's figures are as they shall be.
func until(t *testing.T, e *actors.Engine, what string, is func(stages.StateStats) bool) {
	t.Helper()
	for began := time.Now(); !is(states(t, e)); time.Sleep(time.Millisecond) {
		if time.Since(began) > 2*time.Minute {
			t.Fatalf("%s: not within two minutes: %+v", what, states(t, e))
		}
	}
}

// of opens a sequence of a scope, for as long as the test.
func of(t *testing.T, e *actors.Engine, scope string) *actors.Sequence {
	t.Helper()
	s, err := e.NewSequenceFor(ctx, actors.SequenceOptions{Scope: scope})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// goOn resumes a text, evaluates the rest of it, and returns the logits and how much was known.
func goOn(t *testing.T, s *actors.Sequence, text []int32) ([]float32, int) {
	t.Helper()
	n, err := s.Resume(ctx, text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.EvalChunk(ctx, actors.Chunk{Tokens: text[n:], Before: n, Remember: true})
	if err != nil {
		t.Fatal(err)
	}
	return r.Logits, n
}

// TestTextsOnDisk has a conversation of three turns. Between them memory forgets all of it, and the
// engine is closed and opened again. Each turn reads only what is new, with the bits of a text that
// was read at once, and another scope finds nothing.
func TestTextsOnDisk(t *testing.T) {
	for _, c := range []struct {
		model string
		kv    actors.KVFormat
		far   bool
	}{
		{fixtures.Qwen35MoEQ4, "", false}, {fixtures.Qwen3MoEBF16, "", false}, {fixtures.DeepseekV3Q4, "", false},
		{fixtures.Qwen3MoEBF16, actors.KVInt8, false}, {fixtures.Qwen35MoEQ4, actors.KVInt8, true}, {fixtures.DeepseekV3Q4, "", true},
		{fixtures.GptOssBF16, "", false}, {fixtures.MiMoV2FlashBF16, "", true},
		{fixtures.MiniMaxM3BF16, "", true}, {fixtures.MiniMaxM3BF16, actors.KVInt8, false}, {fixtures.Step35BF16, "", false}, {fixtures.Step35BF16, actors.KVInt8, true},
	} {
		t.Run(fmt.Sprintf("%s/%s/far=%v", c.model, c.kv, c.far), func(t *testing.T) {
			dir, dev := fixtures.Packed(t, c.model, 0), device(t, 2)
			base := open(t, actors.Config{Model: dir, Device: dev, KV: c.kv, RecordMemory: fewRecords})
			cfg := actors.Config{Model: dir, Device: dev, KV: c.kv, StateDir: t.TempDir(), StateDisk: 1 << 30, RecordMemory: fewRecords}
			if c.far {
				cfg.Device = &farDevice{dev}
			}
			text := prompt(1, 250, base.Model().VocabSize)
			turn := func(e *actors.Engine, from, to int) {
				t.Helper()
				if n, err := of(t, e, "another").Resume(ctx, text[:to]); n != 0 || err != nil {
					t.Errorf("another scope finds %d tokens, %v", n, err)
				}
				s := of(t, e, "one")
				got, n := goOn(t, s, text[:to])
				fresh := sequence(t, base)
				want, err := fresh.EvalChunk(ctx, actors.Chunk{Tokens: text[:to]})
				if err != nil {
					t.Fatal(err)
				}
				if n != from || !slices.Equal(got, want.Logits) {
					t.Errorf("of %d tokens %d are known, want %d; logits equal: %v", to, n, from, slices.Equal(got, want.Logits))
				}
				if err := s.Store(ctx); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
			e := open(t, cfg)
			turn(e, 0, 130)
			until(t, e, "the first turn is stored", func(s stages.StateStats) bool { return s.Stored == 1 && s.StoredDisk > 0 })
			if err := e.ForgetTexts(ctx); err != nil {
				t.Fatal(err)
			}
			turn(e, 130, 171)
			if st := states(t, e); st.Recalled != 1 {
				t.Errorf("%d states were brought back from disk, want 1", st.Recalled)
			}
			if err := e.Close(ctx); err != nil { // which waits until the turn is stored
				t.Fatal(err)
			}
			turn(open(t, cfg), 171, 250)
		})
	}
}

// A text goes on from memory where the disk has hardly more of it, and from the disk where memory
// has much less.
func TestMemoryBeforeDisk(t *testing.T) {
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), StateDir: t.TempDir(), StateDisk: 1 << 30, RecordMemory: fewRecords})
	text := prompt(1, 200, e.Model().VocabSize)
	stored := int64(0)
	keep := func(to int) {
		t.Helper()
		s := of(t, e, "")
		goOn(t, s, text[:to])
		if err := s.Store(ctx); err != nil {
			t.Fatal(err)
		}
		stored++
		until(t, e, "the text is stored", func(s stages.StateStats) bool { return s.Stored == stored })
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	forget := func() {
		t.Helper()
		if err := e.ForgetTexts(ctx); err != nil {
			t.Fatal(err)
		}
	}
	keep(30)
	keep(140)
	forget()
	for _, c := range []struct{ memory, want int }{{77, 77}, {30, 140}} {
		forget()
		other := of(t, e, "")
		if _, err := other.EvalChunk(ctx, actors.Chunk{Tokens: text[:c.memory]}); err != nil {
			t.Fatal(err)
		}
		s := of(t, e, "")
		if n, err := s.Resume(ctx, text); n != c.want || err != nil {
			t.Errorf("memory has %d tokens: %d are known, want %d; %v", c.memory, n, c.want, err)
		}
		if err := errors.Join(s.Close(), other.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// Other settings that would compute other bits do not find a text.
func TestTextsOfOtherBits(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen3MoEBF16, 0)
	cfg := actors.Config{Model: dir, StateDir: t.TempDir(), StateDisk: 1 << 30, RecordMemory: fewRecords}
	text := prompt(1, 100, 50)
	for i, c := range []struct {
		kv   actors.KVFormat
		k    int
		want int
	}{{"", 0, 0}, {actors.KVInt8, 0, 0}, {"", 1, 0}, {"", 0, 99}} {
		cfg.KV, cfg.ExpertsPerToken = c.kv, c.k
		e := open(t, cfg)
		s := of(t, e, "")
		if _, n := goOn(t, s, text); n != c.want {
			t.Errorf("engine %d knows %d tokens, want %d", i, n, c.want)
		}
		if err := errors.Join(s.Store(ctx), e.Close(ctx)); err != nil {
			t.Fatal(err)
		}
	}
}

// A folder that cannot be used is an error of Open; a bound without a folder is one of the caller.
func TestTextsFolder(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen3MoEBF16, 0)
	place := t.TempDir()
	if err := os.WriteFile(filepath.Join(place, "texts"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, cfg := range []actors.Config{{StateDir: place, StateDisk: 1}, {StateDisk: 1}, {StateDir: place, StateDisk: -1}} {
		cfg.Model, cfg.Device = dir, device(t, 1)
		if e, err := actors.Open(context.Background(), cfg); err == nil {
			t.Errorf("%+v: no error", cfg.StateDisk)
			e.Close(ctx)
		}
	}
}
