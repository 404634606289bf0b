package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
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
	if e, ok := errors.AsType[*LoadError](err); ok {
		return faultOfLoading(e)
	}
	switch {
	case errors.Is(err, errDraining), errors.Is(err, moeflux.ErrClosed):
		return &fault{Status: http.StatusServiceUnavailable, Type: overloaded, Code: "stopping", Message: errDraining.Error(), Retry: 5 * time.Second}
	case errors.Is(err, context.DeadlineExceeded):
		return &fault{Status: http.StatusGatewayTimeout, Type: serverError, Code: "timeout", Message: "the request took longer than the server allows"}
	}
	return &fault{Status: http.StatusInternalServerError, Type: serverError, Code: "internal_error", Message: "the model failed: " + err.Error()}
}

// faultOfLoading returns the fault of a model that could not be loaded: where memory is short it
// may be tried again.
func faultOfLoading(e *LoadError) *fault {
	f := &fault{
		Status: http.StatusInternalServerError, Type: serverError, Code: "model_load_failed",
		Message: fmt.Sprintf("the model %q could not be loaded; the server's log says why", e.Model),
	}
	_, memory := errors.AsType[*moeflux.MemoryError](e.Err)
	if _, state := errors.AsType[*moeflux.ContextMemoryError](e.Err); memory || state {
		f.Status, f.Type, f.Retry = http.StatusServiceUnavailable, overloaded, 10*time.Second
		f.Message = fmt.Sprintf("the model %q could not be loaded: memory is short", e.Model)
	}
	return f
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

// form writes a fault as the clients of an API expect it.
type form func(*fault) any

// formOf returns the form of the API that a path belongs to.
func formOf(r *http.Request) form {
	if isMessages(r) {
		return anthropicForm
	}
	return openAIForm
}

// isMessages reports whether a request is one of Anthropic's API.
func isMessages(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/messages") }

// openAIForm is the form of OpenAI's APIs.
func openAIForm(f *fault) any {
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	e := inner{Message: f.Message, Type: f.Type}
	if f.Param != "" {
		e.Param = &f.Param
	}
	if f.Code != "" {
		e.Code = &f.Code
	}
	return map[string]inner{"error": e}
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

// writeJSON answers a request with a value.
func writeJSON(w http.ResponseWriter, status int, value any) {
	body := encode(value)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has left is noticed by its context
}

// encode returns a value as a line of JSON.
func encode(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil { // a bug: all values are ours
		panic(err)
	}
	return b.Bytes()
}
