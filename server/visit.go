package server

import (
	"context"
	"net/http"
	"strings"
	"time"
)

// visit is what the guard knows of a request.
type visit struct {
	id    string
	key   *keyState
	began time.Time
	trace string // the trace's id; "" if it has none
	err   error  // what went wrong, for the log
	tally *tally // of its call; nil if it has come to none
}

type visitKey struct{}

// within returns a request that knows of the visit.
func (v *visit) within(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
}

// visitOf returns the visit of a request that has passed the guard.
func visitOf(r *http.Request) *visit { return r.Context().Value(visitKey{}).(*visit) }

// keyOf returns whose request it is.
func keyOf(r *http.Request) *keyState { return visitOf(r).key }

// note keeps what went wrong with a request for the log.
func note(r *http.Request, err error) { visitOf(r).err = err }

// refuse answers a request with a fault, and notes it.
func refuse(w http.ResponseWriter, r *http.Request, f *fault) {
	note(r, f)
	writeFault(w, f, formOf(r))
}

// routeOf returns the path of a request as routes has it; "none" if the request was refused before,
// or there is no such path.
func routeOf(r *http.Request) string {
	_, path, _ := strings.Cut(r.Pattern, " ")
	if path == "" {
		path = r.Pattern // of another method
	}
	if path == "" || path == "/" {
		return "none"
	}
	return path
}
