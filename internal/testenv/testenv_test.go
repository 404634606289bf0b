package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// recorder is a test that notes how it ends.
type recorder struct {
	testing.TB
	end string
}

func (r *recorder) Helper() {}

func (r *recorder) Skip(args ...any) {
	r.end = "skip: " + fmt.Sprint(args...)
	runtime.Goexit()
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.end = "fail: " + fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// ending runs f and returns how it ended the test it was given.
func ending(f func(testing.TB)) string {
	r := &recorder{end: "went on"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(r)
	}()
	<-done
	return r.end
}

// A missing tool skips a test in one line, and fails it where tools are required.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	find := func(t testing.TB) { Find(t, "beta", "alpha", "beta") }
	t.Setenv(Required, "")
	if got, want := ending(find), "skip: no alpha, beta in PATH (Debian, Ubuntu: apt-get install beta)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	t.Setenv(Required, "1")
	if got, want := ending(find), "fail: "+Required+"=1 and no alpha, beta in PATH"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	t.Setenv(Required, "gamma,beta")
	if got, want := ending(find), "fail: "+Required+"=gamma,beta and no alpha, beta"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	t.Setenv(Required, "gamma")
	if got := ending(find); !strings.HasPrefix(got, "skip: ") {
		t.Errorf("got %q, want it skipped", got)
	}
	path := filepath.Join(dir, "beta")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if got := Find(t, "beta", "alpha", "beta"); got != path {
		t.Errorf("found %q, want %q", got, path)
	}
	if got := ending(func(t testing.TB) { Missing(t, "a\nb") }); !strings.HasSuffix(got, "a b") {
		t.Errorf("got %q, want one line", got)
	}
}

func TestShare(t *testing.T) {
	t.Setenv(Thorough, "")
	shares := map[string]int{}
	for _, name := range []string{"a", "b"} {
		t.Run(name, func(t *testing.T) {
			for i := range 3000 {
				if c := fmt.Sprint("case", i); Share(t, c, 3) {
					shares[name]++
					shares[c]++
				}
			}
		})
	}
	both := 0
	for i := range 3000 {
		if shares[fmt.Sprint("case", i)] == 2 {
			both++
		}
	}
	// a third, and a ninth; the margins are four standard deviations
	if a, b := shares["a"], shares["b"]; max(a, b) > 1104 || min(a, b) < 896 || both < 264 || both > 402 {
		t.Errorf("%d and %d cases of 3000, %d of them in both tests", a, b, both)
	}
	if !Share(t, "case", 1) {
		t.Error("one in one is not all")
	}
	t.Setenv(Thorough, "1")
	for i := range 100 {
		if !Share(t, fmt.Sprint(i), 3) {
			t.Fatal("a thorough test leaves a case out")
		}
	}
}

func TestShareOf(t *testing.T) {
	t.Setenv(Thorough, "")
	for _, c := range []struct{ of, n, least, most int }{{1, 5, 1, 1}, {3, 5, 1, 1}, {5, 5, 1, 1}, {8, 3, 2, 3}, {9, 3, 3, 3}, {4, 1, 4, 4}} {
		firsts := map[int]bool{}
		for kind := range 200 {
			taken := 0
			for i := range c.of {
				if ShareOf(t, fmt.Sprint("kind", kind), i, c.of, c.n) {
					if taken++; taken == 1 {
						firsts[i] = true
					}
				}
			}
			if taken < c.least || taken > c.most {
				t.Errorf("one in %d: %d cases of %d", c.n, taken, c.of)
			}
		}
		if len(firsts) != min(c.n, c.of) {
			t.Errorf("one in %d of %d: the first is one of %d", c.n, c.of, len(firsts))
		}
	}
	t.Setenv(Thorough, "1")
	for i := range 8 {
		if !ShareOf(t, "kind", i, 8, 3) {
			t.Fatal("a thorough test leaves a case out")
		}
	}
}
