package serveload

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Each limit is judged by itself.
func TestJudge(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(r *Report)
		broken string // "": nothing
	}{
		{"all in order", func(*Report) {}, ""},
		{"silence", func(r *Report) { r.streams.silences[99], r.streams.silences[98] = 4*time.Second, 4*time.Second }, "silence"},
		{"one of a hundred is silent", func(r *Report) { r.streams.silences[99] = 4 * time.Second }, ""},
		{"memory", func(r *Report) { r.vitals.peak.resident = 2 << 30 }, "resident"},
		{"growth", func(r *Report) { r.vitals.late = 200 << 20 }, "memory grows"},
		{"files", func(r *Report) { r.vitals.after.files = 30 }, "30 files"},
		{"goroutines", func(r *Report) { r.vitals.after.goroutines = 30 }, "30 goroutines"},
		{"no figures", func(r *Report) { r.vitals.err = http.ErrAbortHandler }, "could not be read"},
		{"no looks", func(r *Report) { r.vitals.seen, r.took = nil, time.Minute }, "never read"},
		{"a starved key", func(r *Report) { r.tokens[0] = 40 }, "0.9"},
		{"a connection that is held", func(r *Report) { r.add(noKey, halfOpen{}, outcome{kind: held}, true) }, "1 requests are HELD"},
		{"nothing answered", func(r *Report) { clear(r.counts) }, "no request was answered"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newReport(&Load{Fair: []int{1, 2, 5, 20}, Limits: Limits{Memory: 1 << 30}})
			r.add(noKey, patient{}, outcome{kind: answered}, true)
			for key := range r.tokens {
				r.add(key, patient{}, outcome{kind: answered, tokens: 100}, true)
				r.add(key, patient{}, outcome{kind: answered, tokens: 1000}, false) // too late to count
			}
			r.streams.silences = make([]time.Duration, 100)
			r.vitals.early, r.vitals.late = 100<<20, 120<<20
			tc.change(r)
			r.judge()
			if got := strings.Join(r.Broken, "\n"); (got == "") != (tc.broken == "") || !strings.Contains(got, tc.broken) {
				t.Errorf("broken: %q, want %q", got, tc.broken)
			}
		})
	}
}

func TestPercentile(t *testing.T) {
	all := []time.Duration{5, 1, 4, 2, 3}
	for percent, want := range map[int]time.Duration{50: 3, 80: 4, 81: 5, 99: 5, 100: 5, 1: 1} {
		if got := percentile(all, percent); got != want {
			t.Errorf("%d %%: %d, want %d", percent, got, want)
		}
	}
	if got := percentile(nil, 50); got != 0 {
		t.Errorf("of nothing: %d", got)
	}
}

// The silence of a stream is the server's; what the reader takes for an event is not counted.
func TestSilence(t *testing.T) {
	const server, reader = 60 * time.Millisecond, 600 * time.Millisecond
	for _, patience := range []time.Duration{0, reader} {
		read := make(chan bool, 10)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"x\"}]}\n\n")
			_ = http.NewResponseController(w).Flush()
			<-read
			if patience == 0 {
				time.Sleep(server)
			}
			fmt.Fprint(w, "data: {\"choices\":[{\"text\":\"y\"}]}\n\ndata: [DONE]\n\n")
		}))
		l := Load{URL: s.URL}
		c := l.client("x", 0, nil)
		got, err := c.fetchStream(t.Context(), &question{api: apis[1], prompt: "p", tokens: 2}, func(s *stream) bool {
			if s.text.Len() == 1 {
				wait(t.Context(), patience)
			}
			read <- true
			return true
		})
		c.close()
		s.Close()
		if err != nil || got.text.String() != "xy" || got.first == 0 {
			t.Fatalf("%q after %v: %v", got.text.String(), got.first, err)
		}
		if patience == 0 && got.silence < server || patience > 0 && got.silence >= reader {
			t.Errorf("beside a reader that takes %v a silence of %v", patience, got.silence)
		}
	}
}

// A server that waits for ever for the rest of a request is noticed.
func TestHeld(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	load := Load{URL: "http://" + l.Addr().String()}
	c := load.client("x", 0, nil)
	c.half = 20 * time.Millisecond
	if o := (halfOpen{}).ask(t.Context(), t.Context(), c); o.kind != held {
		t.Errorf("it is %s: %s", kindNames[o.kind], o.detail)
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	c.half = time.Minute
	if o := (halfOpen{}).ask(t.Context(), t.Context(), c); o.kind != closed {
		t.Errorf("a server that hangs up: %s, %s", kindNames[o.kind], o.detail)
	}
}

// A prompt that is too long may be refused in a stream that has begun, and nothing else may be.
func TestTooLong(t *testing.T) {
	for event, want := range map[string]kind{
		`{"error":{"message":"the prompt is too long: the context has 8 positions"}}`: refused,
		`{"error":{"message":"the server is broken"}}`:                                failed,
	} {
		asked := map[bool]int{}
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			stream := bytes.Contains(body, []byte(`"stream":true`))
			asked[stream]++
			if stream {
				fmt.Fprintf(w, "data: %s\n\n", event)
				return
			}
			w.WriteHeader(400)
			fmt.Fprint(w, event)
		}))
		l := Load{URL: s.URL}
		c := l.client("x", 0, []question{{api: apis[1], prompt: "p", tokens: 2}})
		for len(asked) < 2 {
			before := asked[true]
			o := tooLong{}.ask(t.Context(), t.Context(), c)
			if streamed := asked[true] > before; streamed && o.kind != want || !streamed && o.kind != refused {
				t.Errorf("%s, streamed %v: it is %s, %s", event, streamed, kindNames[o.kind], o.detail)
			}
		}
		c.close()
		s.Close()
	}
}

// Answers are compared to the last byte, and beginnings as far as they go.
func TestCheck(t *testing.T) {
	q := question{api: apis[0], want: "right"}
	for got, ok := range map[string][2]bool{"right": {true, true}, "righ": {false, true}, "": {false, true}, "rixht": {false, false}, "rights": {false, false}} {
		for i, whole := range []bool{true, false} {
			if err := q.check(got, whole); (err == nil) != ok[i] {
				t.Errorf("%q, whole %v: %v", got, whole, err)
			}
		}
	}
}
