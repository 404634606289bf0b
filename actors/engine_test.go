package actors_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages"
)

func prompt(seed uint64, n, vocab int) []int32 {
	r := rand.New(rand.NewPCG(seed, 9))
	p := make([]int32, n)
	for i := range p {
		p[i] = int32(r.IntN(vocab))
	}
	return p
}

// transcript is all logits of reading a prompt and decoding n tokens greedily.
func transcript(s *actors.Sequence, prompt []int32, n int) ([][]float32, error) {
	var all [][]float32
	next := prompt
	for range n + 1 {
		logits, err := s.Eval(context.Background(), next)
		if err != nil {
			return nil, err
		}
		all = append(all, logits)
		next = []int32{argmax(logits)}
	}
	return all, nil
}

// TestEqualBits holds the same conversation under every setting that may change speed only, alone
// and beside another sequence, and wants the same bits. Latent attention has two forms, chosen by
// the chunk and the rows of a step, so there the rows stay.
func TestEqualBits(t *testing.T) {
	t.Run("hybrid", func(t *testing.T) {
		equalBits(t, fixtures.Qwen35MoEQ4, func(depth int) int { return 1 + 9*depth })
	})
	t.Run("latent", func(t *testing.T) { equalBits(t, fixtures.DeepseekV3BF16, func(int) int { return 12 }) })
	t.Run("indexed", func(t *testing.T) { equalBits(t, fixtures.GlmMoEDSASharedBF16, func(int) int { return 12 }) })
	t.Run("windows", func(t *testing.T) { equalBits(t, fixtures.GptOssMXFP4, func(depth int) int { return 1 + 9*depth }) })
}

func equalBits(t *testing.T, name string, chunkRows func(depth int) int) {
	dir := fixtures.Packed(t, name, 0)
	dev, dev1 := device(t, 2), device(t, 1)
	base := open(t, actors.Config{Model: dir, Device: dev1, RingDepth: 1, ExpertIO: actors.ExpertIOMmap, Resident: actors.ResidentOff, ChunkRows: chunkRows(1)})
	first, second := prompt(1, 21, base.Model().VocabSize), prompt(2, 11, base.Model().VocabSize)
	const decode = 6
	want, err := transcript(sequence(t, base), first, decode)
	if err != nil {
		t.Fatal(err)
	}
	slot := int64(base.Info().SlotBytes+4095) / 4096 * 4096
	depths := []int{1, 2, 3}
	prefetches := []struct {
		by     actors.Prefetch
		layers int
	}{{actors.PrefetchOff, 0}, {actors.PrefetchLastToken, 2}, {actors.PrefetchNextGate, 1}, {actors.PrefetchBoth, 2}}
	ios := []struct {
		mode              actors.ExpertIO
		resident          actors.Resident
		slots, waves, wrk int
	}{
		{actors.ExpertIOMmap, actors.ResidentOff, 0, 0, 0}, {actors.ExpertIOMmap, actors.ResidentOff, 0, 3, 0}, {actors.ExpertIOMmap, actors.ResidentOn, 0, 0, 0},
		{actors.ExpertIOLoaded, actors.ResidentOn, 0, 0, 3},
		{actors.ExpertIOLoaded, actors.ResidentOff, 0, 2, 1},
		{actors.ExpertIOBuffered, "", 1, 1, 1}, {actors.ExpertIOBuffered, "", 4, 4, 2},
		{actors.ExpertIOBuffered, "", 24, 3, 8}, {actors.ExpertIOBuffered, "", 128, 16, 8},
	}
	ways := []string{"alone", "beside another", "while slots come and go"}
	runs := 0
	for at := range testenv.Settings(len(depths), len(prefetches), len(ios), len(ways)) {
		depth, prefetch, io, way := depths[at[0]], prefetches[at[1]], ios[at[2]], ways[at[3]]
		cfg := actors.Config{
			Model: dir, Device: dev, RingDepth: depth, Prefetch: prefetch.by, PrefetchLayers: prefetch.layers, ExpertIO: io.mode, Resident: io.resident, ExpertMemory: int64(io.slots) * slot,
			WaveSlots: io.waves, ReadWorkers: io.wrk, ChunkRows: chunkRows(depth),
		}
		if err := sameConversation(cfg, first, second, want, way); err != nil {
			t.Fatalf("depth %d, prefetch %v, %+v, %s: %v", depth, prefetch, io, way, err)
		}
		runs++
	}
	t.Logf("%d settings, equal bits in all", runs)
}

func sameConversation(cfg actors.Config, first, second []int32, want [][]float32, way string) error {
	e, err := actors.Open(context.Background(), cfg)
	if err != nil {
		return err
	}
	defer e.Close(context.Background())
	var wg sync.WaitGroup
	var other error
	stop := make(chan struct{})
	switch way {
	case "beside another":
		wg.Go(func() {
			s, err := e.NewSequence(context.Background())
			if err == nil {
				_, err = transcript(s, second, 2*len(want))
			}
			other = err
		})
	case "while slots come and go":
		wg.Go(func() { other = comeAndGo(e, stop) })
	}
	s, err := e.NewSequence(context.Background())
	if err != nil {
		return err
	}
	got, err := transcript(s, first, len(want)-1)
	close(stop)
	wg.Wait()
	if err = errors.Join(err, other, s.Close()); err != nil {
		return err
	}
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			return fmt.Errorf("logits %d differ", i)
		}
	}
	return e.Close(context.Background())
}

// comeAndGo changes the number of slots all the time until stop is closed.
func comeAndGo(e *actors.Engine, stop chan struct{}) error {
	r := rand.New(rand.NewPCG(1, 1))
	for {
		select {
		case <-stop:
			return nil
		case <-time.After(50 * time.Microsecond):
		}
		if _, err := e.ResizeSlots(context.Background(), r.IntN(e.Info().Slots+2)); err != nil {
			return err
		}
	}
}

// TestSequencesTogether lets two sequences generate at once, through channels of their own, and
// wants what each gives alone.
func TestSequencesTogether(t *testing.T) {
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 1 << 20})
	const n = 40
	prompts := [][]int32{prompt(3, 17, 512), prompt(4, 5, 512), prompt(5, 1, 512)}
	alone := make([][]int32, len(prompts))
	for i, p := range prompts {
		ids, err := greedy(sequence(t, e), p, n)
		if err != nil {
			t.Fatal(err)
		}
		alone[i] = ids
	}
	before, err := e.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	together, errs := make([][]int32, len(prompts)), make([]error, len(prompts))
	var wg sync.WaitGroup
	for i, p := range prompts {
		s := sequence(t, e)
		wg.Go(func() { together[i], errs[i] = greedy(s, p, n) })
	}
	wg.Wait()
	for i := range prompts {
		if errs[i] != nil || !slices.Equal(together[i], alone[i]) {
			t.Errorf("sequence %d: %v, %v, want %v", i, together[i], errs[i], alone[i])
		}
	}
	after, err := e.Stats(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	rows, steps := after.Rows-before.Rows, after.Steps-before.Steps
	if rows != before.Rows {
		t.Errorf("together %d rows were evaluated, alone %d", rows, before.Rows)
	}
	t.Logf("%d rows in %d steps together, %d steps alone", rows, steps, before.Steps)
}

// TestRefusals shows that a bad request changes nothing and says what is wrong.
func TestRefusals(t *testing.T) {
	ctx := context.Background()
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0), Context: 64})
	s := sequence(t, e)
	want := eval(t, s, 1, 2, 3)
	var token *stages.TokenError
	var full *stages.ContextError
	if _, err := s.Eval(ctx, []int32{5, 320}); !errors.As(err, &token) || token.Index != 1 || token.Vocab != 320 {
		t.Errorf("token 320 of 320: %v", err)
	}
	if _, err := s.Eval(ctx, []int32{-1}); !errors.As(err, &token) {
		t.Errorf("token -1: %v", err)
	}
	if _, err := s.Eval(ctx, nil); !errors.Is(err, stages.ErrEmptyChunk) {
		t.Errorf("no tokens: %v", err)
	}
	if _, err := s.Eval(ctx, make([]int32, 62)); !errors.As(err, &full) || full.Len != 3 || full.Max != 64 {
		t.Errorf("62 tokens after 3 of 64: %v", err)
	}
	done, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Eval(done, []int32{1}); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if s.Len() != 3 || s.Err() != nil {
		t.Errorf("after refusals the sequence has %d positions and error %v, want 3 and none", s.Len(), s.Err())
	}
	got := eval(t, s, 4)
	s2 := sequence(t, e)
	if eval(t, s2, 1, 2, 3); !slices.Equal(eval(t, s2, 4), got) {
		t.Error("the sequence goes on differently after refusals")
	}
	if err := s.Reset(ctx); err != nil || s.Len() != 0 {
		t.Errorf("reset: %v, %d positions", err, s.Len())
	}
	if !slices.Equal(eval(t, s, 1, 2, 3), want) {
		t.Error("after reset the same tokens give other logits")
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if _, err := s.Eval(ctx, []int32{1}); !errors.Is(err, stages.ErrClosed) {
		t.Errorf("a closed sequence: %v", err)
	}
	if eval(t, s2, make([]int32, 60)...); s2.Len() != 64 {
		t.Errorf("a full context has %d positions, want 64", s2.Len())
	}
}

// TestBusy shows that a sequence takes one chunk at a time.
func TestBusy(t *testing.T) {
	ctx := context.Background()
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), ChunkRows: 4})
	s := sequence(t, e)
	ended := make(chan error, 1)
	long := prompt(1, 400, 512)
	go func() {
		_, err := s.Eval(ctx, long)
		ended <- err
	}()
	for rows := int64(0); rows == 0; {
		st, err := e.Stats(ctx)
		if err != nil {
			t.Fatal(err)
		}
		rows = st.Rows
	}
	if _, err := s.Eval(ctx, []int32{1}); !errors.Is(err, stages.ErrBusy) {
		t.Errorf("a second chunk: %v, want ErrBusy", err)
	}
	if err := s.Reset(ctx); !errors.Is(err, stages.ErrBusy) {
		t.Errorf("reset: %v, want ErrBusy", err)
	}
	if err := <-ended; err != nil || s.Len() != 400 {
		t.Errorf("the long chunk: %v, %d positions", err, s.Len())
	}
}
