package moeflux

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestMain gives the tests, and the programs that they start, a home of their own for the demo
// model, which TestMain removes. It fails if a goroutine is left.
func TestMain(m *testing.M) {
	home, err := newHome()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(home)
		os.Exit(code)
	}))
}

// newHome makes a home, and leaves to go where it has its caches.
func newHome() (string, error) {
	for _, v := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} {
		out, err := exec.Command("go", "env", v).Output()
		if err != nil {
			return "", err
		}
		if err := os.Setenv(v, strings.TrimSpace(string(out))); err != nil {
			return "", err
		}
	}
	home, err := os.MkdirTemp("", "moeflux-test-")
	if err != nil {
		return "", err
	}
	for _, v := range []string{"HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"} {
		if err := os.Setenv(v, home); err != nil {
			return "", err
		}
	}
	return home, nil
}

// openDemo opens the demo model for a test.
func openDemo(t testing.TB, o Options) *Model {
	t.Helper()
	dir, err := DemoDir(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if o.Device == "" {
		o.Device = "host"
	}
	m, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}
