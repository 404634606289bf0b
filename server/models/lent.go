package models

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/fault"
)

// Lent is a Model that is not always in memory: those of package fleet are. Its Chat and Generate
// wait until it is; for the rest the server borrows it.
type Lent interface {
	Model
	// Borrow returns the model itself once it is in memory. It stays there until giveBack is
	// called. Errors: *LoadError, and the cause of ctx where that ends first.
	Borrow(ctx context.Context) (m Model, giveBack func(), err error)
	// Status says where the model is.
	Status() Status
}

// Status is where a model is.
type Status string

// The statuses.
const (
	Loaded   Status = "loaded"
	Loading  Status = "loading"
	Unloaded Status = "unloaded"
)

// LoadError reports a model that could not be brought into memory. Clients are told its name and
// nothing of Err, which may name files.
type LoadError struct {
	Model string
	Err   error
}

func (e *LoadError) Error() string {
	return fmt.Sprintf("the model %s cannot be loaded: %v", e.Model, e.Err)
}
func (e *LoadError) Unwrap() error { return e.Err }

// Borrow returns a model that is in memory, until giveBack is called.
func Borrow(ctx context.Context, m Model) (in Model, giveBack func(), err error) {
	if l, ok := m.(Lent); ok {
		return l.Borrow(ctx)
	}
	return m, func() {}, nil
}

// StatusOf returns where a model is.
func StatusOf(m Model) Status {
	if l, ok := m.(Lent); ok {
		return l.Status()
	}
	return Loaded
}

// Fault is what a client is told: where memory is short it may try again.
func (e *LoadError) Fault() *fault.Fault {
	f := &fault.Fault{
		Status: http.StatusInternalServerError, Type: fault.ServerError, Code: "model_load_failed",
		Message: fmt.Sprintf("the model %q could not be loaded; the server's log says why", e.Model),
	}
	_, memory := errors.AsType[*moeflux.MemoryError](e.Err)
	if _, state := errors.AsType[*moeflux.ContextMemoryError](e.Err); memory || state {
		f.Status, f.Type, f.Retry = http.StatusServiceUnavailable, fault.Overloaded, 10*time.Second
		f.Message = fmt.Sprintf("the model %q could not be loaded: memory is short", e.Model)
	}
	return f
}
