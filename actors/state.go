package actors

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/stages"
)

// SaveOptions say how a state is written. The zero value writes what Load takes without options.
type SaveOptions struct {
	// Plain leaves the seal out: exactly another program's file, in which damage shows only by
	// accident.
	Plain bool
	// Version is the version of the format: snapshot.Version1 or snapshot.Version2. 0 means the
	// oldest that will do.
	Version int
	// Note goes into the seal, for the program that loads the state: see snapshot.Seal.
	Note []byte
}

// LoadOptions say what is accepted.
type LoadOptions struct {
	Accept snapshot.Accept // how much a file must prove
	// AnyModel takes a state of another model of the same shape, or of another quantization.
	AnyModel bool
	// InPlace gives the sequence's own state up first where Config.StateMemory has no room for
	// both. The file is read and verified as a whole before that. Should the loading fail then, for
	// example because the file cannot be read again, the sequence is poisoned (stages.ErrGivenUp);
	// its checkpoints stay.
	InPlace bool
}

// Shape returns what a state of the model consists of.
func (e *Engine) Shape() *snapshot.Shape { return snapshot.ShapeOf(e.model) }

// writing returns how to write a state of these tokens.
func (e *Engine) writing(tokens []int32, o SaveOptions) (snapshot.WriteOptions, error) {
	w := snapshot.WriteOptions{Positions: len(tokens), Version: o.Version}
	if o.Plain {
		return w, nil
	}
	of, err := printOf(e.identity.own)
	if err != nil {
		return w, err
	}
	w.Seal = &snapshot.Seal{Fingerprint: of, Note: o.Note}
	if allKnown(tokens) {
		w.Seal.Tokens = tokens
	}
	return w, nil
}

// allKnown reports whether every token of a state is known.
func allKnown(tokens []int32) bool {
	for _, t := range tokens {
		if t < 0 {
			return false
		}
	}
	return true
}

// Size returns how many bytes Save would write now.
func (s *Sequence) Size(ctx context.Context, o SaveOptions) (int64, error) {
	d, err := s.change(ctx, func(to stages.Caller) stages.Message { return &stages.DescribeSequence{Seq: s.id, Caller: to} })
	if err != nil {
		return 0, err
	}
	if d.Poison != nil {
		return 0, d.Poison
	}
	return bounded(ctx, s.e, func() (int64, error) {
		w, err := s.e.writing(d.Tokens, o)
		if err != nil {
			return 0, err
		}
		return snapshot.Size(s.e.Shape(), w)
	})
}

// Save writes the sequence's state to w and returns the number of bytes. What is written is the
// state of the moment of the call, between two chunks; the sequence may go on meanwhile. Keys and
// values are read where they lie; until Save returns there is a copy of the recurrent state, which
// counts against Config.StateMemory. After an error what was written is not a snapshot.
//
// w is called by another goroutine. A Write that hangs holds Save no longer than ctx, and nothing
// is written after it; but until it returns, w is in use.
func (s *Sequence) Save(ctx context.Context, w io.Writer, o SaveOptions) (n int64, err error) {
	return s.reading(ctx, o, func(src *rows, how snapshot.WriteOptions) (int64, error) {
		return snapshot.Write(&wantedWriter{src, w}, s.e.Shape(), src, how)
	})
}

// SaveTo is Save to the beginning of buf, which it does not touch after it has returned. If buf is
// too small nothing is written, and the error is a *snapshot.Error of kind
// snapshot.ErrBufferTooSmall, whose Got is the size of buf and whose Want is the size that is
// needed.
func (s *Sequence) SaveTo(ctx context.Context, buf []byte, o SaveOptions) (n int, err error) {
	lent := &lentBuffer{rest: buf}
	defer lent.takeBack()
	written, err := s.reading(ctx, o, func(src *rows, how snapshot.WriteOptions) (int64, error) {
		need, err := snapshot.Size(s.e.Shape(), how)
		if err != nil {
			return 0, err
		}
		if need > int64(len(buf)) {
			_, err := snapshot.Encode(buf, s.e.Shape(), src, how) // says so
			return 0, err
		}
		return snapshot.Write(lent, s.e.Shape(), src, how)
	})
	return int(written), err
}

// reading freezes the sequence's state for as long as write reads it.
func (s *Sequence) reading(ctx context.Context, o SaveOptions, write func(*rows, snapshot.WriteOptions) (int64, error)) (int64, error) {
	end, err := s.e.exchange(ctx)
	if err != nil {
		return 0, err
	}
	return bounded(ctx, s.e, func() (int64, error) {
		defer end()
		if s.isClosed() {
			return 0, stages.ErrClosed
		}
		state, err := s.e.askState(ctx, func(to stages.Caller) stages.Message { return &stages.FreezeSequence{Seq: s.id, Caller: to} })
		if err != nil {
			return 0, err
		}
		defer s.e.rt.GiveBack(&stages.ReleaseState{State: state.State})
		how, err := s.e.writing(state.Tokens, o)
		if err != nil {
			return 0, err
		}
		return write(s.e.rowsOf(ctx, state), how)
	})
}

// Load makes the sequence's state that of a snapshot of size bytes. If the sequence is busy, it
// says so before it reads anything; then the sequence is busy with the loading. The file's form and
// seal are checked against the model before anything is made of it, and the new state takes the old
// one's place only when all of it is here: after an error the sequence is as before, unless
// LoadOptions.InPlace allows otherwise. Load heals a poisoned sequence, and forgets checkpoints of
// other texts. The errors are *snapshot.Error, *stages.StateMemoryError, or those of r.
//
// r is called by another goroutine. A ReadAt that hangs holds Load no longer than ctx, and is the
// last one; but until it returns, r is in use and the sequence busy.
func (s *Sequence) Load(ctx context.Context, r io.ReaderAt, size int64, o LoadOptions) error {
	end, err := s.e.exchange(ctx)
	if err != nil {
		return err
	}
	_, err = bounded(ctx, s.e, func() (struct{}, error) {
		defer end()
		return struct{}{}, s.load(ctx, r, size, o)
	})
	return err
}

// load is Load without patience.
func (s *Sequence) load(ctx context.Context, r io.ReaderAt, size int64, o LoadOptions) error {
	if s.isClosed() {
		return stages.ErrClosed
	}
	d, err := s.changeOn(ctx, func(to stages.Caller) stages.Message { return &stages.DescribeSequence{Seq: s.id, Caller: to} })
	switch {
	case err != nil:
		return err
	case d.Busy:
		return stages.ErrBusy
	}
	file, err := s.e.openState(&wantedReader{ctx, s.e, r}, size, o)
	if err != nil {
		return err
	}
	draft, err := s.draft(ctx, file, o)
	if err != nil {
		return err
	}
	return s.adopt(ctx, draft, tokensOf(file), file.Fill)
}

// adopt fills a draft and puts it in the place of the sequence's state.
func (s *Sequence) adopt(ctx context.Context, draft *stages.StateReady, tokens []int32, fill func(snapshot.Target) error) error {
	err := fill(s.e.rowsOf(ctx, draft))
	if err == nil {
		_, err = s.changeOn(ctx, func(to stages.Caller) stages.Message {
			return &stages.AdoptState{Seq: s.id, State: draft.State, Tokens: slices.Clone(tokens), Caller: to}
		})
	}
	if err != nil { // the draft is still ours; if it was adopted after all, its name means nothing
		_, _ = s.changeOn(context.WithoutCancel(ctx), func(to stages.Caller) stages.Message {
			return &stages.ReleaseState{State: draft.State, Caller: to}
		})
	}
	return err
}

// draft asks for a state to be filled from a file.
func (s *Sequence) draft(ctx context.Context, file *snapshot.File, o LoadOptions) (*stages.StateReady, error) {
	ask := func(inPlace bool) (*stages.StateReady, error) {
		return s.e.askState(ctx, func(to stages.Caller) stages.Message {
			return &stages.DraftState{Seq: s.id, Positions: file.Positions(), InPlace: inPlace, AtOnce: o.InPlace && !inPlace, Caller: to}
		})
	}
	draft, err := ask(false)
	if _, full := errors.AsType[*stages.StateMemoryError](err); !full || !o.InPlace {
		return draft, err
	}
	if err := file.Verify(); err != nil && !(errors.Is(err, snapshot.ErrUnsealed) && o.Accept != snapshot.Sealed) {
		return nil, err
	}
	if draft, err = ask(true); err != nil { // perhaps with the old state gone
		_, _ = s.changeOn(context.WithoutCancel(ctx), func(to stages.Caller) stages.Message {
			return &stages.DescribeSequence{Seq: s.id, Caller: to}
		})
	}
	return draft, err
}

// tokensOf returns the token ids of a file's positions, -1 where the file does not have them.
func tokensOf(file *snapshot.File) []int32 {
	tokens := make([]int32, file.Positions())
	seal := file.Seal()
	for i := range tokens {
		tokens[i] = -1
		if seal != nil && len(seal.Tokens) == len(tokens) {
			tokens[i] = seal.Tokens[i]
		}
	}
	return tokens
}

// askState asks for a state that the caller reads or fills. One that comes after ctx has ended is
// given back.
func (e *Engine) askState(ctx context.Context, message func(stages.Caller) stages.Message) (*stages.StateReady, error) {
	a, err := e.rt.Ask(ctx, stages.Sequencer, message, func(a stages.Message) {
		if late := a.(*stages.StateReady); late.Err == nil {
			e.rt.GiveBack(&stages.ReleaseState{State: late.State})
		}
	})
	if err != nil {
		return nil, err
	}
	state := a.(*stages.StateReady)
	return state, state.Err
}
