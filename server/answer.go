package server

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	moeflux "github.com/moeflux/moeflux-actor"
)

// pieceBuffer is how many events an answer may be ahead of its reader. A model that is further
// ahead waits; the others go on without it.
const pieceBuffer = 64

// answers asks the model for the choices of a call, at once, when it is the turn of the call's key,
// and returns their events until all have ended or ctx has. Whoever reads them must cancel ctx when
// it is done.
func (s *Server) answers(ctx context.Context, m Model, t *tally) <-chan piece {
	out := make(chan piece, pieceBuffer)
	go func() {
		defer close(out)
		quota := t.visit.key.quota
		end, err := quota.turn(ctx)
		if err != nil {
			for i := range t.call.answers() {
				s.ended(t, i, err)
			}
			return // whoever reads knows the end of ctx
		}
		defer end()
		var choices sync.WaitGroup
		for i := range t.call.answers() {
			choices.Go(func() { s.answer(ctx, m, t, i, out) })
		}
		choices.Wait()
		quota.spend(t.spent())
	}()
	return out
}

// answer sends the events of one choice, and notes them.
func (s *Server) answer(ctx context.Context, m Model, t *tally, choice int, out chan<- piece) {
	var failed error
	defer func() { s.ended(t, choice, cmp.Or(failed, context.Cause(ctx))) }()
	send := func(p piece) bool {
		p.choice = choice
		select {
		case out <- p:
			return true
		case <-ctx.Done():
			return false
		}
	}
	defer func() {
		if r := recover(); r != nil {
			failed = fmt.Errorf("a panic while the model answered: %v\n%s", r, debug.Stack())
			send(piece{err: failed})
		}
	}()
	c := t.call
	r := c.requestOf(choice)
	var called bool // c.oneCall: a call is whole
	if c.oneCall {
		r.Interrupted = func() bool { return called }
	}
	events := m.Generate
	if c.chat {
		events = m.Chat
	}
	for e, err := range events(ctx, r) {
		if err != nil {
			if cause := context.Cause(ctx); ctx.Err() != nil && cause != nil {
				err = cause
			}
			failed = err
			send(piece{err: err})
			return
		}
		s.noted(t, choice, &e)
		if e.Call != nil && e.Call.Done && !e.Call.Void {
			called = true
		}
		if !send(piece{Event: e}) {
			return
		}
	}
}

// noted notes an event of a choice, and counts it.
func (s *Server) noted(t *tally, choice int, e *moeflux.Event) {
	since, first := t.noted(choice, e)
	if e.Token != nil {
		s.metrics.token(t, since, first)
	}
}

// ended notes that a choice has ended, and counts it.
func (s *Server) ended(t *tally, choice int, err error) {
	c := t.ended(choice, err)
	s.metrics.answered(t, &c)
	s.health.ended(t.model, c.end != nil, err)
}
