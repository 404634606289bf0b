package server

import (
	"context"
	"net/http"
	"time"
	"unicode/utf8"
)

// tokenize answers POST /tokenize, as llama.cpp has it: content, add_special, with_pieces.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) {
	s.small(w, r, func(m *Served, o *object) (any, *fault) {
		text, given := o.text("content")
		if !given {
			o.fail("content", "content is missing")
		}
		special, _ := o.boolean("add_special")
		pieces, _ := o.boolean("with_pieces")
		o.only("parse_special", "marks in the text are read as such", true)
		if o.fault() != nil {
			return nil, o.fault()
		}
		ids, err := m.Model.Tokenizer().Encode(text, special)
		if err != nil {
			return nil, faultOf(err)
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
	return numbers(b)
}

// detokenize answers POST /detokenize: tokens.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) {
	s.small(w, r, func(m *Served, o *object) (any, *fault) {
		var ids []int32
		if !o.value("tokens", "a list of whole numbers", &ids) {
			o.fail("tokens", "tokens is missing")
			return nil, o.fault()
		}
		return map[string]string{"content": m.Model.Tokenizer().Decode(ids, false)}, nil
	})
}

// applyTemplate answers POST /apply-template: what a chat completion would read.
func (s *Server) applyTemplate(w http.ResponseWriter, r *http.Request) {
	s.small(w, r, func(m *Served, o *object) (any, *fault) {
		c, f := readChat(o)
		if f != nil {
			return nil, f
		}
		p, err := m.Model.ChatPrompt(c.request)
		if err != nil {
			return nil, faultOf(err)
		}
		return map[string]string{"prompt": p.Text}, nil
	})
}

// small answers a request that needs no tokens of the model's.
func (s *Server) small(w http.ResponseWriter, r *http.Request, answer func(*Served, *object) (any, *fault)) {
	o, f := readBody(r)
	// The deadline of the body would end the loading of a model, as if the client had left.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	var m *Served
	if f == nil {
		name, _ := o.text("model")
		m, f = s.models.find(name)
	}
	var value any
	if f == nil {
		value, f = s.withModel(r.Context(), m, func(m *Served) (any, *fault) { return answer(m, o) })
	}
	if f != nil {
		refuse(w, r, f)
		return
	}
	writeJSON(w, http.StatusOK, value)
}

// withModel calls answer with a model that is in memory meanwhile.
func (s *Server) withModel(ctx context.Context, m *Served, answer func(*Served) (any, *fault)) (any, *fault) {
	in, giveBack, err := borrow(ctx, m.Model)
	if err != nil {
		return nil, faultOf(err)
	}
	defer giveBack()
	held := *m
	held.Model = in
	return answer(&held)
}
