package actors_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

var errBroken = errors.New("the disk is broken")

// breakable is a source that fails while it is broken.
type breakable struct {
	readpool.Source
	broken atomic.Bool
}

func (b *breakable) ReadExpert(layer, expert int, dst []byte) error {
	if b.broken.Load() {
		return errBroken
	}
	return b.Source.ReadExpert(layer, expert, dst)
}

// TestHeal lets a step of a sequence fail. From then on it answers nothing but what replaces its
// whole state, which heals it: the logits after that are those of a sequence that nothing happened
// to.
func TestHeal(t *testing.T) {
	ctx := context.Background()
	for _, name := range []string{fixtures.Qwen35MoEQ4, fixtures.Qwen3MoEQ4} {
		src := new(breakable)
		e := open(t, actors.WithReads(actors.Config{
			Model: fixtures.Packed(t, name, 0), ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 1 << 15,
		}, func(s readpool.Source) readpool.Source { src.Source = s; return src }))
		text, vocab := prompt(1, 30, e.Model().VocabSize), int32(e.Model().VocabSize)
		want := eval(t, sequence(t, e), append(slices.Clone(text), 5)...)
		for what, heal := range map[string]func(*actors.Sequence, []byte) error{
			"load":    func(s *actors.Sequence, raw []byte) error { return load(s, raw, actors.LoadOptions{}) },
			"restore": func(s *actors.Sequence, _ []byte) error { return s.RestoreTo(ctx, 30) },
			"rewind":  func(s *actors.Sequence, _ []byte) error { _, err := s.Rewind(ctx, 1000); return err },
			"resume": func(s *actors.Sequence, _ []byte) error {
				_, err := s.Resume(ctx, append(slices.Clone(text), 5))
				return err
			},
			"reset": func(s *actors.Sequence, _ []byte) error { return s.Reset(ctx) },
		} {
			s := sequence(t, e)
			eval(t, s, text...)
			raw := save(t, s, actors.SaveOptions{})
			if err := s.Checkpoint(ctx, 30); err != nil {
				t.Fatal(err)
			}
			src.broken.Store(true)
			for i := int32(0); s.Err() == nil; i++ { // until an expert is wanted that is in no slot
				if _, err := s.Eval(ctx, []int32{i % vocab}); err != nil && !errors.Is(err, errBroken) {
					t.Fatal(err)
				}
			}
			src.broken.Store(false)
			settle(t, e, text)
			refused(t, s)
			if err := heal(s, raw); err != nil || s.Err() != nil {
				t.Fatalf("%s, %s: %v, %v", name, what, err, s.Err())
			}
			rest := append(slices.Clone(text), 5)[s.Len():]
			if got := eval(t, s, rest...); !slices.Equal(got, want) {
				t.Errorf("%s: healed by %s at %d, other logits", name, what, 31-len(rest))
			}
			if what != "reset" && what != "resume" && len(rest) != 1 {
				t.Errorf("%s: %s went back to %d, want 30", name, what, 31-len(rest))
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// settle reads a text until that goes well: reads that failed before may still be on their way to
// whoever comes to wait for them.
func settle(t *testing.T, e *actors.Engine, text []int32) {
	s := sequence(t, e)
	for range 100 {
		_, err := s.Eval(context.Background(), text)
		if err == nil {
			return
		}
		if err := s.Reset(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the disk works again, but no text can be read")
}

// refused wants what needs a whole state to be refused with the poison and its cause.
func refused(t *testing.T, s *actors.Sequence) {
	t.Helper()
	ctx := context.Background()
	_, forked := s.Fork(ctx)
	_, saved := s.Save(ctx, new(bytes.Buffer), actors.SaveOptions{})
	_, evaluated := s.Eval(ctx, []int32{1})
	for what, err := range map[string]error{
		"eval": evaluated, "fork": forked, "save": saved, "checkpoint": s.Checkpoint(ctx, s.Len()), "truncate": s.Truncate(ctx, 0),
	} {
		var poison *stages.PoisonedError
		if !errors.As(err, &poison) || !errors.Is(err, errBroken) {
			t.Errorf("%s of a poisoned sequence: %v, want the poison and its cause", what, err)
		}
	}
}

// TestResumedFormOfLatentAttention resumes texts of latent attention that were read in the expanded
// form: what is left is read in the form of the whole text, so that the bits are those of reading
// all of it.
func TestResumedFormOfLatentAttention(t *testing.T) {
	ctx := context.Background()
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.DeepseekV3BF16, 0)})
	vocab := e.Model().VocabSize
	first := prompt(1, 100, vocab)
	if _, err := sequence(t, e).EvalChunk(ctx, actors.Chunk{Tokens: first, Remember: true}); err != nil {
		t.Fatal(err)
	}
	for _, kept := range []int{20, 64, 98, 99, 100} {
		text := append(slices.Clone(first[:kept]), prompt(2, 120-kept, vocab)...)
		s, whole := sequence(t, e), sequence(t, e)
		want := eval(t, whole, text...)
		if err := whole.Close(); err != nil {
			t.Fatal(err)
		}
		n, err := s.Resume(ctx, text)
		if err != nil || n != kept {
			t.Fatalf("%d tokens are taken over, %v, want %d", n, err, kept)
		}
		got, err := s.EvalChunk(ctx, actors.Chunk{Tokens: text[n:], Before: n})
		if err != nil || !slices.Equal(got.Logits, want) {
			t.Errorf("resumed at %d of %d: %v, or other logits", n, len(text), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
