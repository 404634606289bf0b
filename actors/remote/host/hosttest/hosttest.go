// Package hosttest starts expert hosts for tests.
package hosttest

import (
	"context"
	"sync"
	"testing"
	"time"

	expert "github.com/moeflux/moeflux-actor/actors/remote/host"
)

// Serve starts an expert host that lives as long as the test, and returns its address. It fails the
// test if the host breaks or does not end within five seconds.
func Serve(t testing.TB, cfg expert.Config) string {
	t.Helper()
	addr, _ := Start(t, cfg)
	return addr
}

// Start is Serve of a host that end ends before the test does.
func Start(t testing.TB, cfg expert.Config) (addr string, end func()) {
	t.Helper()
	h, err := expert.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := h.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	end = sync.OnceFunc(func() {
		l.Close()
		if err := <-served; err != nil {
			t.Errorf("the host broke: %v", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Errorf("closing the host: %v", err)
		}
	})
	t.Cleanup(end)
	return l.Addr().String(), end
}
