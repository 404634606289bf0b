package server

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"time"

	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/models"
	"github.com/moeflux/moeflux-actor/server/visit"
	"github.com/moeflux/moeflux-actor/server/wire"
)

// keepaliveEvery is how long a stream is silent at most. Clients give up on a silent one, some
// after seconds.
const keepaliveEvery = time.Second

// serve answers a call. It panics, to break the connection, where nobody is there to be told of a
// failure.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, m *models.Served, c *api.Call, to api.Reply, out *wire.Stream) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(fault.ErrGone)
	t := s.underWay.Begin(r, m.Name, c)
	defer s.underWay.End(t)
	stop := context.AfterFunc(s.base, func() { cancel(context.Cause(s.base)) })
	defer stop()
	var err error
	if c.Stream {
		err = s.streamed(ctx, s.answers(ctx, m.Model, t), to, out)
	} else {
		err = whole(ctx, s.answers(ctx, m.Model, t), to, func() { t.TellTiming(w, false) })
	}
	if err == nil {
		if c.Stream {
			t.TellTiming(w, true)
		}
		return
	}
	visit.Note(r, err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, fault.ErrGone), out.Err != nil:
		panic(http.ErrAbortHandler) // nobody is there to be told; a clean end would be a success
	case out.Begun:
		to.Fail(fault.Of(err))
		if out.Err != nil {
			panic(http.ErrAbortHandler)
		}
	default:
		fault.Write(w, fault.Of(err), fault.FormOf(r))
	}
}

// whole gathers all pieces, calls ready, and then writes the reply.
func whole(ctx context.Context, pieces <-chan api.Piece, to api.Reply, ready func()) error {
	for {
		select {
		case p, more := <-pieces:
			switch {
			case !more && ctx.Err() != nil:
				return context.Cause(ctx)
			case !more:
				ready()
				to.End()
				return nil
			case p.Err != nil:
				return p.Err
			}
			to.Piece(p)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// streamed writes pieces as they come. The stream begins with the first token, or when it has been
// silent for long enough: so most requests that cannot be served get a status that says so.
func (s *Server) streamed(ctx context.Context, pieces <-chan api.Piece, to api.Reply, out *wire.Stream) error {
	silent := time.NewTicker(keepaliveEvery)
	defer silent.Stop()
	begin := func() {
		if !out.Begun {
			out.Begin()
			to.Begin()
		}
	}
	for out.Err == nil {
		select {
		case p, more := <-pieces:
			switch {
			case !more && ctx.Err() != nil:
				return context.Cause(ctx)
			case !more:
				begin()
				to.End()
				return out.Err
			case p.Err != nil:
				return p.Err
			case p.Prompt == nil:
				begin()
			}
			letTextsGo()
			to.Piece(p)
		case <-silent.C:
			begin()
			if time.Since(out.Wrote) >= keepaliveEvery*3/4 {
				to.Keepalive()
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return out.Err
}

// letTextsGo lets what else can run go first. All texts of a step get their tokens at once, and the
// engine waits some hundred microseconds for all of them to ask for the next ones. To write a token
// to a client takes as long as several texts need for that. So a text whose turn comes after the
// writing for others would miss the step, and steps of some texts each read experts several times.
func letTextsGo() { runtime.Gosched() }
