package actors

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/profile"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
)

// Stats is what an engine counted since it was opened.
type Stats = stages.Stats

// Times is where the time of an engine, or of a layer, went.
type Times = stages.Times

// Engine is an open model. Its methods may be called from many goroutines.
type Engine struct {
	model *model.Config
	info  Info
	log   *slog.Logger
	epoch time.Time

	weights  *weights.File
	experts  *expertfile.File
	slots    *slotMemory
	queue    gpu.Queue
	meter    *meter
	pool     *readpool.Pool
	governor *governor
	checked  *checkedReads // nil: reads are not held against checksums
	reads    []*slotRead   // [slots]; nil where none was read into yet
	profile  usage
	dispatch *dispatch.Core

	faultsAtOpen int64

	awaits awaits

	system    *actor.ActorSystem
	ownSystem bool
	top       *actor.PID
	parent    *parent
	pids      [stages.NumStages]*actor.PID
	tracer    *actor.PID
	spans     *spanWriter // nil without a tracer

	lastSeq     atomic.Uint64
	lastRequest atomic.Uint64

	breaking sync.Once
	broken   chan struct{} // closed when the engine has stopped by itself
	reason   error         // why; set before broken is closed

	linger linger

	exchanging  sync.RWMutex // read-locked by who reads or fills a state
	fingerprint func() (profile.Fingerprint, error)

	closing  sync.Once
	closed   atomic.Bool   // nothing new is asked
	gone     chan struct{} // closed when Close is done
	closeErr error

	last atomic.Pointer[Stats] // what Stats returns after Close
}

// Model returns the model's configuration; it is not to be changed.
func (e *Engine) Model() *model.Config { return e.model }

// Info returns the settings in use.
func (e *Engine) Info() Info { return e.info }

// PID returns the sequencer's address for those who would rather send messages: *stages.EvalChunk
// and the messages about sequences, as requests or with a PID as Caller.
func (e *Engine) PID() *actor.PID { return e.pids[stages.Sequencer] }

// post sends a request, unless the engine is closed or broken. Stages of a broken one may answer
// for a moment yet, with half a state.
func (e *Engine) post(m stages.Message) error { return e.postTo(stages.Sequencer, m) }

func (e *Engine) postTo(to stages.StageID, m stages.Message) error {
	if e.closed.Load() {
		return stages.ErrClosed
	}
	select {
	case <-e.broken:
		return e.reason
	default:
	}
	if e.system.IsStopped() {
		e.systemStopped()
		return e.reason
	}
	e.sendTo(to, m)
	return nil
}

// wait returns what comes to the reply channel of a request.
func (e *Engine) wait(reply chan stages.Message) (stages.Message, error) {
	select {
	case a := <-reply:
		return a, nil
	case <-e.broken:
		return nil, e.reason
	case <-e.gone:
		return nil, stages.ErrClosed
	}
}

// cancelPatience is how long the end of a cancelled chunk is waited for: of a step that is shared
// with others, or is in its last layer, it is the end of the step, which leaves the sequence
// unharmed. A disk that does not answer takes longer.
const cancelPatience = time.Second

// waitOrCancel is wait for an EvalChunk. When ctx ends it asks for the end of the chunk and goes on
// waiting: the answer tells where the sequence stands.
func (e *Engine) waitOrCancel(ctx context.Context, reply chan stages.Message, seq stages.SeqID, request uint64) (stages.Message, error) {
	select {
	case a := <-reply:
		return a, nil
	case <-e.broken:
		return nil, e.reason
	case <-e.gone:
		return nil, stages.ErrClosed
	case <-ctx.Done():
	}
	cause := fmt.Errorf("evaluation cancelled: %w", context.Cause(ctx))
	_ = e.post(&stages.CancelEval{Seq: seq, Request: request, Cause: cause}) // wait tells of an engine that is closed
	late := time.NewTimer(cancelPatience)
	defer late.Stop()
	select {
	case a := <-reply:
		return a, nil
	case <-late.C:
		_ = e.post(&stages.CancelEval{Seq: seq, Request: request, Cause: cause, Now: true})
	case <-e.broken: // wait tells
	case <-e.gone:
	}
	return e.wait(reply)
}

// NewSequence makes an empty sequence, which must be closed. When ctx ends first there is none.
func (e *Engine) NewSequence(ctx context.Context) (*Sequence, error) { return e.newSequence(ctx, 0) }

// newSequence makes a sequence that stands where another does; 0 is an empty one.
func (e *Engine) newSequence(ctx context.Context, from stages.SeqID) (*Sequence, error) {
	s := &Sequence{e: e, id: stages.SeqID(e.lastSeq.Add(1))}
	a, err := e.request(ctx, func(to stages.Caller) stages.Message { return &stages.OpenSequence{Seq: s.id, From: from, Caller: to} },
		func(stages.Message) { e.giveBack(&stages.CloseSequence{Seq: s.id}) })
	if err != nil {
		return nil, err
	}
	d := a.(*stages.SequenceDone)
	s.len = d.Pos
	if d.Err != nil {
		return nil, d.Err
	}
	return s, nil
}

// ForgetTexts gives up all that is remembered of texts (Chunk.Remember), and its memory.
func (e *Engine) ForgetTexts(ctx context.Context) error {
	_, err := e.request(ctx, func(to stages.Caller) stages.Message { return &stages.ForgetTexts{Caller: to} }, nil)
	return err
}

// ForgetExperts empties the expert slots and drops what is predicted from each sequence's past, so
// that the next tokens miss: what a benchmark of misses starts from. It stops a warm start, waits
// for speculative reads under way, and leaves alone only what a step is using. How often each
// expert was used, and how often predictions came true, stays known. With ExpertIOBuffered the
// system's page cache keeps what it has of the files. Where experts are mapped or loaded at Open
// (ExpertIOMmap) there are no slots, and the error is stages.ErrExpertsMapped.
func (e *Engine) ForgetExperts(ctx context.Context) error {
	a, err := e.requestTo(ctx, stages.Router, func(to stages.Caller) stages.Message { return &stages.ForgetExperts{Caller: to} }, nil)
	if err != nil {
		return err
	}
	return a.(*stages.ExpertsForgotten).Err
}

// Stats returns the figures of this moment; Stats.Since tells what was counted between two of them.
// After Close the error is stages.ErrClosed, and the figures are the last that there were.
func (e *Engine) Stats(ctx context.Context) (*Stats, error) {
	a, err := e.request(ctx, func(to stages.Caller) stages.Message { return &stages.CollectStats{Stats: new(Stats), Caller: to} }, nil)
	switch {
	case err == nil:
		return a.(*stages.CollectStats).Stats, nil
	case errors.Is(err, stages.ErrClosed):
		if last := e.last.Load(); last != nil {
			return last.Since(nil), err
		}
	}
	return nil, err
}

// breakDown notes why the engine has stopped and wakes every caller.
func (e *Engine) breakDown(err error) {
	e.breaking.Do(func() {
		e.reason = err
		if e.log != nil {
			e.log.Error("engine stopped", "error", err)
		}
		close(e.broken)
	})
}

// systemStopped ends an engine whose actor system was shut down. That stops no actor by itself.
func (e *Engine) systemStopped() {
	e.breakDown(&StoppedError{})
	e.system.Root.Stop(e.top)
}

// Close ends the engine. It takes no new work, ends running chunks with ErrClosed between two
// layers, waits for reads and the device, and then gives back all memory, mappings and files. It
// returns when nothing is left, and may be called again. Spans that the caller's exporter does not
// take within five seconds are left behind, with a line in the log and the goroutine that waits for
// the exporter. The error is why the engine had stopped before, if it had, or that of giving
// resources back.
func (e *Engine) Close() error {
	e.closing.Do(func() { e.closeErr = e.shutDown() })
	return e.closeErr
}

func (e *Engine) shutDown() error {
	e.closed.Store(true)
	defer close(e.gone)
	reply := make(chan stages.Message, 1)
	e.sendTo(stages.Sequencer, &stages.Drain{Caller: reply})
	var err error
	select {
	case <-reply:
	case <-e.broken:
	}
	select {
	case <-e.broken: // whatever the sequencer has still answered
		err = e.reason
	default:
		e.saveProfile()
	}
	e.exchanging.Lock() // waits for those who read or fill states; others find the engine closed
	defer e.exchanging.Unlock()
	if rerr := e.release(); err == nil {
		err = rerr
	}
	return err
}

// release gives back whatever has been opened, in the order that use demands: reads, device,
// actors, buffers, mappings, files.
func (e *Engine) release() error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	if e.governor != nil {
		e.governor.close()
	}
	if e.top != nil {
		select {
		case <-e.broken: // what still runs must not meet a closed device
			e.stopActors()
		default:
		}
	}
	if e.pool != nil {
		e.pool.Close()
	}
	if e.slots != nil && e.slots.staging != nil {
		keep(e.slots.staging.close())
	}
	if e.queue != nil {
		keep(e.queue.Close())
	}
	e.linger.wait()
	if e.top != nil {
		e.flushSpans()
		e.stopActors()
		e.spans.close()
		e.keepStats()
	}
	if e.dispatch != nil {
		e.dispatch.Close()
	}
	if e.slots != nil {
		keep(e.slots.release())
	}
	if e.experts != nil {
		keep(e.experts.Close())
	}
	if e.weights != nil {
		keep(e.weights.Close())
	}
	if e.ownSystem {
		e.system.Shutdown()
	}
	return first
}

// stopActors returns when all actors have stopped.
func (e *Engine) stopActors() {
	e.parent.stopping.Store(true)
	select {
	case <-e.parent.stopped:
	default:
		e.system.Root.Stop(e.top)
		<-e.parent.stopped
	}
}

// flushSpans waits until the tracer has the records of all steps, unless the engine has broken down.
func (e *Engine) flushSpans() {
	if e.tracer == nil {
		return
	}
	select {
	case <-e.broken:
		return
	default:
	}
	b := &barrier{done: make(chan struct{})}
	for _, pid := range e.pids {
		e.system.Root.Send(pid, b)
	}
	select {
	case <-b.done:
	case <-e.broken:
	}
}
