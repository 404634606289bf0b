package actors_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestLoadRefused shows that whatever is wrong with a file, or happens on the way, the sequence is
// as before and goes on, and no page is lost.
func TestLoadRefused(t *testing.T) {
	ctx := context.Background()
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	info := open(t, actors.Config{Model: dir}).Info()
	page := info.KVBytesPerPos * 64
	e := open(t, actors.Config{Model: dir, Context: 128, StateMemory: 5*page + 3*info.StateBytes})
	s, other := sequence(t, e), sequence(t, e)
	text := prompt(5, 100, 512)
	eval(t, s, text...)
	raw := save(t, s, actors.SaveOptions{})
	next := eval(t, s, 7)
	eval(t, other, 1, 2, 3)
	bad := func(at int) []byte {
		b := slices.Clone(raw)
		b[at] ^= 4
		return b
	}
	foreign, err := snapshot.Inspect(bytes.NewReader(raw), int64(len(raw)))
	if err != nil || foreign.Seal() == nil || !slices.Equal(foreign.Seal().Tokens, text) {
		t.Fatalf("the seal has not the text's tokens: %v", err)
	}
	broken := errors.New("the disk is broken")
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for what, c := range map[string]struct {
		try  func() error
		want error
	}{
		"a header of another model": {func() error { return load(other, bad(8), actors.LoadOptions{}) }, snapshot.ErrShape},
		"a body with a flipped bit": {func() error { return load(other, bad(len(raw)/2), actors.LoadOptions{}) }, snapshot.ErrChecksum},
		"cut short":                 {func() error { return load(other, raw[:len(raw)-1], actors.LoadOptions{}) }, snapshot.ErrTruncated},
		"a reader that fails": {func() error {
			return other.Load(ctx, &failingReader{Reader: bytes.NewReader(raw), from: int64(len(raw)) / 2, err: broken}, int64(len(raw)), actors.LoadOptions{})
		}, broken},
		"a caller that has gone": {func() error { return other.Load(gone, bytes.NewReader(raw), int64(len(raw)), actors.LoadOptions{}) }, context.Canceled},
		"a writer that fails":    {func() error { _, err := s.Save(ctx, failingWriter{broken}, actors.SaveOptions{}); return err }, broken},
	} {
		if err := c.try(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
		if s.Len() != 101 || other.Len() != 3 || s.Err() != nil || other.Err() != nil {
			t.Fatalf("%s: %d and %d positions, errors %v and %v", what, s.Len(), other.Len(), s.Err(), other.Err())
		}
	}
	// Five pages are there. The first sequence has two, and the other two when it has loaded; a
	// draft needs two more.
	if err := load(other, raw, actors.LoadOptions{}); err != nil || !slices.Equal(eval(t, other, 7), next) {
		t.Errorf("with pages: %v, or other logits", err)
	}
	var full *stages.StateMemoryError
	if err := load(s, raw, actors.LoadOptions{}); !errors.As(err, &full) || full.Pages != 2 || full.States != 1 || full.Used != 4*page+2*info.StateBytes {
		t.Errorf("no pages for a draft: %v", err)
	}
	if s.Len() != 101 {
		t.Errorf("%d positions", s.Len())
	}
	// In place there is room; a file that is damaged is found out before the old state goes.
	if err := load(s, bad(len(raw)/2), actors.LoadOptions{InPlace: true}); !errors.Is(err, snapshot.ErrChecksum) || s.Len() != 101 || s.Err() != nil {
		t.Errorf("a damaged file in place: %v, %d positions, %v", err, s.Len(), s.Err())
	}
	once := &failingReader{Reader: bytes.NewReader(raw), from: int64(len(raw)) / 2, err: broken, after: 1}
	if err := s.Load(ctx, once, int64(len(raw)), actors.LoadOptions{InPlace: true}); !errors.Is(err, broken) || !errors.Is(s.Err(), stages.ErrGivenUp) {
		t.Errorf("a reader that fails the second time: %v, then %v", err, s.Err())
	}
	if err := load(s, raw, actors.LoadOptions{InPlace: true}); err != nil || s.Err() != nil || !slices.Equal(eval(t, s, 7), next) {
		t.Errorf("in place: %v, %v, or other logits", err, s.Err())
	}
	if err := errors.Join(s.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
	if st, err := e.Stats(ctx); err != nil || st.PagesUsed != 0 {
		t.Errorf("%d pages are used by nobody, %v", st.PagesUsed, err)
	}
	for what, err := range map[string]error{
		"load": load(s, raw, actors.LoadOptions{}), "save": func() error { _, err := s.Save(ctx, new(bytes.Buffer), actors.SaveOptions{}); return err }(),
	} {
		if !errors.Is(err, stages.ErrClosed) {
			t.Errorf("%s of a closed sequence: %v", what, err)
		}
	}
}

// failingReader fails to read the byte at from, but for the first times.
type failingReader struct {
	*bytes.Reader
	from  int64
	err   error
	after int
}

func (r *failingReader) ReadAt(p []byte, at int64) (int, error) {
	if at <= r.from && at+int64(len(p)) > r.from {
		if r.after--; r.after < 0 {
			return 0, r.err
		}
	}
	return r.Reader.ReadAt(p, at)
}

type failingWriter struct{ err error }

func (w failingWriter) Write([]byte) (int, error) { return 0, w.err }

// TestCloseWhileSaving closes an engine while states are written and read: Close waits, and both
// end with ErrClosed.
func TestCloseWhileSaving(t *testing.T) {
	e, err := actors.Open(context.Background(), actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 1)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.NewSequence(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	eval(t, s, prompt(1, 70, 512)...)
	w := &slowWriter{began: make(chan struct{}), goOn: make(chan struct{})}
	saved := make(chan error, 1)
	go func() {
		_, err := s.Save(context.Background(), w, actors.SaveOptions{})
		saved <- err
	}()
	<-w.began
	closed := make(chan error, 1)
	go func() { closed <- e.Close(context.Background()) }()
	for _, err := e.Stats(context.Background()); !errors.Is(err, stages.ErrClosed); _, err = e.Stats(context.Background()) {
	}
	select {
	case <-closed:
		t.Error("Close does not wait for whoever reads a state")
	default:
	}
	close(w.goOn)
	// all may have been read before
	if err := <-saved; err != nil && !errors.Is(err, stages.ErrClosed) {
		t.Errorf("save: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
}

// TestGoOnWhileSaving evaluates and empties a sequence while it is being saved: what is saved is
// the state of the moment of the call. (States that are still being read then are TestEditors' in
// package stagetest: these here fit into one buffer.)
func TestGoOnWhileSaving(t *testing.T) {
	for _, name := range families {
		e := open(t, actors.Config{Model: fixtures.Packed(t, name, 0), ChunkRows: rowsOfSteps(name, 16)})
		s, other := sequence(t, e), sequence(t, e)
		text := prompt(1, 100, e.Model().VocabSize)
		eval(t, other, text...)
		want := eval(t, other, 9)
		eval(t, s, text...)
		var file bytes.Buffer
		w := &slowWriter{began: make(chan struct{}), goOn: make(chan struct{}), to: &file}
		saved := make(chan error, 1)
		go func() {
			_, err := s.Save(context.Background(), w, actors.SaveOptions{})
			saved <- err
		}()
		<-w.began
		eval(t, s, 1, 2, 3)
		if err := s.Reset(context.Background()); err != nil {
			t.Fatal(err)
		}
		eval(t, s, prompt(2, 90, e.Model().VocabSize)...)
		close(w.goOn)
		if err := <-saved; err != nil {
			t.Fatal(err)
		}
		if err := load(s, file.Bytes(), actors.LoadOptions{}); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(eval(t, s, 9), want) {
			t.Errorf("%s: what was saved is not the state of the moment of the call", name)
		}
	}
}

type slowWriter struct {
	began, goOn chan struct{}
	once        sync.Once
	to          *bytes.Buffer // or nil
}

func (w *slowWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.began) })
	<-w.goOn
	if w.to != nil {
		return w.to.Write(p)
	}
	return len(p), nil
}
