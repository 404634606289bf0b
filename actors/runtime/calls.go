package runtime

import (
	"context"
	"fmt"
	"sync"

	"github.com/moeflux/moeflux-actor/stages"
)

// reply is the Caller of a request that may stop waiting before the answer comes. A late answer
// goes to late, so that nothing it hands over leaks.
type reply struct {
	answer chan stages.Message // has a place for the only answer

	mu   sync.Mutex
	late func(stages.Message) // takes a late answer; nil while somebody waits
}

func newReply() *reply { return &reply{answer: make(chan stages.Message, 1)} }

// deliver brings the answer. A stage's goroutine calls it.
func (r *reply) deliver(m stages.Message) {
	r.mu.Lock()
	late := r.late
	if late == nil {
		r.answer <- m
	}
	r.mu.Unlock()
	if late != nil {
		late(m)
	}
}

// leave stops the waiting, unless the answer is already here: then it returns the answer. late runs
// on a stage's goroutine and must not block.
func (r *reply) leave(late func(stages.Message)) stages.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case m := <-r.answer:
		return m
	default:
		r.late = late
		return nil
	}
}

// Post sends the sequencer a request, unless the engine is closed or broken. The stages of a broken
// engine may still answer for a moment, with half a state.
func (r *Runtime) Post(m stages.Message) error { return r.PostTo(stages.Sequencer, m) }

// PostTo is Post to any stage.
func (r *Runtime) PostTo(to stages.StageID, m stages.Message) error {
	if err := r.Err(); err != nil {
		return err
	}
	r.Send(to, m)
	return nil
}

// GiveBack sends the sequencer a message that returns something that is no longer wanted. Closing
// the engine returns everything anyway.
func (r *Runtime) GiveBack(m stages.Message) {
	if !r.Closed() {
		r.Send(stages.Sequencer, m)
	}
}

// Wait returns the answer that comes to the channel of a request.
func (r *Runtime) Wait(answer chan stages.Message) (stages.Message, error) {
	select {
	case a := <-answer:
		return a, nil
	case <-r.fate.broken:
		return nil, r.fate.reason
	case <-r.fate.gone:
		return nil, stages.ErrClosed
	}
}

// Request sends a message to the sequencer, with the caller that message gets, and waits for the
// answer. When ctx ends first it returns the error of ctx at once. The request is carried out all
// the same, and late gets its answer; nil discards it.
func (r *Runtime) Request(ctx context.Context, message func(stages.Caller) stages.Message, late func(stages.Message)) (stages.Message, error) {
	return r.RequestTo(ctx, stages.Sequencer, message, late)
}

// RequestTo is Request of any stage.
func (r *Runtime) RequestTo(ctx context.Context, to stages.StageID, message func(stages.Caller) stages.Message, late func(stages.Message)) (stages.Message, error) {
	if ctx.Err() != nil {
		return nil, EndOf(ctx)
	}
	p := newReply()
	if err := r.PostTo(to, message(p)); err != nil {
		return nil, err
	}
	return r.waitFor(ctx, p, late)
}

// waitFor waits for the answer to a request that was sent, see Request.
func (r *Runtime) waitFor(ctx context.Context, p *reply, late func(stages.Message)) (stages.Message, error) {
	select {
	case a := <-p.answer:
		return a, nil
	case <-r.fate.broken:
		return nil, r.fate.reason
	case <-r.fate.gone:
		return nil, stages.ErrClosed
	case <-ctx.Done():
	}
	if late == nil {
		late = func(stages.Message) {}
	}
	if a := p.leave(late); a != nil {
		return a, nil
	}
	return nil, EndOf(ctx)
}

// EndOf returns the error of a call whose ctx has ended.
func EndOf(ctx context.Context) error {
	return fmt.Errorf("the call was given up: %w", context.Cause(ctx))
}
