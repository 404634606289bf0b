package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
)

// fault is an error as a client sees it.
type fault struct {
	Status  int
	Type    string // OpenAI's word for the status
	Code    string // what programs tell errors apart by
	Param   string // the parameter that is wrong, as a path; "" for none
	Message string
	Retry   time.Duration // when to try again; 0: no header
}

func (f *fault) Error() string { return f.Message }

// teller is an error that knows what a client is told of it.
type teller interface {
	error
	Fault() *fault
}

// The types of faults.
const (
	invalidRequest = "invalid_request_error"
	notFound       = "not_found_error"
	authentication = "authentication_error"
	permission     = "permission_error"
	rateLimit      = "rate_limit_error"
	overloaded     = "overloaded_error"
	serverError    = "server_error"
)

// invalid is a fault of a parameter's value.
func invalid(param, format string, args ...any) *fault {
	return &fault{Status: http.StatusBadRequest, Type: invalidRequest, Code: "invalid_value", Param: param, Message: fmt.Sprintf(format, args...)}
}

// unsupported is the fault of a parameter that is known and not done.
func unsupported(param, format string, args ...any) *fault {
	f := invalid(param, format, args...)
	f.Code = "unsupported_parameter"
	return f
}

// errDraining is the cause of what ends because the server stops.
var errDraining = errors.New("the server is stopping")

// errGone is the cause of what ends because its client has left.
var errGone = errors.New("the client has left")

// faultOf returns what a client is told of an error of a model.
func faultOf(err error) *fault {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	if f := faultOfRequest(err); f != nil {
		return f
	}
	if full, ok := errors.AsType[*moeflux.QueueFullError](err); ok {
		return &fault{Status: http.StatusTooManyRequests, Type: rateLimit, Code: "queue_full", Message: err.Error(), Retry: max(full.RetryAfter, time.Second)}
	}
	if _, ok := errors.AsType[*moeflux.StateMemoryError](err); ok {
		return &fault{Status: http.StatusServiceUnavailable, Type: overloaded, Code: "state_memory", Message: err.Error(), Retry: 10 * time.Second}
	}
	if e, ok := errors.AsType[teller](err); ok {
		return e.Fault()
	}
	switch {
	case errors.Is(err, errDraining), errors.Is(err, moeflux.ErrClosed):
		return &fault{Status: http.StatusServiceUnavailable, Type: overloaded, Code: "stopping", Message: errDraining.Error(), Retry: 5 * time.Second}
	case errors.Is(err, context.DeadlineExceeded):
		return &fault{Status: http.StatusGatewayTimeout, Type: serverError, Code: "timeout", Message: "the request took longer than the server allows"}
	}
	return &fault{Status: http.StatusInternalServerError, Type: serverError, Code: "internal_error", Message: "the model failed: " + err.Error()}
}

// faultOfRequest returns the fault of an error that the request itself is to blame for, else nil.
func faultOfRequest(err error) *fault {
	if e, ok := errors.AsType[*moeflux.ContextError](err); ok {
		return &fault{
			Status: http.StatusBadRequest, Type: invalidRequest, Code: "context_length_exceeded", Param: "messages",
			Message: fmt.Sprintf("the prompt is too long: the context has %d positions", e.Max),
		}
	}
	if _, ok := errors.AsType[*moeflux.TemplateError](err); ok {
		return invalid("messages", "the model's chat template makes no prompt of the conversation: %v", err)
	}
	for _, is := range []func() bool{
		func() bool { _, ok := errors.AsType[*moeflux.RequestError](err); return ok },
		func() bool { _, ok := errors.AsType[*moeflux.TextSizeError](err); return ok },
		func() bool { _, ok := errors.AsType[*moeflux.UnencodableError](err); return ok },
		func() bool { _, ok := errors.AsType[*moeflux.InvalidSchemaError](err); return ok },
		func() bool { _, ok := errors.AsType[*moeflux.UnsupportedSchemaError](err); return ok },
		func() bool { _, ok := errors.AsType[*moeflux.SchemaLimitError](err); return ok },
	} {
		if is() {
			return invalid("", "%v", err)
		}
	}
	for _, kind := range []error{moeflux.ErrEmptyPrompt, moeflux.ErrNoTools, moeflux.ErrNoCalls, moeflux.ErrAllExcluded, moeflux.ErrUnsatisfiableSchema} {
		if errors.Is(err, kind) {
			return invalid("", "%v", err)
		}
	}
	return nil
}

// writeFault answers a request with a fault.
func writeFault(w http.ResponseWriter, f *fault, as form) {
	if f.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.Retry.Seconds()))))
	}
	if f.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, f.Status, as(f))
}
