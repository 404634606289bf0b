package actors_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestHistories edits sequences of two engines at random: tokens are appended, texts resumed,
// states kept, restored, cut, forked, saved, loaded and emptied. The plain model beside them is a
// list of tokens for each sequence: what they answer has the bits of a fresh reading of that list,
// positions and checkpoints are those of the model, and in the end no page is in use.
// MOEFLUX_HISTORIES says how many histories of each model; MOEFLUX_SEED tries one.
func TestHistories(t *testing.T) {
	n := testenv.Rounds(3, 12, 100)
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
	for _, name := range append(families, fixtures.DeepseekV3Q4) {
		for i, kv := range kvFormats {
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
	h.hybrid = h.engines[0].Model().Count(model.LinearAttention) > 0
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

func (h *history) length() int {
	if h.r.IntN(3) == 0 {
		return 1 + h.r.IntN(140)
	}
	return 1 + h.r.IntN(8)
}

func (h *history) appendTokens(x *edited) error {
	return h.eval(x, h.some(h.length()), 0, h.r.IntN(2) == 0)
}

// resume gives a sequence a text that begins as some text that was seen, and wants at least what is
// certain to be there.
func (h *history) resume(x *edited) error {
	var text []int32
	if len(h.texts) > 0 && h.r.IntN(4) > 0 {
		text = h.texts[h.r.IntN(len(h.texts))]
		text = text[:h.r.IntN(len(text)+1)]
	}
	if y := h.seqs[h.r.IntN(len(h.seqs))]; h.r.IntN(2) == 0 {
		text = y.tokens
	}
	text = append(slices.Clip(text), h.some(h.length())...)
	if len(text) > 250 {
		return nil
	}
	h.texts = append(h.texts, text)
	least := h.certain(x, text)
	n, err := x.s.Resume(ctx, text)
	if err != nil {
		return err
	}
	if n < least || n >= len(text) {
		return fmt.Errorf("%d of %d tokens need not be read, want at least %d, and one to be left", n, len(text), least)
	}
	h.counts["certain tokens"] += least
	if n <= len(x.tokens) && x.unknown <= n && slices.Equal(x.tokens[:n], text[:n]) {
		x.checkpoints = slices.DeleteFunc(slices.Clone(x.checkpoints), func(p int) bool { return p > n })
	} else {
		old := x.tokens
		x.checkpoints = slices.DeleteFunc(slices.Clone(x.checkpoints), func(p int) bool {
			return p > n || p > 0 && (x.unknown > 0 || !slices.Equal(old[:p], text[:p]))
		})
	}
	x.tokens, x.unknown = slices.Clone(text[:n]), 0
	return h.eval(x, text[n:], n, true)
}

// certain returns how much of a text is to be had for certain, without what was remembered.
func (h *history) certain(x *edited, text []int32) (best int) {
	most := len(text) - 1
	offer := func(tokens []int32) {
		n := 0
		for n < min(len(tokens), most) && tokens[n] == text[n] {
			n++
		}
		if h.hybrid && n < len(tokens) {
			return
		}
		best = max(best, n)
	}
	for _, y := range h.seqs {
		if y.e != x.e || y.unknown > 0 {
			continue
		}
		offer(y.tokens)
		for _, p := range y.checkpoints {
			offer(y.tokens[:p])
		}
	}
	return best
}

func (h *history) checkpoint(x *edited) error {
	pos := len(x.tokens)
	var full *stages.CheckpointMemoryError
	switch err := x.s.Checkpoint(ctx, pos); {
	case errors.As(err, &full) && h.tight:
		return nil
	case err != nil:
		return err
	}
	x.checkpoints = slices.DeleteFunc(slices.Clone(x.checkpoints), func(p int) bool { return p == pos })
	x.checkpoints = append(x.checkpoints, pos)
	for len(x.checkpoints) > x.most {
		i := slices.IndexFunc(x.checkpoints[:len(x.checkpoints)-1], func(p int) bool { return p > 0 })
		if i < 0 {
			break
		}
		x.checkpoints = slices.Delete(x.checkpoints, i, i+1)
	}
	var wrong *stages.CheckpointPosError
	if err := x.s.Checkpoint(ctx, pos+1); !errors.As(err, &wrong) || wrong.Len != pos {
		return fmt.Errorf("a checkpoint at %d of %d positions: %w", pos+1, pos, err)
	}
	return nil
}

// setMost changes how many checkpoints a sequence keeps, from the next one on.
func (h *history) setMost(x *edited) error {
	x.most = h.r.IntN(6)
	return x.s.SetMaxCheckpoints(ctx, x.most)
}

// cut takes the model back.
func (x *edited) cut(pos int) {
	x.tokens, x.unknown = slices.Clone(x.tokens[:pos]), min(x.unknown, pos)
	x.checkpoints = slices.DeleteFunc(slices.Clone(x.checkpoints), func(p int) bool { return p > pos })
}

func (h *history) restore(x *edited) error {
	// Budgets may have taken checkpoints since the model looked last.
	d, err := x.s.Describe(ctx)
	if err != nil {
		return err
	}
	var none *stages.NoCheckpointError
	if len(d.Checkpoints) == 0 || h.r.IntN(4) == 0 {
		pos := len(x.tokens) + 1
		if err := x.s.RestoreTo(ctx, pos); !errors.As(err, &none) || none.Pos != pos {
			return fmt.Errorf("no checkpoint at %d: %w", pos, err)
		}
		return nil
	}
	pos := d.Checkpoints[h.r.IntN(len(d.Checkpoints))]
	if err := x.s.RestoreTo(ctx, pos); err != nil {
		return err
	}
	x.cut(pos)
	return nil
}

func (h *history) forget(x *edited) error {
	pos := h.r.IntN(len(x.tokens) + 2)
	if n := len(x.checkpoints); n > 0 && h.r.IntN(2) == 0 {
		pos = x.checkpoints[h.r.IntN(n)]
	}
	x.checkpoints = slices.DeleteFunc(slices.Clone(x.checkpoints), func(p int) bool { return p == pos })
	return x.s.ForgetCheckpoint(ctx, pos)
}

func (h *history) truncate(x *edited) error {
	pos := h.r.IntN(len(x.tokens)+3) - 1
	to := min(max(pos, 0), len(x.tokens))
	err := x.s.Truncate(ctx, pos)
	var linear *stages.CannotTruncateLinear
	if h.hybrid && to > 0 && to < len(x.tokens) {
		if !errors.As(err, &linear) || linear.Pos != to || linear.PosMax != len(x.tokens) || linear.Nearest > to {
			return fmt.Errorf("truncate to %d of %d: %w", to, len(x.tokens), err)
		}
		h.counts["cannot truncate"]++
		return nil
	}
	if err == nil {
		x.cut(to)
	}
	return err
}

func (h *history) rewind(x *edited) error {
	pos := h.r.IntN(len(x.tokens)+3) - 1
	to := min(max(pos, 0), len(x.tokens))
	d, err := x.s.Describe(ctx)
	if err != nil {
		return err
	}
	least := to
	if h.hybrid && to < len(x.tokens) {
		least = 0
		for _, p := range d.Checkpoints {
			if p <= to {
				least = max(least, p)
			}
		}
	}
	got, err := x.s.Rewind(ctx, pos)
	if err != nil {
		return err
	}
	if got > to || got < least {
		return fmt.Errorf("rewound to %d, want %d to %d", got, least, to)
	}
	x.cut(got)
	return nil
}

// fork puts a fork in the place of another sequence of the engine, or of the sequence itself.
func (h *history) fork(x *edited) error {
	s, err := x.s.Fork(ctx)
	if err != nil {
		return err
	}
	y := &edited{s: s, e: x.e, tokens: slices.Clone(x.tokens), unknown: x.unknown, most: 4}
	for i, z := range h.seqs {
		if z != x && z.e == x.e && h.r.IntN(2) == 0 {
			h.seqs[i] = y
			if err := z.s.Close(); err != nil {
				return err
			}
			return h.check(y)
		}
	}
	return s.Close()
}

func (h *history) save(x *edited) error {
	plain := h.r.IntN(3) == 0
	if x.unknown > 0 {
		plain = true
	}
	f := file{raw: save(h.t, x.s, actors.SaveOptions{Plain: plain}), tokens: slices.Clone(x.tokens), plain: plain}
	h.files = append(h.files, f)
	return nil
}

func (h *history) load(x *edited) error {
	if len(h.files) == 0 {
		return nil
	}
	f := h.files[h.r.IntN(len(h.files))]
	o := actors.LoadOptions{InPlace: h.r.IntN(2) == 0}
	if f.plain {
		o.Accept = 1
	}
	if err := load(x.s, f.raw, o); err != nil {
		return err
	}
	old, oldUnknown := x.tokens, x.unknown
	x.tokens, x.unknown = slices.Clone(f.tokens), 0
	if f.plain {
		x.unknown = len(f.tokens)
	}
	x.checkpoints = slices.DeleteFunc(slices.Clone(x.checkpoints), func(p int) bool {
		return p > 0 && (x.unknown > 0 || oldUnknown > 0 || p > len(x.tokens) || !slices.Equal(old[:p], x.tokens[:p]))
	})
	return nil
}

func (h *history) reset(x *edited) error {
	x.tokens, x.unknown, x.checkpoints = nil, 0, nil
	return x.s.Reset(ctx)
}

// TestGenerateResumed generates after texts that begin alike: what was read is not read again, and
// the tokens are those of a sequence that reads all of it.
func TestGenerateResumed(t *testing.T) {
	for _, name := range families {
		e := open(t, actors.Config{Model: fixtures.Packed(t, name, 0), ChunkRows: rowsOfSteps(name, 16)})
		vocab := e.Model().VocabSize
		system := prompt(1, 80, vocab)
		text := system
		for turn := range 3 {
			text = append(slices.Clone(text), prompt(uint64(turn)+2, 10, vocab)...)
			alone := sequence(t, e)
			want := generated(t, alone, text, actors.GenerateOptions{MaxTokens: 5, IgnoreEOS: true})
			if err := alone.Close(); err != nil {
				t.Fatal(err)
			}
			reused := -1
			s := sequence(t, e) // another one each time: the one before is closed
			got := generated(t, s, text, actors.GenerateOptions{MaxTokens: 5, IgnoreEOS: true, Resume: true, Reused: &reused})
			if !slices.Equal(got, want) {
				t.Errorf("%s, turn %d: %v, want %v", name, turn, got, want)
			}
			if least := len(text) - 11; turn > 0 && reused < least {
				t.Errorf("%s, turn %d: %d of %d tokens were not read again, want %d at least", name, turn, reused, len(text), least)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			text = append(slices.Clone(text), got...)
			if turn == 0 {
				text = text[:len(text)-5] // as if what was thought were left out
			}
		}
		st, err := e.Stats(ctx)
		if err != nil || st.States.Resumed != 3 || st.States.Reused < 180 || st.States.Remembered < 3 {
			t.Errorf("%s: %+v, %v", name, st.States, err)
		}
		if _, err := s0(t, e, text); err == nil || !strings.Contains(err.Error(), "Earlier") && !strings.Contains(err.Error(), "earlier") {
			t.Errorf("%s: resuming with an earlier text: %v", name, err)
		}
	}
}

func s0(t *testing.T, e *actors.Engine, text []int32) (n int, err error) {
	for _, err = range sequence(t, e).Generate(ctx, text, actors.GenerateOptions{MaxTokens: 1, Resume: true, Earlier: text}) {
		n++
	}
	return n, err
}

func generated(t *testing.T, s *actors.Sequence, text []int32, o actors.GenerateOptions) (ids []int32) {
	t.Helper()
	for id, err := range s.Generate(ctx, text, o) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}
