package actors

import (
	"context"
	"time"

	"github.com/moeflux/moeflux-actor/tracing"
)

// CallStart says what is called, and CallEnd what became of it, for the span of a call.
type (
	CallStart = tracing.CallStart
	CallEnd   = tracing.CallEnd
)

// Call is a call that makes several requests, for traces: a conversation's turn, say.
type Call struct {
	e     *Engine
	span  *tracing.Call
	began int64
	first int64 // when the first token came; 0: not yet
}

// BeginCall tells a traced engine that a call begins. Requests with the context that it returns are
// the call's: their spans hang below its own, which hangs below that in ctx. It costs next to
// nothing without a Tracer, and never blocks. End must be called.
func (e *Engine) BeginCall(ctx context.Context, s CallStart) (context.Context, *Call) {
	calls := e.rt.Calls()
	if calls == nil {
		return ctx, nil
	}
	s.ArrivedNS = e.rt.Now()
	ctx, span := calls.Begin(ctx, s)
	return ctx, &Call{e: e, span: span, began: s.ArrivedNS}
}

// Token tells that a token has come. The first is what CallEnd.FirstToken is about. The call may be
// nil.
func (c *Call) Token() {
	if c != nil && c.first == 0 {
		c.first = c.e.rt.Now()
	}
}

// End tells that the call is over. It fills in the times of end. The call may be nil.
func (c *Call) End(end CallEnd) {
	if c == nil {
		return
	}
	end.EndedNS = c.e.rt.Now()
	if c.first != 0 {
		end.FirstToken = time.Duration(c.first - c.began)
	}
	c.span.End(end)
}
