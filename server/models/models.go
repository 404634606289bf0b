// Package models is what a server needs of the models that it serves: to generate, to be found by
// the names that clients use, to be borrowed where they are not always in memory, and to be
// watched.
package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// Model is what the server needs of a model. *moeflux.Model is one.
type Model interface {
	moeflux.Generator
	// Info returns the settings in use; of these the server tells the context.
	Info() moeflux.Info
	// ChatPrompt returns the prompt of a conversation.
	ChatPrompt(r moeflux.Request) (moeflux.Prompt, error)
	// Tokenizer returns what turns text into tokens and back.
	Tokenizer() *moeflux.Tokenizer
}

// Served is a model and the names by which clients ask for it.
type Served struct {
	Name    string // as it is listed
	Aliases []string
	Model   Model
	// Exactness names the settings that change results; "" means what Model.Info says.
	Exactness string
	// Defaults are what is drawn with where a request does not say, for replies that tell.
	Defaults moeflux.Sampling
	// Engine returns what the server watches of the model, or nil while that is not in memory. nil:
	// it has no engine.
	Engine func() Engine
}

// Label names the settings that change results, of a model that is in memory.
func (m *Served) Label() string { return cmp.Or(m.Exactness, m.Model.Info().Exactness) }

// Engine is what the server watches of a model's engine. *actors.Engine, which Model.Engine of the
// root package returns, is one.
type Engine interface {
	Info() moeflux.Info
	// Stats returns what the engine has counted.
	Stats(ctx context.Context) (*moeflux.Stats, error)
	// Records is the engine's log, and RecordMeta says what it is of.
	Records() *record.Log
	RecordMeta() record.Meta
}

// StatsTime is how long a reader of figures waits for an engine's.
const StatsTime = 2 * time.Second

// Watched returns the engine of a model; nil if it has none, or none in memory.
func (m *Served) Watched() Engine {
	if m.Engine == nil {
		return nil
	}
	return m.Engine()
}

// List is all that a server serves, in the order in which they are listed.
type List []Served

// Check reports names that do not tell models apart.
func (l List) Check() error {
	if len(l) == 0 {
		return errors.New("server: there is no model to serve")
	}
	seen := make(map[string]bool)
	for _, m := range l {
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			if name == "" || seen[name] {
				return fmt.Errorf("server: two models have the name %q, or one has none", name)
			}
			seen[name] = true
		}
	}
	return nil
}

// Find returns the model that a client names. Where there is one only, it need not.
func (l List) Find(name string) (*Served, *fault.Fault) {
	if name == "" && len(l) == 1 {
		return &l[0], nil
	}
	var names []string
	for i := range l {
		m := &l[i]
		if name == m.Name || slices.Contains(m.Aliases, name) {
			return m, nil
		}
		names = append(names, m.Name)
	}
	if name == "" {
		return nil, fault.Invalid("model", "model is missing; there are %q", names)
	}
	return nil, &fault.Fault{
		Status: http.StatusNotFound, Type: fault.NotFound, Code: "model_not_found", Param: "model",
		Message: fmt.Sprintf("there is no model %q; there are %q", name, names),
	}
}

// Watchable returns the model that is named, whose engine is in memory; "" means the first one that
// has an engine there.
func (l List) Watchable(name string) (*Served, *fault.Fault) {
	if name != "" {
		m, f := l.Find(name)
		if f == nil && m.Watched() == nil {
			f = noEngine
		}
		return m, f
	}
	for i := range l {
		if m := &l[i]; m.Watched() != nil {
			return m, nil
		}
	}
	return nil, noEngine
}

var noEngine = &fault.Fault{Status: http.StatusConflict, Type: fault.InvalidRequest, Code: "no_engine", Message: "there is no engine to look at: the model is not in memory now"}
