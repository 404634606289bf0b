package server

import (
	"net/http"
	"time"
)

// dialect is an API whose answers are texts: read makes a call of a body, and write the reply to a
// call. h is what it has in common with the others.
type dialect struct {
	read  func(*object) (*call, *fault)
	write func(w http.ResponseWriter, out *sse, c *call, h head) reply
}

func (s *Server) chatCompletions(w http.ResponseWriter, r *http.Request) {
	s.complete(w, r, dialect{readChat, newChatReply})
}

func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	s.complete(w, r, dialect{readCompletion, newTextReply})
}

func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	s.complete(w, r, dialect{readMessagesCall, newTurnReply})
}

func (s *Server) responses(w http.ResponseWriter, r *http.Request) {
	x := newExchange(s.kept, keyOf(r).Name, s.o.Now)
	s.complete(w, r, dialect{x.read, x.reply})
}

// countTokens answers POST /v1/messages/count_tokens.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	s.small(w, r, func(m *Served, o *object) (any, *fault) {
		c, f := readTurns(o, false)
		if f != nil {
			return nil, f
		}
		p, err := m.Model.ChatPrompt(c.request)
		if err != nil {
			return nil, faultOf(err)
		}
		return map[string]int{"input_tokens": len(p.IDs)}, nil
	})
}

// complete answers a request of an API.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, in dialect) {
	o, f := readBody(r)
	var c *call
	if f == nil {
		// The deadline of the body would end a long answer, as if the client had left.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		c, f = in.read(o)
	}
	var m *Served
	if f == nil {
		m, f = s.models.find(c.model)
	}
	if f != nil {
		refuse(w, r, f)
		return
	}
	k := keyOf(r)
	c.request.Key, c.request.Class, c.request.Weight = k.Name, k.Class, k.Weight
	if !s.o.SharePrefixes {
		c.request.Scope = k.Name
	}
	out := newSSE(w, s.o.Patience)
	h := head{ID: newID(), Created: s.o.Now().Unix(), Model: m.Name, Fingerprint: m.exactness(), served: m}
	s.serve(w, r, m, c, in.write(w, out, c, h), out)
}
