package server

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server/models"
)

// A client that leaves is no failure of the model, and no warning; a failure is one, and says why.
func TestLogOfFailures(t *testing.T) {
	for _, tc := range []struct {
		name         string
		err          error // of the model; nil: the client leaves
		want, absent string
	}{
		{"the client leaves", nil, "level=INFO", "why="},
		{"the model fails", errors.New("a broken disk"), "level=WARN", "client_left"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			m := &scripted.Model{Say: func(ctx context.Context, _ moeflux.Request) moeflux.Events {
				return func(yield func(moeflux.Event, error) bool) {
					err := tc.err
					if err == nil {
						leave()
						<-ctx.Done()
						err = ctx.Err()
					}
					yield(moeflux.Event{}, err)
				}
			}}
			var log bytes.Buffer
			s, err := New(Options{Models: []models.Served{{Name: "demo", Model: m}}, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/v1/chat/completions", strings.NewReader(hello))
			r.Header.Set("Content-Type", "application/json")
			func() {
				defer func() { _ = recover() }() // the connection of a client that has left is broken
				s.ServeHTTP(httptest.NewRecorder(), r)
			}()
			line := log.String()
			if !strings.Contains(line, tc.want) || strings.Contains(line, tc.absent) || strings.Contains(line, "client_left") != (tc.err == nil) ||
				strings.Contains(line, "a broken disk") != (tc.err != nil) || strings.Count(line, "\n") != 1 {
				t.Errorf("the log: %s", line)
			}
		})
	}
}
