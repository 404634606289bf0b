package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
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

// exactness names the settings that change results, of a model that is in memory.
func (m *Served) exactness() string { return cmp.Or(m.Exactness, m.Model.Info().Exactness) }

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

// statsTime is how long a reader of figures waits for an engine's.
const statsTime = 2 * time.Second

// engine returns the engine of a model; nil if it has none, or none in memory.
func (m *Served) engine() Engine {
	if m.Engine == nil {
		return nil
	}
	return m.Engine()
}

// modelList is all that a server serves, in the order in which they are listed.
type modelList []Served

// check reports names that do not tell models apart.
func (l modelList) check() error {
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

// find returns the model that a client names. Where there is one only, it need not.
func (l modelList) find(name string) (*Served, *fault) {
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
		return nil, invalid("model", "model is missing; there are %q", names)
	}
	return nil, &fault{
		Status: http.StatusNotFound, Type: notFound, Code: "model_not_found", Param: "model",
		Message: fmt.Sprintf("there is no model %q; there are %q", name, names),
	}
}

// watchable returns the model that is named, whose engine is in memory; "" means the first one that
// has an engine there.
func (l modelList) watchable(name string) (*Served, *fault) {
	if name != "" {
		m, f := l.find(name)
		if f == nil && m.engine() == nil {
			f = noEngine
		}
		return m, f
	}
	for i := range l {
		if m := &l[i]; m.engine() != nil {
			return m, nil
		}
	}
	return nil, noEngine
}

var noEngine = &fault{Status: http.StatusConflict, Type: invalidRequest, Code: "no_engine", Message: "there is no engine to look at: the model is not in memory now"}
