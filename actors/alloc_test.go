package actors_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/invariants"
	"github.com/moeflux/moeflux-actor/stages/sample"
)

// TestNoAllocations decodes with experts in memory and tracing off: in the steady state a token
// allocates nothing, neither through Use nor through Generate, whose logits go round. It stays
// within one page of positions, for a new page of keys and values is listed in new memory.
func TestNoAllocations(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector and the checks allocate")
	}
	for _, c := range []struct {
		io       actors.ExpertIO
		resident actors.Resident
		devices  int
	}{{actors.ExpertIOMmap, actors.ResidentOn, 1}, {actors.ExpertIOMmap, actors.ResidentOff, 1}, {actors.ExpertIOBuffered, actors.ResidentOff, 1}, {actors.ExpertIOMmap, actors.ResidentOn, 2}} {
		t.Run(fmt.Sprintf("io=%s/resident=%s/devices=%d", c.io, c.resident, c.devices), func(t *testing.T) {
			dev := gpu.Device(device(t, 0))
			if c.devices > 1 {
				dev = splitOf(t, hosts(t, c.devices)...)
			}
			e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: dev, ExpertIO: c.io, Resident: c.resident})
			s := sequence(t, e)
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			tokens := []int32{7}
			use := func(logits []float32) error {
				tokens[0] = argmax(logits)
				return nil
			}
			token := func() {
				if err := s.Use(ctx, tokens, use); err != nil {
					t.Fatal(err)
				}
			}
			const rounds = 40
			again := func() {
				if err := s.Reset(ctx); err != nil {
					t.Fatal(err)
				}
				tokens[0] = 7
			}
			for range 3 { // the same text each time, so its experts are in their slots
				again()
				for range rounds + 1 {
					token()
				}
			}
			perToken := func() (allocations, limit float64) {
				again()
				return testing.AllocsPerRun(rounds, token), 0
			}
			settles(t, "Use, a token", perToken)
			best := func(b sample.Best) error {
				tokens[0] = b.Tokens[0]
				return nil
			}
			token = func() {
				if err := s.UseBest(ctx, tokens, best); err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				again()
				for range rounds + 1 {
					token()
				}
			}
			settles(t, "UseBest, a token", perToken)
			generate := func(n int) float64 {
				return testing.AllocsPerRun(5, func() {
					again()
					if _, err := greedy(s, []int32{7}, n); err != nil {
						t.Fatal(err)
					}
				})
			}
			// Three slices grow with the text, greedy's, Generate's and the sequencer's: from 10
			// tokens to 40 each grows three times at most.
			settles(t, "Generate, 40 tokens", func() (allocations, limit float64) {
				limit = generate(rounds/4) + 9
				return generate(rounds), limit
			})
		})
	}
}

// settles measures several times and fails if there are too many allocations each time. What every
// token allocates shows up in all measurements. What is allocated only once may come late and spoil
// one of them: on a busy machine more commands are in flight at once than before, or the runtime
// starts a thread.
func settles(t *testing.T, what string, measure func() (allocations, limit float64)) {
	t.Helper()
	const measurements = 5
	var got, limit float64
	for range measurements {
		if got, limit = measure(); got <= limit {
			return
		}
	}
	t.Errorf("%s: %v allocations in the last of %d measurements, want at most %v",
		what, got, measurements, limit)
}

// TestNoAllocationsReading decodes with slots for a part of the experts: in the steady state
// neither a miss nor the read allocates, however often the garbage of others is collected.
func TestNoAllocationsReading(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector and the checks allocate")
	}
	e := open(t, actors.Config{
		Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 0), ExpertIO: actors.ExpertIOBuffered,
		Prefetch: actors.PrefetchOff, ExpertMemory: 1 << 17, WaveSlots: 4,
	})
	s, ctx, tokens := sequence(t, e), context.Background(), []int32{7}
	token := func() {
		if err := s.Use(ctx, tokens, func(logits []float32) error {
			tokens[0] = argmax(logits)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	const rounds = 30
	for range rounds { // slots, messages and lists get their memory
		token()
	}
	batch := func() (allocations, misses float64) {
		if err := s.Reset(ctx); err != nil {
			t.Fatal(err)
		}
		tokens[0] = 7
		token()
		before := reads(t, e)
		allocations = testing.AllocsPerRun(rounds, func() {
			token()
			runtime.GC()
		})
		return allocations, float64(reads(t, e)-before) / (rounds + 1)
	}
	settles(t, "Use with reads, a token", func() (allocations, limit float64) {
		got, misses := batch()
		if misses == 0 {
			t.Fatal("nothing was read: the test shows nothing")
		}
		return got, 0
	})
}

// reads returns how many experts were not in memory so far.
func reads(t *testing.T, e *actors.Engine) int64 {
	st, err := e.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for _, l := range st.Layers {
		n += l.Misses
	}
	return n
}

// TestNoAllocationsTogether decodes four texts at once: waiting for one another allocates nothing
// either.
func TestNoAllocationsTogether(t *testing.T) {
	if invariants.Enabled {
		t.Skip("the race detector and the checks allocate")
	}
	const texts, warm, short, long = 4, 8, 4, 24 // 36 tokens: within one page of positions
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 0), ExpertIO: actors.ExpertIOMmap})
	sequences, decoders := make([]*actors.Sequence, texts), make([]func(n int), texts)
	for i := range decoders {
		s, tokens := sequence(t, e), []int32{int32(7 + i)}
		use := func(logits []float32) error {
			tokens[0] = argmax(logits)
			return nil
		}
		sequences[i] = s
		decoders[i] = func(n int) {
			for range n {
				if err := s.Use(context.Background(), tokens, use); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}
	all := func(n int) {
		var wg sync.WaitGroup
		for _, d := range decoders {
			wg.Go(func() { d(n) })
		}
		wg.Wait()
	}
	mallocs := func(n int) int {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		all(n)
		runtime.ReadMemStats(&after)
		return int(after.Mallocs - before.Mallocs)
	}
	// Starting goroutines allocates. Chance decides how many texts share a step, and a step with
	// more of them than before allocates a little too: a few times in all. If every step allocated,
	// it would be dozens.
	settles(t, "Use of four texts, 96 tokens", func() (allocations, limit float64) {
		for _, s := range sequences {
			if err := s.Reset(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		all(warm)
		limit = float64(mallocs(short) + 4*texts)
		return float64(mallocs(long)), limit
	})
}
