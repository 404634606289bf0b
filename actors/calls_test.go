package actors_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/stages/sample"
	"github.com/moeflux/moeflux-actor/tracing/recorder"
)

// calls is one call of every method. A method without a context must not wait at all, but Close of
// a Sequence, which has a patience of its own.
var calls = map[string]func(context.Context, *hungEngine, *actors.Sequence) error{
	"Engine.BeginCall": func(ctx context.Context, h *hungEngine, _ *actors.Sequence) error {
		_, call := h.e.BeginCall(ctx, actors.CallStart{Operation: "chat"})
		call.Token()
		call.End(actors.CallEnd{})
		return nil
	},
	"Engine.Close": func(ctx context.Context, h *hungEngine, _ *actors.Sequence) error { return h.e.Close(ctx) },
	"Engine.DumpRecords": func(ctx context.Context, h *hungEngine, _ *actors.Sequence) error {
		if _, err := h.e.DumpRecords(ctx, "a test wants it"); !errors.Is(err, recorder.ErrNoFolder) {
			return fmt.Errorf("without a folder: %v", err)
		}
		return nil
	},
	"Engine.Fingerprint": func(ctx context.Context, h *hungEngine, _ *actors.Sequence) error {
		_, err := h.e.Fingerprint(ctx)
		return err
	},
	"Engine.FormerFingerprint": func(ctx context.Context, h *hungEngine, _ *actors.Sequence) error {
		_, err := h.e.FormerFingerprint(ctx)
		return err
	},
	"Engine.ForgetExperts": func(ctx context.Context, h *hungEngine, _ *actors.Sequence) error { return h.e.ForgetExperts(ctx) },
	"Engine.ForgetTexts":   func(ctx context.Context, h *hungEngine, _ *actors.Sequence) error { return h.e.ForgetTexts(ctx) },
	"Engine.Info":          func(_ context.Context, h *hungEngine, _ *actors.Sequence) error { h.e.Info(); return nil },
	"Engine.LogValue":      func(_ context.Context, h *hungEngine, _ *actors.Sequence) error { h.e.LogValue(); return nil },
	"Engine.Model":         func(_ context.Context, h *hungEngine, _ *actors.Sequence) error { h.e.Model(); return nil },
	"Engine.NewSequence": func(ctx context.Context, h *hungEngine, _ *actors.Sequence) error {
		return h.made(h.e.NewSequence(ctx))
	},
	"Engine.NewSequenceFor": func(ctx context.Context, h *hungEngine, _ *actors.Sequence) error {
		return h.made(h.e.NewSequenceFor(ctx, actors.SequenceOptions{Class: actors.Interactive, Key: "k"}))
	},
	"Engine.PID":        func(_ context.Context, h *hungEngine, _ *actors.Sequence) error { h.e.PID(); return nil },
	"Engine.RecordMeta": func(_ context.Context, h *hungEngine, _ *actors.Sequence) error { h.e.RecordMeta(); return nil },
	"Engine.Recording": func(ctx context.Context, h *hungEngine, _ *actors.Sequence) error {
		_, err := h.e.Recording(ctx)
		return err
	},
	"Engine.Records": func(_ context.Context, h *hungEngine, _ *actors.Sequence) error { h.e.Records(); return nil },
	"Engine.ResizeSlots": func(ctx context.Context, h *hungEngine, _ *actors.Sequence) error {
		_, err := h.e.ResizeSlots(ctx, 4)
		return err
	},
	"Engine.Shape": func(_ context.Context, h *hungEngine, _ *actors.Sequence) error { h.e.Shape(); return nil },
	"Engine.Stats": func(ctx context.Context, h *hungEngine, _ *actors.Sequence) error {
		_, err := h.e.Stats(ctx)
		return err
	},

	"Sequence.Checkpoint": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error { return s.Checkpoint(ctx, s.Len()) },
	"Sequence.Close":      func(_ context.Context, _ *hungEngine, s *actors.Sequence) error { return s.Close() },
	"Sequence.Declare":    func(_ context.Context, _ *hungEngine, s *actors.Sequence) error { s.Declare(100); return nil },
	"Sequence.Describe": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error {
		_, err := s.Describe(ctx)
		return err
	},
	"Sequence.Err": func(_ context.Context, _ *hungEngine, s *actors.Sequence) error { _ = s.Err(); return nil },
	"Sequence.Eval": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error {
		_, err := s.Eval(ctx, checkText)
		return err
	},
	"Sequence.EvalChunk": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error {
		_, err := s.EvalChunk(ctx, actors.Chunk{Tokens: checkText, Remember: true})
		return err
	},
	"Sequence.ForgetCheckpoint": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error { return s.ForgetCheckpoint(ctx, 3) },
	"Sequence.Fork":             func(ctx context.Context, h *hungEngine, s *actors.Sequence) error { return h.made(s.Fork(ctx)) },
	"Sequence.Generate": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error {
		for _, err := range s.Generate(ctx, []int32{1, 2, 3}, actors.GenerateOptions{MaxTokens: 3, IgnoreEOS: true, Resume: true}) {
			if err != nil {
				return err
			}
		}
		return nil
	},
	"Sequence.ID":  func(_ context.Context, _ *hungEngine, s *actors.Sequence) error { s.ID(); return nil },
	"Sequence.Len": func(_ context.Context, _ *hungEngine, s *actors.Sequence) error { s.Len(); return nil },
	"Sequence.Load": func(ctx context.Context, h *hungEngine, s *actors.Sequence) error {
		return s.Load(ctx, h.reader(), int64(len(h.file)), actors.LoadOptions{})
	},
	"Sequence.Park": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error { return s.Park(ctx) },
	"Sequence.Predictions": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error {
		_, err := s.Predictions(ctx, 0)
		return err
	},
	"Sequence.Reset":     func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error { return s.Reset(ctx) },
	"Sequence.RestoreTo": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error { return s.RestoreTo(ctx, 3) },
	"Sequence.Resume": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error {
		_, err := s.Resume(ctx, checkText)
		return err
	},
	"Sequence.Rewind": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error {
		_, err := s.Rewind(ctx, 3)
		return err
	},
	"Sequence.Save": func(ctx context.Context, h *hungEngine, s *actors.Sequence) error {
		_, err := s.Save(ctx, h.writer(), actors.SaveOptions{})
		return err
	},
	"Sequence.SaveTo": func(ctx context.Context, h *hungEngine, s *actors.Sequence) error {
		_, err := s.SaveTo(ctx, make([]byte, len(h.file)+1<<20), actors.SaveOptions{})
		return err
	},
	"Sequence.SetMaxCheckpoints": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error { return s.SetMaxCheckpoints(ctx, 2) },
	"Sequence.Size": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error {
		_, err := s.Size(ctx, actors.SaveOptions{})
		return err
	},
	"Sequence.Store":    func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error { return s.Store(ctx) },
	"Sequence.Truncate": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error { return s.Truncate(ctx, 0) },
	"Sequence.Use": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error {
		return s.Use(ctx, checkText, func([]float32) error { return nil })
	},
	"Sequence.UseBest": func(ctx context.Context, _ *hungEngine, s *actors.Sequence) error {
		return s.UseBest(ctx, checkText, func(sample.Best) error { return nil })
	},
}

// TestEveryMethodIsCalled fails for a method of Engine or Sequence that calls does not have.
func TestEveryMethodIsCalled(t *testing.T) {
	methods := make(map[string]bool)
	for _, of := range []reflect.Type{reflect.TypeFor[*actors.Engine](), reflect.TypeFor[*actors.Sequence]()} {
		for i := range of.NumMethod() {
			methods[of.Elem().Name()+"."+of.Method(i).Name] = true
		}
	}
	for name := range methods {
		if calls[name] == nil {
			t.Errorf("%s is not called", name)
		}
	}
	for name := range calls {
		if !methods[name] {
			t.Errorf("there is no %s", name)
		}
	}
}
