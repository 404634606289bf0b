package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/metric"
	nometrics "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/moeflux/moeflux-actor/server/access"
	"github.com/moeflux/moeflux-actor/server/api/responses"
	"github.com/moeflux/moeflux-actor/server/figures"
	"github.com/moeflux/moeflux-actor/server/models"
	"github.com/moeflux/moeflux-actor/server/visit"
	"github.com/moeflux/moeflux-actor/server/watch"
)

// Options say what a server serves, and to whom. Models alone must be set.
type Options struct {
	// Models are what clients may ask for, in the order in which they are listed.
	Models []models.Served
	// Keys are those that may ask. None: anybody who reaches the server.
	Keys []access.Key
	// Hosts are the names by which clients may call the server, beside localhost and addresses in
	// numbers. A page of a foreign site that has its own name point here is refused.
	Hosts []string
	// Origins are the web pages (scheme://host[:port]) that may ask from a browser. None: only
	// pages that the server itself gave.
	Origins []string
	// MaxBody bounds the body of a request in bytes; 0 means 32 MiB.
	MaxBody int64
	// Patience is how long a client may take to send its body, or to take a piece of an answer; 0
	// means 30 s. In Listen its headers have as long, and no longer than 10 s.
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

// Server is a handler of HTTP requests. It starts no goroutine of its own. It has a field for each
// of its parts, since a request passes nearly all of them.
type Server struct {
	o       Options
	handler http.Handler
	models  models.List
	keys    *access.Ring
	kept    *responses.Kept
	began   time.Time

	tracer   trace.Tracer
	metrics  *figures.Requests
	underWay *visit.UnderWay
	views    *watch.Views
	health   health
	pulse    pulse

	base   context.Context // of all requests
	cancel context.CancelCauseFunc
	doors  *doors
}

// New returns the handler. The error says which option is wrong.
func New(o Options) (*Server, error) {
	if err := models.List(o.Models).Check(); err != nil {
		return nil, err
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
	if o.Meters == nil {
		o.Meters = nometrics.NewMeterProvider()
	}
	s := &Server{o: o, models: o.Models, underWay: visit.NewUnderWay(), kept: responses.NewKept(o.Now), began: o.Now(), doors: newDoors()}
	var err error
	if s.keys, err = access.NewRing(o.Keys, o.Now); err != nil {
		return nil, err
	}
	if s.metrics, err = figures.New(o.Meters, o.Keys); err != nil {
		return nil, err
	}
	s.tracer = o.Tracer.Tracer(figures.Scope)
	s.pulse = pulse{hung: hungAfter + o.Patience, seen: make(map[string]sighting)}
	if err := s.metrics.Observe(o.Meters, figures.Sources{Models: s.models, Keys: s.keys, UnderWay: s.underWay, Logger: o.Logger}); err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s.views = watch.New(s.models, s.underWay, o.Patience, s.doors.shutting)
	s.base, s.cancel = context.WithCancelCause(context.Background())
	if s.handler, err = s.guarded(s.routes()); err != nil {
		return nil, err
	}
	return s, nil
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }
