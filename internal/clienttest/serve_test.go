package clienttest

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server"
)

// key is what the clients send.
const key = "sk-of-the-clients"

// serve starts a server of a model and returns its URL, without /v1.
func serve(t *testing.T, m server.Model) string {
	t.Helper()
	s, err := server.New(server.Options{
		Models: []server.Served{{Name: "agent", Model: m}}, Keys: []server.Key{{Secret: key, Name: "clients", Class: moeflux.Normal}},
	})
	if err != nil {
		t.Fatal(err)
	}
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	return listener.URL
}

// agent starts a server of a scripted agent.
func agent(t *testing.T) string { return serve(t, new(scripted.Agent).Model()) }

// slow starts a server whose model takes its time over each word, and returns the model, too.
func slow(t *testing.T) (string, *scripted.Model) {
	m := (&scripted.Agent{Pause: 20 * time.Millisecond}).Model()
	return serve(t, m), m
}

// demo starts a server of the engine itself, with the demo model.
func demo(t *testing.T) string {
	t.Helper()
	m, err := moeflux.Demo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil { // the test's context has ended
			t.Error(err)
		}
	})
	return serve(t, m)
}

// left waits until a model has no request any more: the client has left, and that was noticed.
func left(t *testing.T, m *scripted.Model) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); m.Open() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the client has left, and the model still writes")
		}
	}
}

// schemas that several tests use.
var (
	citySchema   = map[string]any{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}}
	personSchema = map[string]any{
		"type": "object", "additionalProperties": false, "required": []string{"name", "age"},
		"properties": map[string]any{"name": map[string]any{"type": "string", "enum": []string{"Ada", "Bob"}}, "age": map[string]any{"type": "integer", "minimum": 1, "maximum": 99}},
	}
)

// person is what personSchema describes.
type person struct {
	Name string `json:"name"`
	Age  int    `json:"age"`
}

func (p person) ok() bool { return (p.Name == "Ada" || p.Name == "Bob") && p.Age >= 1 && p.Age <= 99 }
