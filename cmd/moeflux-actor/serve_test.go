package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/process"
)

// The command serves the demo model until a signal comes, and then ends with 0.
func TestServe(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	r, w := io.Pipe()
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"serve", "--addr", "127.0.0.1:0", "--name", "mine", "--api-key-file", writeFile(t, "keys", "sk-first-first name=me\n")},
			strings.NewReader(""), io.Discard, w, testEnv())
		w.Close()
	}()
	var said strings.Builder
	var url string
	for b := make([]byte, 1000); url == ""; {
		n, err := r.Read(b)
		said.Write(b[:n])
		if url = regexp.MustCompile(`listening on (http://\S+)\n`).FindString(said.String()); err != nil && url == "" {
			t.Fatalf("the command ended with %d and said %q", <-code, said.String())
		}
	}
	go io.Copy(&said, r)
	url = strings.TrimSpace(strings.TrimPrefix(url, "listening on "))
	ask := func(body string, key string) string {
		req, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/completions", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Api-Key", key)
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(answer)
	}
	const body = `{"model":"mine","prompt":"package main","max_tokens":8,"temperature":0}`
	// The same tokens as the command run gives.
	want := mustCall(t, "", "run", "-p", "package main", "-n", "8", "--temperature", "0", "--json")
	text := regexp.MustCompile(`"text":("[^,]*")`).FindStringSubmatch(want.stdout)
	if got := ask(body, "sk-first-first"); text == nil || !strings.Contains(got, `"text":`+text[1]) {
		t.Errorf("the server says %s, run says %s", got, want.stdout)
	}
	if got := ask(body, "sk-other"); !strings.Contains(got, "invalid_api_key") {
		t.Errorf("with a wrong key: %s", got)
	}
	http.DefaultClient.CloseIdleConnections()
	cancel(process.Signalled{Signal: syscall.SIGTERM})
	if c := <-code; c != exitOK {
		t.Errorf("exit %d after SIGTERM: %s", c, said.String())
	}
}

func TestServeUsage(t *testing.T) {
	for part, args := range map[string][]string{
		"cannot be read":      {"--api-key-file", "/nowhere/keys"},
		"there is none":       {"--api-key-file", os.DevNull},
		"there are no keys":   {"--addr", "0.0.0.0:0"},
		"must be 0 or more":   {"--drain-timeout", "-1s"},
		"invalid origin":      {"--origin", "x", "--addr", "127.0.0.1:0"},
		"needs a certificate": {"--tls-cert", "x", "--addr", "127.0.0.1:0"},
		"two models":          {"--name", "a", "--name", "a", "--addr", "127.0.0.1:0"},
		"address":             {"--addr", "127.0.0.1"},
	} {
		var errs strings.Builder
		if code := run(t.Context(), append([]string{"serve"}, args...), strings.NewReader(""), io.Discard, &errs, testEnv()); code == exitOK || !strings.Contains(errs.String(), part) {
			t.Errorf("%q: exit %d, %q", args, code, errs.String())
		}
	}
}

// The commands of trace read the records of a running server.
func TestTraceFrom(t *testing.T) {
	raw, err := os.ReadFile(records(t))
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.URL.String() + " " + r.Header.Get("Authorization")
		_, _ = w.Write(raw)
	}))
	defer srv.Close()
	t.Setenv("MOEFLUX_API_KEY", "sk-mine")
	file := records(t)
	for _, args := range [][]string{
		{"show"}, {"why", "--token", "1"}, {"diff", file}, {"export", "--perfetto", filepath.Join(t.TempDir(), "x.json")},
	} {
		here, there := append([]string{"trace", args[0]}, args[1:]...), append([]string{"trace", args[0], "--from", srv.URL, "--for", "2s"}, args[1:]...)
		got, want := mustCall(t, "", there...), mustCall(t, "", append(here, file)...)
		if got.stdout != want.stdout {
			t.Errorf("%q prints\n%s\nand of a file\n%s", there, got.stdout, want.stdout)
		}
		if q := <-asked; q != "/debug/records?seconds=2 Bearer sk-mine" {
			t.Errorf("the server was asked for %s", q)
		}
	}
	for part, args := range map[string][]string{
		"there are no records": {"show"}, "two sources": {"show", "--from", srv.URL, file}, "belong to --from": {"why", "--for", "1s", file},
		"not an address": {"whatif", "--from", "localhost:8080"}, "does not answer": {"why", "--from", "http://127.0.0.1:1"},
	} {
		var errs strings.Builder
		if code := run(t.Context(), append([]string{"trace"}, args...), strings.NewReader(""), io.Discard, &errs, testEnv()); code == exitOK || !strings.Contains(errs.String(), part) {
			t.Errorf("%q: exit %d, %q", args, code, errs.String())
		}
	}
}
