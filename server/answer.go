package server

import (
	"cmp"
	"context"
	"fmt"
	"runtime/debug"
	"sync"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/models"
	"github.com/moeflux/moeflux-actor/server/visit"
)

// pieceBuffer is how many events an answer may be ahead of its reader. A model that is further
// ahead waits; the others go on without it.
const pieceBuffer = 64

// answers asks the model for the choices of a call, at once, when it is the turn of the call's key,
// and returns their events until all have ended or ctx has. Whoever reads them must cancel ctx when
// it is done.
func (s *Server) answers(ctx context.Context, m models.Model, t *visit.Tally) <-chan api.Piece {
	out := make(chan api.Piece, pieceBuffer)
	go func() {
		defer close(out)
		quota := t.Visit.Key.Quota
		end, err := quota.Turn(ctx)
		if err != nil {
			for i := range t.Call.Answers() {
				s.ended(t, i, err)
			}
			return // whoever reads knows the end of ctx
		}
		defer end()
		var choices sync.WaitGroup
		for i := range t.Call.Answers() {
			choices.Go(func() { s.answer(ctx, m, t, i, out) })
		}
		choices.Wait()
		quota.Spend(t.Spent())
	}()
	return out
}

// answer sends the events of one choice, and notes them.
func (s *Server) answer(ctx context.Context, m models.Model, t *visit.Tally, choice int, out chan<- api.Piece) {
	var failed error
	defer func() { s.ended(t, choice, cmp.Or(failed, context.Cause(ctx))) }()
	send := func(p api.Piece) bool {
		p.Choice = choice
		select {
		case out <- p:
			return true
		case <-ctx.Done():
			return false
		}
	}
	defer func() {
		if r := recover(); r != nil {
			s.o.Logger.Error("a model panicked", "id", t.Visit.ID, "reason", fmt.Sprint(r), "stack", string(debug.Stack()))
			failed = panicked(t.Visit.ID)
			send(api.Piece{Err: failed})
		}
	}()
	c := t.Call
	r := c.RequestOf(choice)
	var called bool // c.oneCall: a call is whole
	if c.OneCall {
		r.Interrupted = func() bool { return called }
	}
	events := m.Generate
	if c.Chat {
		events = m.Chat
	}
	for e, err := range events(ctx, r) {
		if err != nil {
			if cause := context.Cause(ctx); ctx.Err() != nil && cause != nil {
				err = cause
			}
			failed = err
			send(api.Piece{Err: err})
			return
		}
		s.noted(t, choice, &e)
		if e.Call != nil && e.Call.Done && !e.Call.Void {
			called = true
		}
		if !send(api.Piece{Event: e}) {
			return
		}
	}
}

// noted notes an event of a choice, and counts it.
func (s *Server) noted(t *visit.Tally, choice int, e *moeflux.Event) {
	since, first := t.Noted(choice, e)
	if e.Token != nil {
		s.metrics.Token(t, since, first)
	}
}

// ended notes that a choice has ended, and counts it.
func (s *Server) ended(t *visit.Tally, choice int, err error) {
	c := t.Ended(choice, err)
	s.metrics.Answered(t, &c)
	s.health.ended(t.Model, c.End != nil, err)
}
