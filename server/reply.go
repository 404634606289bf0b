package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
)

// reply writes the answer to a call in the form of an API.
type reply interface {
	// begin writes what a stream begins with.
	begin()
	// piece takes an event of a choice: a streamed reply writes it, the other keeps it.
	piece(p piece)
	// keepalive writes what tells the client that the answer is still to come.
	keepalive()
	// fail ends a stream that has begun with an error.
	fail(f *fault)
	// end ends the reply.
	end()
}

// keepaliveEvery is how long a stream is silent at most. Clients give up on a silent one, some
// after seconds.
const keepaliveEvery = time.Second

// serve answers a call. It panics, to break the connection, where nobody is there to be told of a
// failure.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, m *Served, c *call, to reply, out *sse) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(errGone)
	t := s.underWay.begin(r, m, c)
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

// usage is what a call took, in OpenAI's words.
type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	TotalTokens      int `json:"total_tokens"`
	Prompt           struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Completion struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
	Account account `json:"moeflux"`
}

// account is what the request was given of the machine: an extension.
type account struct {
	QueueMS    float64 `json:"queue_ms"`
	TotalMS    float64 `json:"total_ms"`
	DeviceMS   float64 `json:"device_ms"`
	DiskWaitMS float64 `json:"disk_wait_ms"`
	Hit        int64   `json:"experts_hit"`
	Late       int64   `json:"experts_late"`
	Missed     int64   `json:"experts_missed"`
	DiskBytes  int64   `json:"disk_bytes"`
	Cached     int     `json:"cached_tokens"` // of the prompt
	// Exactness names the settings that change results.
	Exactness string `json:"exactness,omitempty"`
}

// usageOf returns the usage of a model's answer that is still to come.
func usageOf(m *Served) usage { return usage{Account: account{Exactness: m.exactness()}} }

// add adds what an answer took. The prompt of several choices counts once, as clients expect it:
// with the first of them.
func (u *usage) add(e *moeflux.Usage, reasoning int, first bool) {
	if first {
		u.PromptTokens += e.PromptTokens
		u.Prompt.Cached += e.ReusedTokens
		u.Account.Cached += e.ReusedTokens
	}
	u.CompletionTokens += e.NewTokens
	u.Completion.Reasoning += reasoning
	u.TotalTokens = u.PromptTokens + u.CompletionTokens
	a, ms := &u.Account, func(ns int64) float64 { return float64(ns) / 1e6 }
	a.QueueMS += ms(e.Account.QueueNS)
	a.TotalMS += ms(e.Account.TotalNS)
	a.DeviceMS += ms(e.Account.DeviceNS)
	a.DiskWaitMS += ms(e.Account.DiskWaitNS)
	a.Hit += e.Account.Hit
	a.Late += e.Account.Late
	a.Missed += e.Account.Missed
	a.DiskBytes += e.Account.DiskBytes
}

// finishReason says in OpenAI's words why a text ended.
func finishReason(e *moeflux.End) string {
	switch {
	case len(e.Message.ToolCalls) > 0 && e.Reason != moeflux.StopLength && e.Reason != moeflux.StopContext:
		return "tool_calls"
	case e.Reason == moeflux.StopLength, e.Reason == moeflux.StopContext:
		return "length"
	}
	return "stop"
}

// thoughts counts the tokens of an answer that are reasoning: those before it says anything.
type thoughts struct {
	tokens, count int
	any, said     bool
}

func (t *thoughts) piece(e *moeflux.Event) {
	t.any = t.any || e.Reasoning != ""
	t.said = t.said || e.Text != "" || e.Call != nil
	if e.Token != nil && !t.said {
		t.tokens++
	}
	if t.any {
		t.count = t.tokens
	}
}
