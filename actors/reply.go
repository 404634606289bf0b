package actors

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

// request sends a message to the sequencer, with the caller that message gets, and waits for the
// answer. When ctx ends first it returns the error of ctx at once. The request is carried out all
// the same, and late gets its answer; nil discards it.
func (e *Engine) request(ctx context.Context, message func(stages.Caller) stages.Message, late func(stages.Message)) (stages.Message, error) {
	return e.requestTo(ctx, stages.Sequencer, message, late)
}

// requestTo is request of any stage.
func (e *Engine) requestTo(ctx context.Context, to stages.StageID, message func(stages.Caller) stages.Message, late func(stages.Message)) (stages.Message, error) {
	if ctx.Err() != nil {
		return nil, endOf(ctx)
	}
	r := newReply()
	if err := e.postTo(to, message(r)); err != nil {
		return nil, err
	}
	return e.waitFor(ctx, r, late)
}

// waitFor waits for the answer to a request that was sent, see request.
func (e *Engine) waitFor(ctx context.Context, r *reply, late func(stages.Message)) (stages.Message, error) {
	select {
	case a := <-r.answer:
		return a, nil
	case <-e.broken:
		return nil, e.reason
	case <-e.gone:
		return nil, stages.ErrClosed
	case <-ctx.Done():
	}
	if late == nil {
		late = func(stages.Message) {}
	}
	if a := r.leave(late); a != nil {
		return a, nil
	}
	return nil, endOf(ctx)
}

// endOf returns the error of a call whose ctx has ended.
func endOf(ctx context.Context) error {
	return fmt.Errorf("the call was given up: %w", context.Cause(ctx))
}

// giveBack sends the sequencer a message that returns something that is no longer wanted. Closing
// the engine returns everything anyway.
func (e *Engine) giveBack(m stages.Message) {
	if !e.closed.Load() {
		e.sendTo(stages.Sequencer, m)
	}
}
