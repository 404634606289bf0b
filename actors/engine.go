package actors

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/moeflux/moeflux-actor/actors/expertmem"
	"github.com/moeflux/moeflux-actor/actors/metering"
	"github.com/moeflux/moeflux-actor/actors/parking"
	"github.com/moeflux/moeflux-actor/actors/recall"
	"github.com/moeflux/moeflux-actor/actors/remote"
	"github.com/moeflux/moeflux-actor/actors/runtime"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
	"github.com/moeflux/moeflux-actor/stages/fair"
	"github.com/moeflux/moeflux-actor/tracing/record"
	"github.com/moeflux/moeflux-actor/tracing/recorder"
)

// Stats is what an engine counted since it was opened, and LayerStats a layer's part of it.
type (
	Stats      = stages.Stats
	LayerStats = stages.LayerStats
	HostStats  = stages.HostStats
	Place      = stages.Place
)

// The places of an expert's record (LayerStats.Places).
const (
	OnDisk    = stages.OnDisk
	BeingRead = stages.BeingRead
	InSlot    = stages.InSlot
)

// Account is what requests have been given, and what that cost: of one chunk (Evaluated), of all of
// a sequence (Description), or of all of an engine (Stats.Accounts).
type Account = stages.Account

// Times is where the time of an engine, or of a layer, went.
type Times = stages.Times

// Engine is an open model. Its methods may be called from many goroutines.
//
// Most of its fields are the parts that Open makes and Close ends, each once, in an order of its
// own (see close.go); what they do is theirs.
type Engine struct {
	model *model.Config
	info  Info
	log   *slog.Logger
	// which part of a gpu.Split computes which layers
	borders stages.Borders

	weights  *weights.File
	experts  *expertfile.File
	memory   *expertmem.Memory
	queue    gpu.Queue
	meter    *metering.Meter
	records  *record.Log
	meta     record.Meta
	recorder *recorder.Recorder // nil: the records go nowhere
	profile  usage
	dispatch *dispatch.Core
	parking  *parking.Store
	texts    *recall.Store  // nil: none are kept on disk
	hosts    *remote.Client // nil: none are asked

	rt        *runtime.Runtime
	ownSystem *actor.ActorSystem // nil: the host service's system runs the actors

	given struct{ seq, request atomic.Uint64 } // the last numbers

	identity identity
	end      ending
}

// Model returns the model's configuration. The caller must not change it.
func (e *Engine) Model() *model.Config { return e.model }

// Info returns the settings in use.
func (e *Engine) Info() Info { return e.info }

// PID returns the sequencer's address, for callers who would rather send messages:
// *stages.EvalChunk and every other message that callers send, as requests or with a PID as Caller.
func (e *Engine) PID() *actor.PID { return e.rt.PID() }

// Class says who gets memory for states first.
type Class = stages.Class

// The classes.
const (
	Background  = stages.Background
	Normal      = stages.Normal
	Interactive = stages.Interactive
)

// MaxWeight is the largest weight of a key (SequenceOptions.Weight).
const MaxWeight = fair.MaxWeight

// SequenceOptions say in which order a sequence gets memory where there is too little for all. The
// zero value is a normal one. A higher class goes first, always; within a class texts that have
// memory and need more, then the key that was served fewest tokens for its weight, then who came
// first. Nobody is overtaken because something smaller would fit.
type SequenceOptions struct {
	Class Class
	// Key names who shares memory and the reading of prompts with others by what they were served:
	// a tenant, or an API key. "" is one like others.
	Key string
	// Weight is how large the shares of Key are: twice as large with 2 as with 1. 0 means 1, and
	// more than MaxWeight is that. It holds for all of Key, from the sequence on that is made last.
	Weight int
	// Scope names those who may resume each other's texts (Sequence.Resume, Chunk.Remember). Others
	// do not learn of them, not even by how fast they are answered. "" is one like others.
	Scope string
}

// NewSequence makes an empty sequence, which must be closed. It has no memory before its first
// evaluation. When ctx ends first there is none.
func (e *Engine) NewSequence(ctx context.Context) (*Sequence, error) {
	return e.newSequence(ctx, 0, SequenceOptions{})
}

// NewSequenceFor is NewSequence of a class and for a key.
func (e *Engine) NewSequenceFor(ctx context.Context, o SequenceOptions) (*Sequence, error) {
	return e.newSequence(ctx, 0, o)
}

// newSequence makes a sequence with the state of another; from 0 makes an empty one. It passes over
// numbers that actors outside have taken.
func (e *Engine) newSequence(ctx context.Context, from stages.SeqID, o SequenceOptions) (s *Sequence, err error) {
	for {
		if s, err = e.nextSequence(ctx, from, o); !errors.Is(err, stages.ErrOpen) {
			return s, err
		}
	}
}

func (e *Engine) nextSequence(ctx context.Context, from stages.SeqID, o SequenceOptions) (*Sequence, error) {
	s := &Sequence{e: e, id: stages.SeqID(e.given.seq.Add(1)), options: o}
	a, err := e.rt.Request(ctx, func(to stages.Caller) stages.Message {
		return &stages.OpenSequence{Seq: s.id, From: from, Class: o.Class, Key: o.Key, Weight: o.Weight, Scope: o.Scope, Caller: to}
	}, func(stages.Message) { e.rt.GiveBack(&stages.CloseSequence{Seq: s.id}) })
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

// ForgetTexts forgets all remembered texts (Chunk.Remember) and frees their memory.
func (e *Engine) ForgetTexts(ctx context.Context) error {
	_, err := e.rt.Request(ctx, func(to stages.Caller) stages.Message { return &stages.ForgetTexts{Caller: to} }, nil)
	return err
}

// ForgetExperts empties the expert slots and forgets what each sequence's last row picked, so that
// the next tokens miss. A benchmark of misses starts from there. It ends a warm start, waits for
// speculative reads under way, and leaves alone only what a step is using. The engine still knows
// how often each expert was used and how often its predictions came true. With ExpertIOBuffered the
// system's page cache still holds what it has of the files. Where experts are mapped or loaded at
// Open (ExpertIOMmap) there are no slots, and the error is stages.ErrExpertsMapped.
func (e *Engine) ForgetExperts(ctx context.Context) error {
	a, err := e.rt.RequestTo(ctx, stages.Router, func(to stages.Caller) stages.Message { return &stages.ForgetExperts{Caller: to} }, nil)
	if err != nil {
		return err
	}
	return a.(*stages.ExpertsForgotten).Err
}

// Stats returns the present figures. Stats.Since gives the difference of two. After Close it
// returns the last figures together with stages.ErrClosed; there are none as long as not everything
// is freed, or if a stage failed in a way that left its figures unusable.
func (e *Engine) Stats(ctx context.Context) (*Stats, error) {
	a, err := e.rt.Request(ctx, func(to stages.Caller) stages.Message { return &stages.CollectStats{Stats: new(Stats), Caller: to} }, nil)
	switch {
	case err == nil:
		return a.(*stages.CollectStats).Stats, nil
	case errors.Is(err, stages.ErrClosed):
		if last := e.end.last.Load(); last != nil {
			return last.Since(nil), err
		}
	}
	return nil, err
}

// release frees whatever has been opened, each thing after its users: reads, device, actors,
// buffers, mappings, files. Spans come last: who exports them holds nothing of the engine's.
func (e *Engine) release() error {
	var first error
	keep := func(err error) {
		if first == nil {
			first = err
		}
	}
	e.waitsFor(endingParked)
	e.texts.Close()
	if e.parking != nil {
		keep(e.parking.Close())
	}
	if e.memory != nil {
		e.memory.StopGoverning()
	}
	if e.rt != nil {
		e.rt.StopIfBroken()
	}
	if e.hosts != nil {
		e.hosts.Close()
	}
	e.waitsFor(endingReads)
	if e.memory != nil {
		keep(e.memory.StopReading())
	}
	e.waitsFor(endingQueue)
	if e.queue != nil {
		keep(e.queue.Close())
	}
	e.waitsFor(freeing)
	if e.rt != nil {
		e.rt.Stop()
		e.end.last.Store(e.rt.LastStats())
	}
	if e.dispatch != nil {
		e.dispatch.Close()
	}
	if e.memory != nil {
		keep(e.memory.Release())
	}
	e.waitsFor(endingFiles)
	if e.recorder != nil {
		e.recorder.Close()
	}
	if e.experts != nil {
		keep(e.experts.Close())
	}
	if e.weights != nil {
		keep(e.weights.Close())
	}
	if e.ownSystem != nil {
		e.ownSystem.Shutdown()
	}
	e.waitsFor(endingSpans)
	if e.rt != nil {
		e.endSpans()
	}
	return first
}

// endSpans returns when all spans are made. The last figures have their number then.
func (e *Engine) endSpans() {
	last := e.end.last.Load()
	if last != nil {
		last = last.Since(nil)
	}
	e.rt.EndSpans(last)
	e.end.last.Store(last)
}
