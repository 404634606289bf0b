package server

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	moeflux "github.com/moeflux/moeflux-actor"
)

// Options say what a server serves, and to whom. Models alone must be set.
type Options struct {
	// Models are what clients may ask for, in the order in which they are listed.
	Models []Served
	// Keys are those that may ask. None: anybody who reaches the server.
	Keys []Key
	// Hosts are the names by which clients may call the server, beside localhost and addresses in
	// numbers. A page of a foreign site that has its own name point here is refused.
	Hosts []string
	// Origins are the web pages (scheme://host[:port]) that may ask from a browser. None: only
	// pages that the server itself gave.
	Origins []string
	// MaxBody bounds the body of a request in bytes; 0 means 32 MiB.
	MaxBody int64
	// Patience is how long a client may take to send its body, or to take a piece of an answer; 0
	// means 30 s.
	Patience time.Duration
	// Logger gets a line for each request, without a word of its text. nil means none.
	Logger *slog.Logger
	// SharePrefixes lets requests of one key begin like those of another without being read again.
	// The time of an answer tells then what others have asked.
	SharePrefixes bool
	// Meters count requests and, whenever somebody reads them, what engines have counted. nil
	// counts nothing.
	Meters metric.MeterProvider
	// Figures answers GET /metrics, for those who may look behind the scenes (Key.Admin). nil:
	// there is no such path.
	Figures http.Handler
	// Tracer makes the spans of requests, under those that clients name (traceparent). It is to be
	// that of the models' engines, too. nil makes none: what clients name goes to the engines.
	Tracer trace.TracerProvider
	// Now gives the time of replies; nil means time.Now.
	Now func() time.Time
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

// Server is a handler of HTTP requests. It starts no goroutine of its own.
type Server struct {
	o       Options
	handler http.Handler
	keys    *keyring
	kept    *conversations
	began   time.Time

	tracer   trace.Tracer
	metrics  *metrics
	underWay underWay
	health   health
	pulse    pulse

	recording sync.Mutex   // of who reads records
	listeners atomic.Int64 // to the live feed

	base   context.Context // of all requests
	cancel context.CancelCauseFunc
	doors  *doors
}

// New returns the handler. The error says which option is wrong.
func New(o Options) (*Server, error) {
	if len(o.Models) == 0 {
		return nil, errors.New("server: there is no model to serve")
	}
	seen := make(map[string]bool)
	for _, m := range o.Models {
		for _, name := range append([]string{m.Name}, m.Aliases...) {
			if name == "" || seen[name] {
				return nil, fmt.Errorf("server: two models have the name %q, or one has none", name)
			}
			seen[name] = true
		}
	}
	if o.MaxBody == 0 {
		o.MaxBody = 32 << 20
	}
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Tracer == nil {
		o.Tracer = noop.NewTracerProvider()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	keys, err := newKeyring(o.Keys, o.Now)
	if err != nil {
		return nil, err
	}
	counts, err := newMetrics(&o)
	if err != nil {
		return nil, err
	}
	s := &Server{o: o, metrics: counts, underWay: underWay{calls: make(map[*tally]struct{})}, keys: keys, kept: newConversations(o.Now), began: o.Now(), doors: newDoors()}
	s.tracer = o.Tracer.Tracer(meterName)
	s.pulse = pulse{hung: hungAfter + o.Patience, seen: make(map[string]sighting)}
	if err := s.observe(); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.base, s.cancel = context.WithCancelCause(context.Background())
	if s.handler, err = s.guarded(s.routes()); err != nil {
		return nil, err
	}
	return s, nil
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// complete answers a request of an API whose answers are texts: read makes a call of its body, and
// make the reply.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, read func(*object) (*call, *fault), make func(*sse, *call, head) reply) {
	o, f := readBody(r)
	var c *call
	if f == nil {
		// The deadline of the body would end a long answer, as if the client had left.
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		c, f = read(o)
	}
	var m *Served
	if f == nil {
		m, f = s.model(c.model)
	}
	if f != nil {
		writeFault(w, f, formOf(r))
		note(r, f)
		return
	}
	k := keyOf(r)
	c.request.Key, c.request.Class, c.request.Weight = k.Name, k.Class, k.Weight
	if !s.o.SharePrefixes {
		c.request.Scope = k.Name
	}
	out := newSSE(w, s.o.Patience)
	s.serve(w, r, m, c, make(out, c, head{ID: newID(), Created: s.o.Now().Unix(), Model: m.Name, Fingerprint: m.exactness(), served: m}), out)
}

// model returns the model that a client names. Where there is one only, it need not.
func (s *Server) model(name string) (*Served, *fault) {
	if name == "" && len(s.o.Models) == 1 {
		return &s.o.Models[0], nil
	}
	var names []string
	for i := range s.o.Models {
		m := &s.o.Models[i]
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

// newID returns a name for a reply.
func newID() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
