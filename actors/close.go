package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/moeflux/moeflux-actor/actors/runtime"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// closeGrace is how long Close waits, after its context has ended, for what it has cancelled to end
// between two layers and for memory to be freed.
const closeGrace = 60 * time.Millisecond

// LeftBehindError reports an engine that is closed and not freed: something still uses its memory.
// One goroutine stays, which frees everything when that has ended. A further Close waits for it.
// Until then the engine's device must stay open, see CloseDevice.
type LeftBehindError struct {
	Reads  int   // from the disk that have not ended
	Files  bool  // a file is being written or closed
	Device bool  // it is still at work, or does not answer
	Spans  bool  // the exporter has not taken the last ones; all else is freed
	Err    error // why Close did not wait longer: that of its context

	Freed <-chan struct{} // closed when nothing is left
}

func (e *LeftBehindError) Error() string {
	var why []string
	if e.Reads > 0 {
		why = append(why, fmt.Sprintf("%d reads from the disk have not ended", e.Reads))
	}
	if e.Files {
		why = append(why, "a file is still being written or closed")
	}
	if e.Device {
		why = append(why, "the device is still at work or does not answer")
	}
	if e.Spans {
		why = append(why, "the exporter does not take the last spans")
	}
	if e.Freeing() {
		why = append(why, "its memory is just being freed")
	}
	return fmt.Sprintf("moeflux: the engine is closed but not freed yet, %s: %v", strings.Join(why, ", "), e.Err)
}
func (e *LeftBehindError) Unwrap() error { return e.Err }

// Freeing reports whether nothing is in use any more and the freeing of memory just takes its time,
// as that of many gigabytes of pinned memory does. A program may then end.
func (e *LeftBehindError) Freeing() bool { return e.Reads == 0 && !e.Files && !e.Device && !e.Spans }

// CloseDevice closes the device of an engine whose Open or Close has returned err, which may be
// nil. Where err tells that something still uses the device, it is closed as soon as that has
// ended: the result is nil then, and a goroutine stays.
func CloseDevice(d gpu.Device, err error) error {
	var ended <-chan struct{}
	if left, ok := errors.AsType[*LeftBehindError](err); ok && !left.Spans {
		ended = left.Freed
	} else if open, ok := errors.AsType[*UnfinishedError](err); ok {
		ended = open.Ended
	}
	if ended == nil {
		return d.Close()
	}
	go func() {
		<-ended
		_ = d.Close() // nobody is there to be told
	}()
	return nil
}

// ending is how far the closing of an engine has come.
type ending struct {
	begun, cancelling sync.Once

	cancelled chan struct{}         // closed when what runs is not waited for any more
	freed     chan struct{}         // closed when nothing is left
	err       error                 // of all; set before freed is closed
	at        atomic.Int32          // a phase
	last      atomic.Pointer[Stats] // what Engine.Stats returns after Close

	mu        sync.Mutex    // guards the rest
	exchanges int           // calls that read or fill a state
	closed    bool          // none begins any more
	idle      chan struct{} // closed when there are none and none begins any more
}

func newEnding() ending {
	return ending{cancelled: make(chan struct{}), freed: make(chan struct{}), idle: make(chan struct{})}
}

// phase is what closing waits for.
type phase int32

const (
	endingSteps   phase = iota // chunks and steps, and calls that read or fill states
	endingProfile              // the profile is written
	endingCalls                // callers are still within the engine
	endingParked               // states are written to files, or read from them
	endingReads                // and uploads
	endingQueue
	freeing // memory
	endingFiles
	endingSpans
)

// waitsFor notes what closing waits for now.
func (e *Engine) waitsFor(p phase) { e.end.at.Store(int32(p)) }

// Close ends the engine. It takes no new work, waits for the chunks, saves and loads under way, for
// reads and the device, and then frees all memory, mappings and files. When ctx ends first, chunks
// end with ErrClosed between two layers, saves and loads at their next rows, and Close returns
// within 100 ms, whatever hangs. An ended ctx cancels at once. A ctx that never ends lets Close
// wait for ever.
//
// If not everything is freed by then, the error is a *LeftBehindError that says why, and the log
// does too. Calls that still wait return ErrClosed. What the disk, the device or an exporter still
// uses stays with one goroutine, which frees it as soon as it can. A writer or reader of a caller's
// that does not return from Save or Load holds nothing of the engine's.
//
// Close may be called again, also while another Close waits. It waits for the same end with its own
// ctx, and returns the same error once everything is freed: if the engine had stopped by itself,
// the reason, otherwise the first error of freeing something.
func (e *Engine) Close(ctx context.Context) error {
	e.end.begun.Do(func() {
		e.rt.Close()
		go e.shutDown()
	})
	select {
	case <-e.end.freed:
		return e.end.err
	case <-ctx.Done():
	}
	e.end.cancelling.Do(func() { close(e.end.cancelled) })
	late := time.NewTimer(closeGrace)
	defer late.Stop()
	select {
	case <-e.end.freed:
		return e.end.err
	case <-late.C:
	}
	err := e.leftBehind(context.Cause(ctx))
	if e.rt.SetGone() {
		level := slog.LevelWarn
		if err.Freeing() { // nothing hangs
			level = slog.LevelInfo
		}
		e.log.Log(context.Background(), level,
			"the engine is closed but not freed: what is in use is freed when that ends", "error", err)
	}
	return err
}

// leftBehind says what the end waits for.
func (e *Engine) leftBehind(cause error) *LeftBehindError {
	err := &LeftBehindError{Err: cause, Freed: e.end.freed}
	switch at := phase(e.end.at.Load()); at {
	case endingSpans:
		err.Spans = true
	case endingProfile, endingParked, endingFiles:
		err.Files = true
	case freeing:
	default:
		err.Reads = e.memory.Reading()
		err.Device = err.Reads == 0
	}
	return err
}

// shutDown is the goroutine that closes the engine.
func (e *Engine) shutDown() {
	began := e.rt.Now()
	defer close(e.end.freed)
	err := e.drain()
	e.waitsFor(endingCalls)
	e.rt.Shut()
	if rerr := e.release(); err == nil {
		err = rerr
	}
	e.end.err = err
	if !e.rt.SetGone() { // a Close has said so
		e.log.Info("what a closed engine had left behind is freed", "after", time.Duration(e.rt.Now()-began))
	}
}

// drain returns when no step is left, and no call that reads or fills a state unless it was
// cancelled. If the engine has stopped by itself, the error says why.
func (e *Engine) drain() error {
	drained := make(chan stages.Message, 2) // a place for each answer
	e.rt.Send(stages.Sequencer, &stages.Drain{Finish: true, Caller: drained})
	e.exchangesEnd()
	select {
	case <-drained:
	case <-e.rt.Broken():
	case <-e.end.cancelled:
		e.rt.Send(stages.Sequencer, &stages.Drain{Caller: drained})
		select {
		case <-drained:
		case <-e.rt.Broken():
		}
	}
	select {
	case <-e.rt.Broken(): // even if the sequencer has still answered
		return e.rt.Reason()
	default:
	}
	e.waitsFor(endingProfile)
	e.saveProfile()
	return nil
}

// exchangesEnd waits for the calls that read or fill a state, unless they are cancelled.
func (e *Engine) exchangesEnd() {
	n := &e.end
	n.mu.Lock()
	n.closed = true
	if n.exchanges == 0 {
		close(n.idle)
	}
	n.mu.Unlock()
	select {
	case <-n.idle:
	case <-n.cancelled:
	case <-e.rt.Broken():
	}
}

// exchange begins reading or filling a state. Engine.Close waits until the caller calls end, unless
// it cancels.
func (e *Engine) exchange(ctx context.Context) (end func(), err error) {
	if ctx.Err() != nil {
		return nil, runtime.EndOf(ctx)
	}
	n := &e.end
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.rt.Closed() || n.closed {
		return nil, stages.ErrClosed
	}
	n.exchanges++
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.exchanges--; n.exchanges == 0 && n.closed {
			close(n.idle)
		}
	}, nil
}
