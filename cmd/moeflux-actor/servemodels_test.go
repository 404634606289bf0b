package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/process"
)

// serveProcess is the command serve while it runs.
type serveProcess struct {
	t    *testing.T
	url  string
	said lockedText
	stop context.CancelCauseFunc
	code chan int
}

// lockedText is what a command has said so far.
type lockedText struct {
	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // gets one with each piece
}

func (l *lockedText) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return l.text.Write(b)
}

func (l *lockedText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var saidURL = regexp.MustCompile(`listening on (https?://\S+)\n`)

// serve starts the command and waits until it listens.
func serve(t *testing.T, args ...string) *serveProcess {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	p := &serveProcess{t: t, stop: stop, code: make(chan int, 1), said: lockedText{more: make(chan struct{}, 1)}}
	go func() {
		p.code <- run(ctx, append([]string{"serve", "--addr", "127.0.0.1:0"}, args...), strings.NewReader(""), io.Discard, &p.said, testEnv())
	}()
	t.Cleanup(p.end)
	for {
		select {
		case <-p.said.more:
			if m := saidURL.FindStringSubmatch(p.said.String()); m != nil {
				p.url = m[1]
				return p
			}
		case code := <-p.code:
			p.code <- code
			t.Fatalf("the command ended with %d and said %q", code, p.said.String())
		}
	}
}

// end stops the command as SIGTERM does, and expects a clean end.
func (p *serveProcess) end() {
	http.DefaultClient.CloseIdleConnections()
	p.stop(process.Signalled{Signal: syscall.SIGTERM})
	code := <-p.code
	p.code <- code
	if code != exitOK {
		p.t.Errorf("exit %d after SIGTERM: %s", code, p.said.String())
	}
}

// ask posts a body and returns the answer.
func (p *serveProcess) ask(path, body string) string {
	p.t.Helper()
	resp, err := http.Post(p.url+path, "application/json", strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(answer)
}

// Two models that do not fit together answer by turns, under all their names, with the same text as
// the command run gives.
func TestServeSeveral(t *testing.T) {
	dir, err := moeflux.DemoDir(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	p := serve(t, "--model", "a="+dir, "--model", "b="+dir, "--alias", "gpt-4o=b", "--memory", "40MiB", "--log-level", "info")
	want := mustCall(t, "", "run", "-p", "package main", "-n", "8", "--temperature", "0", "--json")
	text := regexp.MustCompile(`"text":("[^,]*")`).FindStringSubmatch(want.stdout)
	for _, name := range []string{"a", "gpt-4o", "b", "a"} {
		if got := p.ask("/v1/completions", `{"model":"`+name+`","prompt":"package main","max_tokens":8,"temperature":0}`); text == nil || !strings.Contains(got, `"text":`+text[1]) {
			t.Errorf("%s says %s, run says %s", name, got, want.stdout)
		}
	}
	if got := p.ask("/v1/completions", `{"model":"c","prompt":"x"}`); !strings.Contains(got, "model_not_found") {
		t.Errorf("an unknown model: %s", got)
	}
	p.end()
	if n := strings.Count(p.said.String(), "a model is loaded"); n != 3 {
		t.Errorf("%d times a model was loaded, want 3: %s", n, p.said.String())
	}
}

// Each mistake in what serve is to serve is told in words.
func TestServeModelsUsage(t *testing.T) {
	dir, err := moeflux.DemoDir(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	two := []string{"--model", "a=" + dir, "--model", "b=" + dir}
	for part, args := range map[string][]string{
		"no model directory /nowhere":    {"--model", "x=/nowhere"},
		`two models have the name "a"`:   {"--model", "a=" + dir, "--model", "a=" + dir},
		"must be ALIAS=NAME":             {"--alias", "x"},
		`names a model "y"; there are a`: append(two, "--alias", "x=y"),
		`--pin names a model "c"`:        append(two, "--pin", "c"),
		"--unload-after -1s: must be":    {"--unload-after", "-1s"},
		"--record is for one model":      append(two, "--record", "x"),
		"raise --memory":                 append(two, "--memory", "1MiB"),
		"the pinned models need":         append(two, "--memory", "40MiB", "--pin", "a", "--pin", "b"),
		"is not a size like 8GiB":        {"--memory", "x"},
	} {
		o := call(t, "", append([]string{"serve", "--addr", "127.0.0.1:0"}, args...)...)
		if o.code == exitOK || !strings.Contains(o.stderr, part) {
			t.Errorf("%q: exit %d, %q; want %q", args, o.code, o.stderr, part)
		}
	}
}

func TestSplitModel(t *testing.T) {
	for _, c := range [][3]string{
		{"", "demo", ""}, {"dir/model", "model", "dir/model"}, {"gpt=dir/model", "gpt", "dir/model"}, {"dir/a=b", "a=b", "dir/a=b"}, {"/x/y/", "y", "/x/y/"},
	} {
		if name, dir := splitModel(c[0]); name != c[1] || dir != c[2] {
			t.Errorf("%s: %s, %s", c[0], name, dir)
		}
	}
}
