package server

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// keepaliveEvery is how long a stream is silent at most. Clients give up on a silent one, some
// after seconds.
const keepaliveEvery = time.Second

// serve answers a call. It panics, to break the connection, where nobody is there to be told of a
// failure.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, m *Served, c *call, to reply, out *sse) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(errGone)
	t := s.underWay.begin(r, m.Name, c)
	defer s.underWay.end(t)
	stop := context.AfterFunc(s.base, func() { cancel(context.Cause(s.base)) })
	defer stop()
	var err error
	if c.stream {
		err = s.streamed(ctx, s.answers(ctx, m.Model, t), to, out)
	} else {
		err = whole(ctx, s.answers(ctx, m.Model, t), to, func() { t.tellTiming(w, false) })
	}
	if err == nil {
		if c.stream {
			t.tellTiming(w, true)
		}
		return
	}
	note(r, err)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, errGone), out.err != nil:
		panic(http.ErrAbortHandler) // nobody is there to be told; a clean end would be a success
	case out.begun:
		to.fail(faultOf(err))
		if out.err != nil {
			panic(http.ErrAbortHandler)
		}
	default:
		writeFault(w, faultOf(err), formOf(r))
	}
}

// whole gathers all pieces, calls ready, and then writes the reply.
func whole(ctx context.Context, pieces <-chan piece, to reply, ready func()) error {
	for {
		select {
		case p, more := <-pieces:
			switch {
			case !more && ctx.Err() != nil:
				return context.Cause(ctx)
			case !more:
				ready()
				to.end()
				return nil
			case p.err != nil:
				return p.err
			}
			to.piece(p)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// streamed writes pieces as they come. The stream begins with the first token, or when it has been
// silent for long enough: so most requests that cannot be served get a status that says so.
func (s *Server) streamed(ctx context.Context, pieces <-chan piece, to reply, out *sse) error {
	silent := time.NewTicker(keepaliveEvery)
	defer silent.Stop()
	begin := func() {
		if !out.begun {
			out.begin()
			to.begin()
		}
	}
	for out.err == nil {
		select {
		case p, more := <-pieces:
			switch {
			case !more && ctx.Err() != nil:
				return context.Cause(ctx)
			case !more:
				begin()
				to.end()
				return out.err
			case p.err != nil:
				return p.err
			case p.Prompt == nil:
				begin()
			}
			to.piece(p)
		case <-silent.C:
			begin()
			if time.Since(out.wrote) >= keepaliveEvery*3/4 {
				to.keepalive()
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return out.err
}
