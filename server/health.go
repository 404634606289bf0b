package server

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/wire"
)

// failuresInRow is after how many answers that its own failure ended, with none in order between
// them, a model counts as failed.
const failuresInRow = 3

// errFails is what is wrong with a model that fails.
var errFails = errors.New("the model fails")

// health knows which models fail.
type health struct {
	mu       sync.Mutex
	failures map[string]int // in a row, by model
}

// ended notes how an answer ended: whole, or with err. What a client or the server's end is the
// cause of says nothing about the model.
func (h *health) ended(model string, whole bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case whole:
		delete(h.failures, model)
	case isFailure(err):
		if h.failures == nil {
			h.failures = make(map[string]int)
		}
		h.failures[model]++
	}
}

// isFailure reports whether a model's own failure ended an answer.
func isFailure(err error) bool {
	for _, other := range []error{nil, fault.ErrDraining, fault.ErrGone, context.Canceled} {
		if errors.Is(err, other) {
			return false
		}
	}
	return errors.Is(err, moeflux.ErrClosed) || fault.Of(err).Status == http.StatusInternalServerError
}

// failed returns the models that fail.
func (h *health) failed() (names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, n := range h.failures {
		if n >= failuresInRow {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// alive says that the process answers.
func (s *Server) alive(w http.ResponseWriter, _ *http.Request) {
	wire.JSON(w, http.StatusOK, map[string]string{"status": "ok"})
}

// ready says whether requests are taken, and some model can answer them: one that does not fail,
// and whose engine is whole.
func (s *Server) ready(w http.ResponseWriter, _ *http.Request) {
	if s.doors.closed() {
		wire.JSON(w, http.StatusServiceUnavailable, map[string]string{"status": "stopping"})
		return
	}
	bad := s.ill()
	for _, name := range s.health.failed() {
		bad[name] = errFails
	}
	switch {
	case len(bad) == len(s.models):
		wire.JSON(w, http.StatusServiceUnavailable, map[string]string{"status": "failed"})
	default:
		wire.JSON(w, http.StatusOK, map[string]string{"status": "ready"})
	}
}
