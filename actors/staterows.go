package actors

import (
	"context"
	"io"
	"sync"

	"github.com/moeflux/moeflux-actor/snapshot"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
)

// rows is the memory of a state that is being read or filled. It fails once ctx has ended, or the
// engine has stopped or does not wait any more.
type rows struct {
	ctx   context.Context
	e     *Engine
	image *dispatch.Image
}

func (e *Engine) rowsOf(ctx context.Context, state *stages.StateReady) *rows {
	r := &rows{ctx: ctx, e: e, image: state.Memory.(*dispatch.Image)}
	r.image.Move = r.move
	return r
}

// ReadRows fills dst, see snapshot.Source.
func (r *rows) ReadRows(layer int, p snapshot.Part, first int, dst []byte) error {
	return r.inside(func() error { return r.image.ReadRows(layer, p, first, dst) })
}

// WriteRows takes src, see snapshot.Target.
func (r *rows) WriteRows(layer int, p snapshot.Part, first int, src []byte) error {
	return r.inside(func() error { return r.image.WriteRows(layer, p, first, src) })
}

// inside copies rows, during which closing the engine frees nothing.
func (r *rows) inside(copyRows func() error) error {
	if !r.e.rt.Enter() {
		return stages.ErrClosed
	}
	defer r.e.rt.Exit()
	if err := r.e.wanted(r.ctx); err != nil {
		return err
	}
	return copyRows()
}

// move has dispatch copy what the host cannot address. It waits for the device, however long: the
// host's memory is the device's until then.
func (r *rows) move(pieces []dispatch.Piece, up bool) error {
	answer := make(chan stages.Message, 1)
	r.e.rt.Send(stages.Dispatch, &dispatch.Exchange{Pieces: pieces, Up: up, Caller: answer})
	select {
	case a := <-answer:
		return a.(*dispatch.Exchange).Err
	case <-r.e.rt.Broken():
		return r.e.rt.Reason()
	}
}

// wantedWriter is a caller's writer, which is not called any more when the state is not wanted.
type wantedWriter struct {
	rows *rows
	w    io.Writer
}

func (w *wantedWriter) Write(p []byte) (int, error) {
	if err := w.rows.e.wanted(w.rows.ctx); err != nil {
		return 0, err
	}
	return w.w.Write(p)
}

// wantedReader is a caller's reader, likewise.
type wantedReader struct {
	ctx context.Context
	e   *Engine
	r   io.ReaderAt
}

func (r *wantedReader) ReadAt(p []byte, at int64) (int, error) {
	if err := r.e.wanted(r.ctx); err != nil {
		return 0, err
	}
	return r.r.ReadAt(p, at)
}

// lentBuffer is a writer to a caller's memory, which is large enough, until the caller takes it
// back.
type lentBuffer struct {
	mu    sync.Mutex
	rest  []byte
	taken bool
}

func (b *lentBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.taken {
		return 0, stages.ErrClosed
	}
	n := copy(b.rest, p)
	b.rest = b.rest[n:]
	return n, nil
}

func (b *lentBuffer) takeBack() {
	b.mu.Lock()
	b.taken = true
	b.mu.Unlock()
}
