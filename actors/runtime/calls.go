package runtime

import (
	"context"
	"fmt"
	"sync"

	"github.com/moeflux/moeflux-actor/stages"
)

// Reply is the Caller of a request that may stop waiting before the answer comes. A late answer
// goes to a function, so that nothing it hands over leaks. It can be used again when the answer has
// come in time.
type Reply struct {
	answer chan stages.Message // has a place for the only answer

	mu   sync.Mutex
	late func(stages.Message) // takes a late answer; nil while somebody waits
}

// NewReply returns the Caller of one request at a time.
func NewReply() *Reply { return &Reply{answer: make(chan stages.Message, 1)} }

// deliver brings the answer. A stage's goroutine calls it.
func (p *Reply) deliver(m stages.Message) {
	p.mu.Lock()
	late := p.late
	if late == nil {
		p.answer <- m
	}
	p.mu.Unlock()
	if late != nil {
		late(m)
	}
}

// Leave stops the waiting, unless the answer is already here: then it returns the answer. late runs
// on a stage's goroutine and must not block.
func (p *Reply) Leave(late func(stages.Message)) stages.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case m := <-p.answer:
		return m
	default:
		p.late = late
		return nil
	}
}

// UnfinishedError reports a call that has returned, because its context ended, before what it asked
// for was done or given up. The engine is still at it. A sequence that it changes is busy until
// then (stages.ErrBusy, Description.Busy); afterwards Len, Err and Describe tell where it stands.
type UnfinishedError struct {
	Err error // that of the context
	// Ended is closed when the call's work has ended after all: an opening has given back all that
	// it took then. nil where a sequence's Description tells.
	Ended <-chan struct{}
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("the call has returned before the engine is done with it: %v", e.Err)
}
func (e *UnfinishedError) Unwrap() error { return e.Err }

// Post sends the sequencer a request, unless the engine is closed or broken. The stages of a broken
// engine may still answer for a moment, with half a state.
func (r *Runtime) Post(m stages.Message) error {
	if r.Closed() {
		return stages.ErrClosed
	}
	return r.Follow(stages.Sequencer, m)
}

// Follow sends a message that belongs to a call under way: also while the engine is being closed,
// as long as it has stages.
func (r *Runtime) Follow(to stages.StageID, m stages.Message) error {
	if !r.Enter() {
		return stages.ErrClosed
	}
	defer r.Exit()
	if err := r.Err(); err != nil {
		return err
	}
	r.Send(to, m)
	return nil
}

// GiveBack sends the sequencer a message that returns something that is no longer wanted. Closing
// the engine returns everything anyway.
func (r *Runtime) GiveBack(m stages.Message) { _ = r.Follow(stages.Sequencer, m) }

// Wait returns the answer to a request. If ctx ends first there is neither answer nor error: the
// caller must Leave.
func (r *Runtime) Wait(ctx context.Context, p *Reply) (stages.Message, error) {
	select {
	case a := <-p.answer:
		return a, nil
	case <-r.fate.broken:
		return nil, r.fate.reason
	case <-r.fate.gone:
		return nil, stages.ErrClosed
	case <-ctx.Done():
		return nil, nil
	}
}

// Request sends a message to the sequencer, with the caller that message gets, and waits for the
// answer. When ctx ends first it returns an *UnfinishedError at once. A request that waits for
// memory is given up; any other is carried out all the same, and late gets its answer; nil discards
// it.
func (r *Runtime) Request(ctx context.Context, message func(stages.Caller) stages.Message, late func(stages.Message)) (stages.Message, error) {
	return r.RequestTo(ctx, stages.Sequencer, message, late)
}

// RequestTo is Request of any stage.
func (r *Runtime) RequestTo(ctx context.Context, to stages.StageID, message func(stages.Caller) stages.Message, late func(stages.Message)) (stages.Message, error) {
	if r.Closed() {
		return nil, stages.ErrClosed
	}
	return r.Ask(ctx, to, message, late)
}

// Ask is RequestTo within a call under way, which goes on while the engine is being closed.
func (r *Runtime) Ask(ctx context.Context, to stages.StageID, message func(stages.Caller) stages.Message, late func(stages.Message)) (stages.Message, error) {
	if ctx.Err() != nil {
		return nil, EndOf(ctx)
	}
	p := NewReply()
	if err := r.Follow(to, message(p)); err != nil {
		return nil, err
	}
	return r.waitFor(ctx, p, func() {
		if to == stages.Sequencer { // it may only wait for memory
			r.GiveBack(&stages.Withdraw{Of: p, Cause: EndOf(ctx)})
		}
	}, late)
}

// waitFor waits for the answer to a request that was sent, see Request. When ctx ends before it
// comes, withdraw is called.
func (r *Runtime) waitFor(ctx context.Context, p *Reply, withdraw func(), late func(stages.Message)) (stages.Message, error) {
	a, err := r.Wait(ctx, p)
	if a != nil || err != nil {
		return a, err
	}
	if late == nil {
		late = func(stages.Message) {}
	}
	withdraw()
	if a := p.Leave(late); a != nil {
		return a, nil
	}
	return nil, &UnfinishedError{Err: EndOf(ctx)}
}

// EndOf returns the error of a call whose ctx has ended.
func EndOf(ctx context.Context) error {
	return fmt.Errorf("the call was given up: %w", context.Cause(ctx))
}
