package server

import (
	"fmt"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/server/body"
	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/visit"
	"github.com/moeflux/moeflux-actor/server/wire"
)

// guarded returns the handler that decides who may come in, and what each brings.
func (s *Server) guarded(inner http.Handler) (http.Handler, error) {
	cross := http.NewCrossOriginProtection()
	for _, origin := range s.o.Origins {
		if err := cross.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("server: %w", err)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit.Visit{ID: "req-" + wire.NewID(), Key: s.keys.Nobody, Began: time.Now()}
		r = v.Within(r)
		r, span := s.beginSpan(w, r, v)
		h := w.Header()
		h.Set("X-Request-Id", v.ID)
		h.Set("Request-Id", v.ID) // as Anthropic's clients want it
		h.Set("X-Content-Type-Options", "nosniff")
		log := &logged{ResponseWriter: w}
		defer func() {
			s.recovered(log, r, span, recover())
			s.left(log, r, span)
		}()
		f := s.check(log, r, cross)
		if f == nil && !needsNoKey(r.URL.Path) && !isInside(r.URL.Path) {
			var leave func()
			if leave, f = s.admit(log, r, v); f == nil {
				defer leave()
			}
		}
		if f != nil {
			visit.Refuse(log, r, f)
			return
		}
		inner.ServeHTTP(log, r)
	}), nil
}

// admit gives a request its key and a place, which leave gives back.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, v *visit.Visit) (leave func(), f *fault.Fault) {
	k, f := s.keys.Find(r)
	if f != nil {
		return nil, f
	}
	v.Key = k
	if r.Method != http.MethodPost {
		return func() {}, nil
	}
	if !s.doors.enter() {
		return nil, fault.Of(fault.ErrDraining)
	}
	left, f := k.Quota.Enter()
	left.Tell(w.Header(), r)
	if f != nil {
		s.doors.leave()
		return nil, f
	}
	return func() {
		k.Quota.Leave()
		s.doors.leave()
	}, nil
}

// check decides whether a request may have come from where it comes from, and bounds it.
func (s *Server) check(w http.ResponseWriter, r *http.Request, cross *http.CrossOriginProtection) *fault.Fault {
	// net/http reads the body of a request that is refused, too, so that the next one can follow.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(s.o.Patience))
	if !s.knownHost(r.Host) {
		return &fault.Fault{
			Status: http.StatusForbidden, Type: fault.Permission, Code: "unknown_host",
			Message: fmt.Sprintf("the server is not known as %q: use localhost, an address, or a name that it was told of", r.Host),
		}
	}
	if err := cross.Check(r); err != nil {
		return &fault.Fault{Status: http.StatusForbidden, Type: fault.Permission, Code: "foreign_origin", Message: "requests from pages of other sites are refused"}
	}
	s.allowOrigin(w, r)
	if r.Method == http.MethodPost {
		if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
			return &fault.Fault{Status: http.StatusUnsupportedMediaType, Type: fault.InvalidRequest, Code: "content_type", Message: "the Content-Type must be application/json"}
		}
	}
	if r.ContentLength > s.o.MaxBody {
		// Otherwise net/http would wait for the rest of the body before it answers.
		w.Header().Set("Connection", "close")
		return body.TooLarge(s.o.MaxBody)
	}
	r.Body = http.MaxBytesReader(w, r.Body, s.o.MaxBody)
	return nil
}

// knownHost reports whether a Host header names this server. A page whose site has its own name
// point at this machine would send that name; addresses in numbers it cannot fake.
func (s *Server) knownHost(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
	if _, err := netip.ParseAddr(host); err == nil {
		return true
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || slices.Contains(s.o.Hosts, host)
}

// allowOrigin lets pages read answers that were named, and no others.
func (s *Server) allowOrigin(w http.ResponseWriter, r *http.Request) {
	origin := r.Header.Get("Origin")
	if origin == "" || !slices.Contains(s.o.Origins, origin) {
		return
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Vary", "Origin")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Api-Key")
	h.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
}

// left does what is due when a request is over, whatever became of it.
func (s *Server) left(w *logged, r *http.Request, span trace.Span) {
	v := visit.Of(r)
	endSpan(span, r, v, w.status)
	s.log(r, v, w, time.Since(v.Began))
}

// recovered answers a request whose handler panicked. What ends a stream on purpose passes on.
func (s *Server) recovered(w *logged, r *http.Request, span trace.Span, reason any) {
	switch {
	case reason == nil:
	case reason == http.ErrAbortHandler:
		s.left(w, r, span)
		panic(reason)
	default:
		s.o.Logger.Error("a handler panicked", "id", visit.Of(r).ID, "reason", fmt.Sprint(reason), "stack", string(debug.Stack()))
		if w.status != 0 {
			s.left(w, r, span)
			panic(http.ErrAbortHandler)
		}
		fault.Write(w, panicked(visit.Of(r).ID), fault.FormOf(r))
	}
}

// panicked is what a client is told of a panic: where the log has more.
func panicked(id string) *fault.Fault {
	return &fault.Fault{Status: http.StatusInternalServerError, Type: fault.ServerError, Code: "internal_error", Message: "the server failed; its log has more under " + id}
}
