package actors

import (
	"cmp"
	"context"
	"fmt"

	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/actors/runtime"
	"github.com/moeflux/moeflux-actor/stages"
)

// call is the memory of one evaluation, used again for the next.
type call struct {
	msg    stages.EvalChunk
	reply  *runtime.Reply
	tokens []int32
	until  int // as Declare says
}

// eval is EvalChunk with the answer as it comes. The caller may hand the answer to done.
func (s *Sequence) eval(ctx context.Context, c Chunk) (*stages.ChunkEvaluated, error) {
	if ctx.Err() != nil {
		return nil, runtime.EndOf(ctx)
	}
	k, err := s.begin()
	if err != nil {
		return nil, err
	}
	k.tokens = append(k.tokens[:0], c.Tokens...)
	request := s.e.given.request.Add(1)
	wants, err := c.wants(s.e)
	if err != nil {
		return nil, err
	}
	if err := checkProbe(c.Probe, s.e, len(c.Tokens)); err != nil {
		return nil, err
	}
	k.msg = stages.EvalChunk{
		Seq: s.id, Pos: c.Pos, Tokens: k.tokens, Logits: c.Logits, Wants: wants, Probe: c.Probe, Plain: c.Plain, Before: c.Before, Remember: c.Remember,
		Until: cmp.Or(c.Until, k.until),
		Trace: traceContext(ctx), Request: request, Caller: k.reply, Spare: k.msg.Spare,
	}
	if err := s.e.rt.Post(&k.msg); err != nil {
		return nil, err
	}
	a, err := s.waitOrCancel(ctx, k.reply, request)
	if err != nil {
		return nil, err // the answer may still come: k is not used again
	}
	r := a.(*stages.ChunkEvaluated)
	s.evaluated(r)
	if !r.Unfinished {
		k.msg = stages.EvalChunk{}
		s.mu.Lock()
		s.call = k
		s.mu.Unlock()
	}
	return r, r.Err
}

// waitOrCancel waits for the answer to a chunk. When ctx ends it cancels the chunk, which ends soon
// unless it hangs. If it ends later, the sequence hears of it then.
func (s *Sequence) waitOrCancel(ctx context.Context, p *runtime.Reply, request uint64) (stages.Message, error) {
	a, err := s.e.rt.Wait(ctx, p)
	if a != nil || err != nil {
		return a, err
	}
	cause := fmt.Errorf("evaluation cancelled: %w", context.Cause(ctx))
	// an engine that is gone tells itself
	_ = s.e.rt.Follow(stages.Sequencer, &stages.CancelEval{Seq: s.id, Request: request, Cause: cause})
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPatience)
	defer cancel()
	if a, err = s.e.rt.Wait(patience, p); a != nil || err != nil {
		return a, err
	}
	if a = p.Leave(func(a stages.Message) { s.evaluated(a.(*stages.ChunkEvaluated)) }); a != nil {
		return a, nil
	}
	return nil, &UnfinishedError{Err: cause}
}

// evaluated notes where the sequence stands after a chunk.
func (s *Sequence) evaluated(r *stages.ChunkEvaluated) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Poison != nil { // an evaluation does not heal; the answer to a refused chunk may come late
		s.poison = r.Poison
	}
	if r.Rows > 0 {
		s.len = r.Pos + r.Rows
	}
}

// begin returns the memory for an evaluation.
func (s *Sequence) begin() (*call, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, stages.ErrClosed
	}
	k := s.call
	s.call = nil // of two evaluations at once, which is a mistake of the caller, one makes its own
	if k == nil {
		k = &call{reply: runtime.NewReply()}
	}
	k.msg.Spare, s.spare = s.spare, nil
	k.until = s.until
	return k, nil
}

// done gives back an answer of eval, whose logits are no longer needed.
func (s *Sequence) done(r *stages.ChunkEvaluated) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spare = r
}

// traceContext returns the span in ctx as messages carry it.
func traceContext(ctx context.Context) stages.TraceContext {
	c := trace.SpanContextFromContext(ctx)
	return stages.TraceContext{TraceID: c.TraceID(), SpanID: c.SpanID(), Flags: byte(c.TraceFlags())}
}
