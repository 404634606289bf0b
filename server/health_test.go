package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server/models"
)

// readiness returns what GET /readyz says.
func readiness(t *testing.T, base string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(base + "/readyz")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// A server whose every model fails is not ready until one answers; what clients do wrong changes
// nothing.
func TestReady(t *testing.T) {
	how := map[string]error{} // how a model fails; nil: it does not
	model := func(name string) *scripted.Model {
		return &scripted.Model{Say: func(ctx context.Context, r moeflux.Request) moeflux.Events {
			if err := how[name]; err != nil {
				return failing(1, err).Say(ctx, r)
			}
			return scripted.Echo(ctx, r)
		}}
	}
	base := start(t, Options{Models: []models.Served{{Name: "a", Model: model("a")}, {Name: "b", Model: model("b")}}}).URL
	ask := func(name string, times int) {
		for range times {
			post(t, base+"/v1/chat/completions", fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"x"}]}`, name))
		}
	}
	lost := errors.New("the device is lost")
	for i, tc := range []struct {
		a, b  error
		asks  func()
		ready bool
	}{
		{nil, nil, func() {}, true},
		{lost, lost, func() { ask("a", 5); ask("b", 2) }, true},
		{lost, lost, func() { ask("b", 1) }, false},
		{lost, &moeflux.ContextError{}, func() { ask("b", 5) }, false},
		{lost, nil, func() { ask("b", 1) }, true},
		{lost, &moeflux.ContextError{}, func() { ask("b", 5) }, true},
		{lost, moeflux.ErrClosed, func() { ask("b", 3) }, false},
		{nil, moeflux.ErrClosed, func() { ask("a", 1) }, true},
	} {
		how["a"], how["b"] = tc.a, tc.b
		tc.asks()
		// A client has its answer before the server has taken note of how it ended.
		eventually(t, fmt.Sprintf("step %d: ready is %v", i, tc.ready), func() bool {
			status, _ := readiness(t, base)
			return (status == 200) == tc.ready
		})
	}
}
