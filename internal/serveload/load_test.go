package serveload

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/server"
	"github.com/moeflux/moeflux-actor/server/access"
	"github.com/moeflux/moeflux-actor/tracing/export"
)

// openServer opens the demo model with less than half of its experts in memory, and a server that
// knows the keys of a load.
func openServer(t *testing.T, l *Load) http.Handler {
	t.Helper()
	dir, err := moeflux.DemoDir(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	o := moeflux.Options{Threads: 1}
	o.Config.ExpertIO, o.Config.ExpertMemory, o.Config.MaxSequences = "buffered", 3<<20, 2
	m, err := moeflux.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	counts, err := export.NewMetrics(export.MetricsConfig{})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := access.Read(strings.NewReader(l.Keys()))
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{
		Models: []server.Served{{Name: "demo", Model: m, Engine: func() server.Engine { return m.Engine() }}},
		Keys:   keys, Meters: counts.Provider(), Figures: counts,
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// small returns a load of 20 clients that is over in seconds; of 200, and minutes, where there is
// time.
func small() Load {
	l := Load{
		Clients: 20, Fair: []int{1, 2, 3, 6}, Answers: testenv.Rounds(60, 60, 4000), Questions: 12, Seed: 1,
		// Few answers are not shared out as evenly as many; with one key starved the index is at
		// most 0.75. The process has the clients as well, and grows while it is young.
		Limits: Limits{Fairness: 0.8, Silence: time.Minute, Growth: 512 << 20},
	}
	if testenv.Rounds(0, 0, 1) > 0 {
		l.Clients, l.Fair, l.Limits.Fairness = 200, []int{1, 2, 5, 20}, 0.95
	}
	return l
}

func run(t *testing.T, h http.Handler, l Load) *Report {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.ReadHeaderTimeout = 10 * time.Second // as server.Listen has it
	s.Start()
	defer s.Close()
	l.URL = s.URL
	r, err := Run(t.Context(), l)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// A server keeps to every limit while clients do what they like.
func TestLoad(t *testing.T) {
	l := small()
	h := openServer(t, &l)
	r := run(t, h, l)
	var text strings.Builder
	r.Print(&text)
	t.Log("\n" + text.String())
	if len(r.Broken) > 0 || !strings.Contains(text.String(), "every limit is kept") {
		t.Error("a server without a fault broke a limit")
	}
	for _, b := range crowd[:3] { // the others are asked too rarely for a small load
		if of := r.counts[b.String()]; of == nil {
			t.Errorf("nobody %s", b)
		}
	}
	t.Run("faults", func(t *testing.T) { testFaults(t, h, l) })
}

// fault spoils a request of a client: it answers and returns nil, or returns what the server is to
// answer through.
type fault func(w http.ResponseWriter, r *http.Request) http.ResponseWriter

// testFaults shows that what a server does wrong is noticed, as what it is.
func testFaults(t *testing.T, h http.Handler, l Load) {
	over := make(chan struct{})
	var left sync.WaitGroup
	defer left.Wait()
	defer close(over)
	for _, tc := range []struct {
		name   string
		fault  fault
		broken string
		every  int64 // how many requests are spoiled: each n-th
	}{
		{"a wrong byte", func(w http.ResponseWriter, _ *http.Request) http.ResponseWriter { return &wrongByte{w} }, "WRONG", 3},
		{"an answer that ends early", func(w http.ResponseWriter, _ *http.Request) http.ResponseWriter { return &endsEarly{ResponseWriter: w} }, "LOST", 3},
		{"a connection that breaks", func(http.ResponseWriter, *http.Request) http.ResponseWriter { panic(http.ErrAbortHandler) }, "LOST", 3},
		{"an error", func(w http.ResponseWriter, _ *http.Request) http.ResponseWriter {
			w.WriteHeader(500)
			_, _ = w.Write([]byte(`{"error":{"message":"x"}}`))
			return nil
		}, "FAILED", 3},
		{"a goroutine that stays", func(w http.ResponseWriter, _ *http.Request) http.ResponseWriter {
			left.Go(func() { <-over })
			return w
		}, "goroutines are left", 3},
		{"a key that gets nothing", func(w http.ResponseWriter, r *http.Request) http.ResponseWriter {
			if !asks(r, secretOf(0)) {
				return w
			}
			w.WriteHeader(503)
			_, _ = w.Write([]byte(`{"error":{"code":"overloaded"}}`))
			return nil
		}, "Jain's index", 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := l
			l.Clients, l.Fair, l.Answers, l.Calm = 12, []int{1, 2, 3, 6}, 30, time.Millisecond // nobody is in the crowd
			r := run(t, spoiled(h, tc.fault, tc.every), l)
			if !strings.Contains(fmt.Sprint(r.Broken), tc.broken) {
				t.Errorf("broken: %q, want %q among them", r.Broken, tc.broken)
			}
		})
	}
}

// spoiled returns a handler with a fault in each n-th request, but in none of the questions that
// are asked before the load.
func spoiled(h http.Handler, f fault, every int64) http.Handler {
	var asked atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && !asks(r, adminSecret) && asked.Add(1)%every == 0 {
			if w = f(w, r); w == nil {
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

func asks(r *http.Request, secret string) bool {
	return r.Header.Get("Authorization") == "Bearer "+secret
}

// wrongByte puts a letter into texts.
type wrongByte struct{ http.ResponseWriter }

func (w *wrongByte) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *wrongByte) Write(b []byte) (int, error) {
	for _, begin := range []string{`"content":"`, `"text":"`, `"delta":"`} {
		b = bytes.ReplaceAll(b, []byte(begin), []byte(begin+"x"))
	}
	return w.ResponseWriter.Write(b)
}

// endsEarly sends the beginning of an answer, and ends it as if that were all.
type endsEarly struct {
	http.ResponseWriter
	sent int
}

func (w *endsEarly) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *endsEarly) Write(b []byte) (int, error) {
	if w.sent += len(b); w.sent > 600 {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}
