package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server/models"
)

// shelf is a model that is brought when it is borrowed, unless err says why not.
type shelf struct {
	scripted.Model
	err  error
	lent atomic.Int32
}

func (s *shelf) Borrow(context.Context) (models.Model, func(), error) {
	if s.err != nil {
		return nil, nil, &models.LoadError{Model: "far", Err: s.err}
	}
	s.lent.Add(1)
	return &s.Model, func() { s.lent.Add(-1) }, nil
}

func (s *shelf) Status() models.Status { return models.Unloaded }

func (s *shelf) Chat(ctx context.Context, r moeflux.Request) moeflux.Events {
	return func(yield func(moeflux.Event, error) bool) {
		in, giveBack, err := s.Borrow(ctx)
		if err != nil {
			yield(moeflux.Event{}, err)
			return
		}
		defer giveBack()
		in.Chat(ctx, r)(yield)
	}
}

// The list says which models are there, by which names, and where each is.
func TestListSaysWhereModelsAre(t *testing.T) {
	s := start(t, Options{Models: []models.Served{{Name: "near", Model: new(scripted.Model)}, {Name: "far", Aliases: []string{"gpt-4o"}, Model: new(shelf)}}})
	_, list := get(t, s.URL+"/v1/models")
	for _, want := range []string{`"id":"near"`, `"status":{"value":"loaded"}`, `"aliases":["gpt-4o"],"status":{"value":"unloaded"}`} {
		if !strings.Contains(list, want) {
			t.Errorf("%s does not contain %s", list, want)
		}
	}
	if _, one := get(t, s.URL+"/v1/models/gpt-4o"); !strings.Contains(one, `"id":"far"`) {
		t.Errorf("the alias is %s", one)
	}
}

// A model that is not loaded is borrowed for what needs it, and given back.
func TestBorrowed(t *testing.T) {
	far := new(shelf)
	s := start(t, Options{Models: []models.Served{{Name: "far", Model: far}}})
	for path, want := range map[string]string{
		"/v1/chat/completions": `"content":"hello`, "/v1/messages/count_tokens": `"input_tokens":2`, "/apply-template": "user: hello",
	} {
		code, body := post(t, s.URL+path, `{"model":"far","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`)
		if code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %s", path, code, body, want)
		}
		if n := far.lent.Load(); n != 0 {
			t.Errorf("%s: %d are not given back", path, n)
		}
	}
}

// A model that cannot be loaded is an error in the form of each API, without what only an operator
// should know.
func TestLoadFaults(t *testing.T) {
	far := &shelf{err: errors.New("/secret/path is damaged")}
	s := start(t, Options{Models: []models.Served{{Name: "far", Model: far}}})
	for path, want := range map[string]string{
		"/v1/chat/completions": `"code":"model_load_failed"`, "/v1/responses": `"code":"model_load_failed"`,
		"/v1/messages": `"type":"api_error"`, "/v1/messages/count_tokens": `"type":"api_error"`, "/apply-template": `"type":"server_error"`,
	} {
		body := `{"model":"far","max_tokens":9,"input":"hello","messages":[{"role":"user","content":"hello"}]}`
		code, answer := post(t, s.URL+path, body)
		if code != http.StatusInternalServerError || !strings.Contains(answer, want) || !strings.Contains(answer, `the model \"far\" could not be loaded`) || strings.Contains(answer, "secret") {
			t.Errorf("%s: %d %s", path, code, answer)
		}
	}
	if _, events := post(t, s.URL+"/v1/chat/completions", `{"model":"far","stream":true,"messages":[{"role":"user","content":"hello"}]}`); !strings.Contains(events, "model_load_failed") || strings.Contains(events, "[DONE]") {
		t.Errorf("a stream: %s", events)
	}
	for _, err := range []error{&moeflux.MemoryError{}, fmt.Errorf("opening: %w", &moeflux.ContextMemoryError{})} {
		far.err = err
		code, answer := post(t, s.URL+"/v1/chat/completions", `{"model":"far","messages":[{"role":"user","content":"hello"}]}`)
		if code != http.StatusServiceUnavailable || !strings.Contains(answer, "memory is short") {
			t.Errorf("%v: %d %s", err, code, answer)
		}
	}
}

// A name that nobody has is answered with those that there are, in the form of each API.
func TestUnknownModel(t *testing.T) {
	s := start(t, Options{Models: []models.Served{{Name: "near", Model: new(scripted.Model)}, {Name: "far", Model: new(shelf)}}})
	for path, want := range map[string]string{
		"/v1/chat/completions": `"code":"model_not_found"`, "/v1/completions": `"code":"model_not_found"`, "/v1/responses": `"code":"model_not_found"`, "/v1/messages": `{"error":{"message":"there is no model \"x\"`,
		"/v1/messages/count_tokens": `"type":"not_found_error"`, "/tokenize": `"code":"model_not_found"`,
	} {
		field := "input"
		if path == "/v1/completions" {
			field = "prompt"
		}
		code, answer := post(t, s.URL+path, `{"model":"x","max_tokens":9,"`+field+`":"hello","content":"hello","messages":[{"role":"user","content":"hello"}]}`)
		if code != http.StatusNotFound || !strings.Contains(answer, want) || !strings.Contains(answer, "near") || !strings.Contains(answer, "far") {
			t.Errorf("%s: %d %s", path, code, answer)
		}
	}
}
