package actors_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestWaitingEnds lets every method that needs memory wait for it, since two texts that have
// declared an end have all: it ends with its context, nobody waits any more then, and what was
// asked for was not done. When one of the texts is closed, it is.
func TestWaitingEnds(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	ample := open(t, actors.Config{Model: dir, Context: 64})
	donor := sequence(t, ample)
	eval(t, donor, 1, 2, 3)
	file := save(t, donor, actors.SaveOptions{})
	info := ample.Info()
	one := info.StateBytes + 64*info.KVBytesPerPos
	tokens := []int32{4, 5}
	for _, c := range []struct {
		name string
		do   func(ctx context.Context, fresh, has *actors.Sequence) error
	}{
		{"Eval", func(ctx context.Context, s, _ *actors.Sequence) error { _, err := s.Eval(ctx, tokens); return err }},
		{"EvalChunk", func(ctx context.Context, s, _ *actors.Sequence) error {
			_, err := s.EvalChunk(ctx, actors.Chunk{Tokens: tokens, Until: 9})
			return err
		}},
		{"Use", func(ctx context.Context, s, _ *actors.Sequence) error {
			return s.Use(ctx, tokens, func([]float32) error { return nil })
		}},
		{"Generate", func(ctx context.Context, s, _ *actors.Sequence) error {
			for _, err := range s.Generate(ctx, tokens, actors.GenerateOptions{MaxTokens: 3, IgnoreEOS: true}) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"Resume", func(ctx context.Context, s, _ *actors.Sequence) error {
			_, err := s.Resume(ctx, []int32{1, 2, 3, 4})
			return err
		}},
		{"Load", func(ctx context.Context, s, _ *actors.Sequence) error {
			return s.Load(ctx, bytes.NewReader(file), int64(len(file)), actors.LoadOptions{})
		}},
		{"Fork", func(ctx context.Context, _, has *actors.Sequence) error {
			s, err := has.Fork(ctx)
			if err == nil {
				err = s.Close()
			}
			return err
		}},
		{"Save", func(ctx context.Context, _, has *actors.Sequence) error {
			_, err := has.Save(ctx, new(bytes.Buffer), actors.SaveOptions{})
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := open(t, actors.Config{Model: dir, Context: 64, StateMemory: 2 * one})
			first, second, fresh := sequence(t, e), sequence(t, e), sequence(t, e)
			for _, s := range []*actors.Sequence{first, second} {
				s.Declare(10)
				eval(t, s, 1, 2, 3)
			}
			began := time.Now()
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			defer cancel()
			err := c.do(short, fresh, first)
			if took := time.Since(began); !errors.Is(err, context.DeadlineExceeded) || took < 100*time.Millisecond || took > 2*time.Second {
				t.Errorf("%v after %v, want its deadline", err, took)
			}
			st, err := e.Stats(ctx)
			if a := st.Admission; err != nil || a.Waited != 1 || a.Waiting != 0 || a.Sequences != 2 {
				t.Errorf("%+v, %v", a, err)
			}
			if d, err := fresh.Describe(ctx); err != nil || d.PosMax != 0 || fresh.Err() != nil {
				t.Errorf("the sequence stands at %d, %v, %v", d.PosMax, err, fresh.Err())
			}
			ended := make(chan error, 1)
			go func() { ended <- c.do(ctx, fresh, first) }()
			for st := new(stages.Stats); st.Admission.Waiting == 0; time.Sleep(time.Millisecond) {
				if st, err = e.Stats(ctx); err != nil {
					t.Fatal(err)
				}
				if time.Since(began) > 10*time.Second {
					t.Fatal("it does not wait")
				}
			}
			if err := second.Close(); err != nil {
				t.Error(err)
			}
			if err := <-ended; err != nil {
				t.Errorf("with memory: %v", err)
			}
		})
	}
}
