package server

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/visit"
)

// traceContext reads the header traceparent, of W3C's trace context.
var traceContext propagation.TraceContext

// beginSpan begins the span of a request, under that of the client if it names one. The spans of
// the model's work come under it. Only what asks a model for something has one.
func (s *Server) beginSpan(w http.ResponseWriter, r *http.Request, v *visit.Visit) (*http.Request, trace.Span) {
	if r.Method != http.MethodPost {
		return r, trace.SpanFromContext(r.Context())
	}
	ctx := traceContext.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := s.tracer.Start(ctx, r.Method, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("http.request.method", r.Method), attribute.String("url.scheme", scheme(r)), attribute.String("moeflux.request_id", v.ID),
	))
	if id := span.SpanContext().TraceID(); id.IsValid() {
		v.Trace = id.String()
		w.Header().Set("X-Trace-Id", v.Trace)
	}
	return r.WithContext(ctx), span
}

// endSpan ends it.
func endSpan(span trace.Span, r *http.Request, v *visit.Visit, status int) {
	route := visit.RouteOf(r)
	span.SetName(r.Method + " " + route)
	span.SetAttributes(attribute.String("http.route", route), attribute.Int("http.response.status_code", status))
	if v.Key.Name != "" {
		span.SetAttributes(attribute.String("moeflux.key", v.Key.Name))
	}
	if v.Err != nil {
		code := fault.EndingOf(v.Err).Code
		span.SetAttributes(attribute.String("error.type", code))
		if status >= http.StatusInternalServerError || status == http.StatusOK {
			span.SetStatus(codes.Error, code)
		}
	}
	span.End()
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}
