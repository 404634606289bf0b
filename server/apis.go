package server

import (
	"net/http"
	"time"

	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/api/anthropic"
	"github.com/moeflux/moeflux-actor/server/api/openai"
	"github.com/moeflux/moeflux-actor/server/api/responses"
	"github.com/moeflux/moeflux-actor/server/body"
	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/models"
	"github.com/moeflux/moeflux-actor/server/visit"
	"github.com/moeflux/moeflux-actor/server/wire"
)

// dialect is an API whose answers are texts: read makes a call of a body, and write the reply to a
// call. h is what it has in common with the others.
type dialect struct {
	read  func(*body.Object) (*api.Call, *fault.Fault)
	write func(w http.ResponseWriter, out *wire.Stream, c *api.Call, h api.Head) api.Reply
}

func (s *Server) chatCompletions(w http.ResponseWriter, r *http.Request) {
	s.complete(w, r, dialect{openai.ReadChat, openai.NewChatReply})
}

func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	s.complete(w, r, dialect{openai.ReadCompletion, openai.NewTextReply})
}

func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	s.complete(w, r, dialect{anthropic.Read, anthropic.NewReply})
}

func (s *Server) responses(w http.ResponseWriter, r *http.Request) {
	x := responses.New(s.kept, visit.CallerOf(r).Name, s.o.Now)
	s.complete(w, r, dialect{x.Read, x.Reply})
}

// countTokens answers POST /v1/messages/count_tokens.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	s.small(w, r, func(m *models.Served, o *body.Object) (any, *fault.Fault) {
		c, f := anthropic.ReadTurns(o, false)
		if f != nil {
			return nil, f
		}
		p, err := m.Model.ChatPrompt(c.Request)
		if err != nil {
			return nil, fault.Of(err)
		}
		return map[string]int{"input_tokens": len(p.IDs)}, nil
	})
}

// complete answers a request of an API.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, in dialect) {
	o, f := body.Read(r)
	var c *api.Call
	if f == nil {
		// The deadline of the body would end a long answer, as if the client had left.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		c, f = in.read(o)
	}
	var m *models.Served
	if f == nil {
		m, f = s.models.Find(c.Model)
	}
	if f != nil {
		visit.Refuse(w, r, f)
		return
	}
	k := visit.CallerOf(r)
	c.Request.Key, c.Request.Class, c.Request.Weight = k.Name, k.Class, k.Weight
	if !s.o.SharePrefixes {
		c.Request.Scope = k.Name
	}
	out := wire.NewStream(w, s.o.Patience)
	h := api.Head{ID: wire.NewID(), Created: s.o.Now().Unix(), Model: m.Name, Fingerprint: m.Label(), Served: m}
	s.serve(w, r, m, c, in.write(w, out, c, h), out)
}
