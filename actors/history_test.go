package actors_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// TestHistories edits sequences of two engines at random: tokens are appended, texts resumed,
// states kept, restored, cut, forked, saved, loaded and emptied. The plain model beside them is a
// list of tokens for each sequence: what they answer has the bits of a fresh reading of that list,
// positions and checkpoints are those of the model, and in the end no page is in use.
// MOEFLUX_HISTORIES says how many histories of each model; MOEFLUX_SEED tries one.
func TestHistories(t *testing.T) {
	n := testenv.Rounds(1, 2, 100)
	if v := os.Getenv("MOEFLUX_HISTORIES"); v != "" {
		n, _ = strconv.Atoi(v)
	}
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = uint64(i) + 1
	}
	if v := os.Getenv("MOEFLUX_SEED"); v != "" {
		seed, _ := strconv.ParseUint(v, 10, 64)
		seeds = []uint64{seed}
	}
	for k, name := range append(families, fixtures.DeepseekV3Q4) {
		for i, kv := range kvFormats {
			if testenv.Rounds(0, 0, 1) == 0 && (k%len(kvFormats) != i || !testenv.Share(t, name, testenv.Rounds(4, 2, 1))) {
				continue
			}
			t.Run(fmt.Sprintf("%s/kv=%s", name, kv), func(t *testing.T) { histories(t, name, kv, seeds[:(len(seeds)+i)/(1+i)]) })
		}
	}
}

// histories lives histories of one model.
func histories(t *testing.T, name string, kv actors.KVFormat, seeds []uint64) {
	dir := fixtures.Packed(t, name, 0)
	dev := device(t, 1)
	oracle := &oracle{e: open(t, actors.Config{Model: dir, Device: dev, KV: kv, ChunkRows: rowsOfSteps(name, 64), RingDepth: 1}), known: make(map[string][]float32)}
	oracle.s = sequence(t, oracle.e)
	counts := make(map[string]int)
	for _, seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 8))
		cfg := actors.Config{Model: dir, Device: dev, KV: kv, RingDepth: 1 + r.IntN(3), ChunkRows: rowsOfSteps(name, 1+r.IntN(70))}
		if r.IntN(2) == 0 { // room for few states
			cfg.CheckpointMemory = 1 + int64(r.IntN(6))*oracle.e.Info().StateBytes
		}
		if err := live(t, cfg, r, oracle, counts); err != nil {
			t.Fatalf("seed %d, depth %d, chunks of %d, %d bytes for checkpoints: %v", seed, cfg.RingDepth, cfg.ChunkRows, cfg.CheckpointMemory, err)
		}
	}
	t.Logf("%d histories: %v; %d texts read for comparison", len(seeds), counts, len(oracle.known))
}

// oracle tells the logits after a text by reading it anew.
type oracle struct {
	e     *actors.Engine
	s     *actors.Sequence
	known map[string][]float32
}

func (o *oracle) after(text []int32) ([]float32, error) {
	key := fmt.Sprint(text)
	if l := o.known[key]; l != nil {
		return l, nil
	}
	if err := o.s.Reset(context.Background()); err != nil {
		return nil, err
	}
	l, err := o.s.Eval(context.Background(), text)
	o.known[key] = l
	return l, err
}

// edited is a sequence and what it must hold.
type edited struct {
	s           *actors.Sequence
	e           *actors.Engine
	tokens      []int32
	unknown     int   // first tokens, which a plain file did not tell
	checkpoints []int // in the order of keeping
	most        int   // checkpoints
}

// history is one run.
type history struct {
	t       *testing.T
	r       *rand.Rand
	oracle  *oracle
	engines []*actors.Engine
	seqs    []*edited
	files   []file
	texts   [][]int32
	hybrid  bool
	windows bool // texts can be cut within what layers with a window keep, see TestWindowRewind
	tight   bool // checkpoints may go for want of memory
	counts  map[string]int
}

type file struct {
	raw    []byte
	tokens []int32
	plain  bool
}

var ctx = context.Background()

// live lives one history.
func live(t *testing.T, cfg actors.Config, r *rand.Rand, o *oracle, counts map[string]int) error {
	h := &history{t: t, r: r, oracle: o, counts: counts, tight: cfg.CheckpointMemory > 0}
	for range 2 {
		e, err := actors.Open(ctx, cfg)
		if err != nil {
			return err
		}
		defer e.Close(context.Background())
		h.engines = append(h.engines, e)
	}
	h.hybrid = h.engines[0].Info().StateBytes > 0
	h.windows = h.engines[0].Model().Sliding != nil
	for i := range 4 {
		s, err := h.engines[i%2].NewSequence(ctx)
		if err != nil {
			return err
		}
		h.seqs = append(h.seqs, &edited{s: s, e: h.engines[i%2], most: 4})
	}
	ops := []struct {
		name   string
		weight int
		do     func(*edited) error
	}{
		{"append", 6, h.appendTokens}, {"resume", 6, h.resume}, {"checkpoint", 3, h.checkpoint}, {"restore", 3, h.restore}, {"forget", 1, h.forget},
		{"truncate", 3, h.truncate}, {"rewind", 2, h.rewind}, {"fork", 2, h.fork}, {"save", 2, h.save}, {"load", 2, h.load}, {"reset", 1, h.reset}, {"cap", 1, h.setMost},
	}
	var weighted []int
	for i, op := range ops {
		weighted = append(weighted, slices.Repeat([]int{i}, op.weight)...)
	}
	for step := range 60 {
		op, x := ops[weighted[r.IntN(len(weighted))]], h.seqs[r.IntN(len(h.seqs))]
		err := op.do(x)
		if err == nil {
			err = h.check(x)
		}
		if err != nil {
			return fmt.Errorf("step %d, %s of sequence %d: %w", step, op.name, x.s.ID(), err)
		}
		h.counts[op.name]++
	}
	return h.end()
}

// end closes everything and wants all pages back.
func (h *history) end() error {
	for _, x := range h.seqs {
		if err := x.s.Close(); err != nil {
			return err
		}
	}
	for _, e := range h.engines {
		before, err := e.Stats(ctx)
		if err != nil {
			return err
		}
		if before.States.KeptBytes > before.States.KeptMax {
			return fmt.Errorf("%+v: more is kept than may be", before.States)
		}
		h.counts["remembered"] += int(before.States.Remembered)
		h.counts["evicted"] += int(before.States.Evicted)
		h.counts["reused tokens"] += int(before.States.Reused)
		if err := e.ForgetTexts(ctx); err != nil {
			return err
		}
		st, err := e.Stats(ctx)
		if err != nil {
			return err
		}
		if st.PagesUsed != 0 || st.States.Kept != 0 || st.States.KeptBytes != 0 {
			return fmt.Errorf("everything is closed, but %d pages are in use, %+v is kept", st.PagesUsed, st.States)
		}
	}
	return nil
}

// check compares a sequence with what it must hold: by asking it, and now and then by one more
// token.
func (h *history) check(x *edited) error {
	d, err := x.s.Describe(ctx)
	if err != nil {
		return err
	}
	if d.PosMax != len(x.tokens) || x.s.Len() != len(x.tokens) {
		return fmt.Errorf("it has %d positions, and thinks %d, want %d", d.PosMax, x.s.Len(), len(x.tokens))
	}
	for i, t := range d.Tokens {
		if t != x.tokens[i] && !(t < 0 && i < x.unknown) || t >= 0 && i < x.unknown {
			return fmt.Errorf("token %d is %d, want %d, of which %d are not known", i, t, x.tokens[i], x.unknown)
		}
	}
	if h.tight { // those that are protected stay for certain only in number
		x.checkpoints = slices.DeleteFunc(x.checkpoints, func(p int) bool { return !slices.Contains(d.Checkpoints, p) })
	}
	if !slices.Equal(d.Checkpoints, x.checkpoints) {
		return fmt.Errorf("its checkpoints are %v, want %v", d.Checkpoints, x.checkpoints)
	}
	if h.r.IntN(3) == 0 {
		return h.eval(x, h.some(1), 0, false)
	}
	return nil
}

// some returns random tokens of a small vocabulary, so that texts have beginnings in common.
func (h *history) some(n int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = int32(h.r.IntN(3))
	}
	return tokens
}

// eval appends tokens and compares the logits.
func (h *history) eval(x *edited, tokens []int32, before int, remember bool) error {
	if len(x.tokens)+len(tokens) > 250 {
		return nil
	}
	var at actors.Pos
	if h.r.IntN(2) == 0 {
		at = actors.At(len(x.tokens))
	}
	x.tokens = append(slices.Clip(x.tokens), tokens...)
	out, err := x.s.EvalChunk(ctx, actors.Chunk{Tokens: tokens, Pos: at, Before: before, Remember: remember})
	if err != nil {
		return err
	}
	want, err := h.oracle.after(x.tokens)
	if err != nil {
		return err
	}
	if !slices.Equal(out.Logits, want) {
		return fmt.Errorf("logits after %d tokens, %d of them new, differ from those of a fresh reading", len(x.tokens), len(tokens))
	}
	return nil
}
