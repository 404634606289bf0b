// Package visit is what a server knows of a request while it answers it: whose it is and what went
// wrong (Visit), how far the answers to its call have come (Tally), and all calls under way.
package visit

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/moeflux/moeflux-actor/server/access"
	"github.com/moeflux/moeflux-actor/server/fault"
)

// Visit is what the guard knows of a request.
type Visit struct {
	ID    string
	Key   *access.Caller
	Began time.Time
	Trace string // the trace's id; "" if it has none
	Err   error  // what went wrong, for the log
	Tally *Tally // of its call; nil if it has come to none
}

type visitKey struct{}

// Within returns a request that knows of the visit.
func (v *Visit) Within(r *http.Request) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), visitKey{}, v))
}

// Of returns the visit of a request that has passed the guard.
func Of(r *http.Request) *Visit { return r.Context().Value(visitKey{}).(*Visit) }

// CallerOf returns whose request it is.
func CallerOf(r *http.Request) *access.Caller { return Of(r).Key }

// Note keeps what went wrong with a request for the log.
func Note(r *http.Request, err error) { Of(r).Err = err }

// Refuse answers a request with a fault, and notes it.
func Refuse(w http.ResponseWriter, r *http.Request, f *fault.Fault) {
	Note(r, f)
	fault.Write(w, f, fault.FormOf(r))
}

// RouteOf returns the path of a request as routes has it; "none" if the request was refused before,
// or there is no such path.
func RouteOf(r *http.Request) string {
	_, path, _ := strings.Cut(r.Pattern, " ")
	if path == "" {
		path = r.Pattern // of another method
	}
	if path == "" || path == "/" {
		return "none"
	}
	return path
}
