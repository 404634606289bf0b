// Package fault turns errors into what clients, the log and the figures are told of them: a status,
// a type, a code and a message, in the form of the API that was asked.
package fault

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/wire"
)

// Fault is an error as a client sees it.
type Fault struct {
	Status  int
	Type    string // OpenAI's word for the status
	Code    string // what programs tell errors apart by
	Param   string // the parameter that is wrong, as a path; "" for none
	Message string
	Retry   time.Duration // when to try again; 0: no header
}

func (f *Fault) Error() string { return f.Message }

// teller is an error that knows what a client is told of it.
type teller interface {
	error
	Fault() *Fault
}

// The types of faults.
const (
	InvalidRequest = "invalid_request_error"
	NotFound       = "not_found_error"
	Authentication = "authentication_error"
	Permission     = "permission_error"
	RateLimit      = "rate_limit_error"
	Overloaded     = "overloaded_error"
	ServerError    = "server_error"
)

// Invalid is a fault of a parameter's value.
func Invalid(param, format string, args ...any) *Fault {
	return &Fault{Status: http.StatusBadRequest, Type: InvalidRequest, Code: "invalid_value", Param: param, Message: fmt.Sprintf(format, args...)}
}

// Unsupported is the fault of a parameter that is known and not done.
func Unsupported(param, format string, args ...any) *Fault {
	f := Invalid(param, format, args...)
	f.Code = "unsupported_parameter"
	return f
}

// ErrDraining is the cause of what ends because the server stops.
var ErrDraining = errors.New("the server is stopping")

// ErrGone is the cause of what ends because its client has left.
var ErrGone = errors.New("the client has left")

// Of returns what a client is told of an error of a model.
func Of(err error) *Fault {
	var f *Fault
	if errors.As(err, &f) {
		return f
	}
	if f := faultOfRequest(err); f != nil {
		return f
	}
	if full, ok := errors.AsType[*moeflux.QueueFullError](err); ok {
		return &Fault{Status: http.StatusTooManyRequests, Type: RateLimit, Code: "queue_full", Message: err.Error(), Retry: max(full.RetryAfter, time.Second)}
	}
	if _, ok := errors.AsType[*moeflux.StateMemoryError](err); ok {
		return &Fault{Status: http.StatusServiceUnavailable, Type: Overloaded, Code: "state_memory", Message: err.Error(), Retry: 10 * time.Second}
	}
	if e, ok := errors.AsType[teller](err); ok {
		return e.Fault()
	}
	switch {
	case errors.Is(err, ErrDraining), errors.Is(err, moeflux.ErrClosed):
		return &Fault{Status: http.StatusServiceUnavailable, Type: Overloaded, Code: "stopping", Message: ErrDraining.Error(), Retry: 5 * time.Second}
	case errors.Is(err, context.DeadlineExceeded):
		return &Fault{Status: http.StatusGatewayTimeout, Type: ServerError, Code: "timeout", Message: "the request took longer than the server allows"}
	}
	return &Fault{Status: http.StatusInternalServerError, Type: ServerError, Code: "internal_error", Message: "the model failed: " + err.Error()}
}

// faultOfRequest returns the fault of an error that the request itself is to blame for, else nil.
func faultOfRequest(err error) *Fault {
	if e, ok := errors.AsType[*moeflux.ContextError](err); ok {
		return &Fault{
			Status: http.StatusBadRequest, Type: InvalidRequest, Code: "context_length_exceeded", Param: "messages",
			Message: fmt.Sprintf("the prompt is too long: the context has %d positions", e.Max),
		}
	}
	if _, ok := errors.AsType[*moeflux.TemplateError](err); ok {
		return Invalid("messages", "the model's chat template makes no prompt of the conversation: %v", err)
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
			return Invalid("", "%v", err)
		}
	}
	for _, kind := range []error{moeflux.ErrEmptyPrompt, moeflux.ErrNoTools, moeflux.ErrNoCalls, moeflux.ErrAllExcluded, moeflux.ErrUnsatisfiableSchema} {
		if errors.Is(err, kind) {
			return Invalid("", "%v", err)
		}
	}
	return nil
}

// Write answers a request with a fault.
func Write(w http.ResponseWriter, f *Fault, as form) {
	if f.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.Retry.Seconds()))))
	}
	if f.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	wire.JSON(w, f.Status, as(f))
}
