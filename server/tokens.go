package server

import (
	"context"
	"net/http"
	"time"
	"unicode/utf8"

	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/api/openai"
	"github.com/moeflux/moeflux-actor/server/body"
	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/models"
	"github.com/moeflux/moeflux-actor/server/visit"
	"github.com/moeflux/moeflux-actor/server/wire"
)

// tokenize answers POST /tokenize, as llama.cpp has it: content, add_special, with_pieces.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	s.small(w, r, func(m *models.Served, o *body.Object) (any, *fault.Fault) {
		text, given := o.Text("content")
		if !given {
			o.Fail("content", "content is missing")
		}
		special, _ := o.Boolean("add_special")
		pieces, _ := o.Boolean("with_pieces")
		o.Only("parse_special", "marks in the text are read as such", true)
		if o.Fault() != nil {
			return nil, o.Fault()
		}
		ids, err := m.Model.Tokenizer().Encode(text, special)
		if err != nil {
			return nil, fault.Of(err)
		}
		if !pieces {
			return map[string]any{"tokens": append([]int32{}, ids...)}, nil
		}
		type token struct {
			ID    int32 `json:"id"`
			Piece any   `json:"piece"` // a text, or bytes where they are not one
		}
		tokens := []token{}
		for _, id := range ids {
			b, _ := m.Model.Tokenizer().TokenBytes(id)
			tokens = append(tokens, token{id, textOrBytes(b)})
		}
		return map[string]any{"tokens": tokens}, nil
	})
}

// textOrBytes returns bytes as a text where they are one, else as numbers.
func textOrBytes(b []byte) any {
	if utf8.Valid(b) {
		return string(b)
	}
	return api.Numbers(b)
}

// detokenize answers POST /detokenize: tokens.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) {
	s.small(w, r, func(m *models.Served, o *body.Object) (any, *fault.Fault) {
		var ids []int32
		if !o.Value("tokens", "a list of whole numbers", &ids) {
			o.Fail("tokens", "tokens is missing")
			return nil, o.Fault()
		}
		return map[string]string{"content": m.Model.Tokenizer().Decode(ids, false)}, nil
	})
}

// applyTemplate answers POST /apply-template: what a chat completion would read.
func (s *Server) applyTemplate(w http.ResponseWriter, r *http.Request) {
	s.small(w, r, func(m *models.Served, o *body.Object) (any, *fault.Fault) {
		c, f := openai.ReadChat(o)
		if f != nil {
			return nil, f
		}
		p, err := m.Model.ChatPrompt(c.Request)
		if err != nil {
			return nil, fault.Of(err)
		}
		return map[string]string{"prompt": p.Text}, nil
	})
}

// small answers a request that needs no tokens of the model's.
func (s *Server) small(w http.ResponseWriter, r *http.Request, answer func(*models.Served, *body.Object) (any, *fault.Fault)) {
	o, f := body.Read(r)
	// The deadline of the body would end the loading of a model, as if the client had left.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	var m *models.Served
	if f == nil {
		name, _ := o.Text("model")
		m, f = s.models.Find(name)
	}
	var value any
	if f == nil {
		value, f = s.withModel(r.Context(), m, func(m *models.Served) (any, *fault.Fault) { return answer(m, o) })
	}
	if f != nil {
		visit.Refuse(w, r, f)
		return
	}
	wire.JSON(w, http.StatusOK, value)
}

// withModel calls answer with a model that is in memory meanwhile.
func (s *Server) withModel(ctx context.Context, m *models.Served, answer func(*models.Served) (any, *fault.Fault)) (any, *fault.Fault) {
	in, giveBack, err := models.Borrow(ctx, m.Model)
	if err != nil {
		return nil, fault.Of(err)
	}
	defer giveBack()
	held := *m
	held.Model = in
	return answer(&held)
}
