package server

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server/access"
	"github.com/moeflux/moeflux-actor/server/models"
)

type ctxt = context.Context

func TestHosts(t *testing.T) {
	url := serving(t, new(scripted.Model), func(o *Options) { o.Hosts = []string{"models.lan"} }).URL + "/v1/chat/completions"
	for host, want := range map[string]int{
		"localhost:1": 200, "LOCALHOST": 200, "me.localhost": 200, "127.0.0.1:80": 200, "[::1]:80": 200, "192.168.1.5": 200, "models.lan:8080": 200,
		"evil.example": 403, "localhost.evil.example": 403, "models.lan.evil.example": 403, "127.0.0.1.evil.example": 403,
	} {
		if status, body := post(t, url, hello, "Host", host); status != want {
			t.Errorf("Host %s: %d %s", host, status, body)
		}
	}
}

func TestOrigins(t *testing.T) {
	url := serving(t, new(scripted.Model), func(o *Options) { o.Origins = []string{"https://app.example"} }).URL + "/v1/chat/completions"
	for _, tc := range []struct {
		headers []string
		status  int
		allowed string
	}{
		{nil, 200, ""},
		{[]string{"Origin", "https://evil.example"}, 403, ""},
		{[]string{"Sec-Fetch-Site", "cross-site"}, 403, ""},
		{[]string{"Origin", "https://app.example", "Sec-Fetch-Site", "cross-site"}, 200, "https://app.example"},
	} {
		resp := send(t, url, hello, tc.headers...)
		resp.Body.Close()
		if got := resp.Header.Get("Access-Control-Allow-Origin"); resp.StatusCode != tc.status || got != tc.allowed {
			t.Errorf("%v: %d, allowed %q", tc.headers, resp.StatusCode, got)
		}
	}
	// Reading is no crime, but a page of another site does not get to see what comes.
	req, _ := http.NewRequestWithContext(t.Context(), "GET", strings.Replace(url, "/v1/chat/completions", "/v1/models", 1), nil)
	req.Header.Set("Origin", "https://evil.example")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := resp.Header.Get("Access-Control-Allow-Origin"); got != "" {
		t.Errorf("a page of another site may read the list of models: %q", got)
	}
}

func TestContentType(t *testing.T) {
	url := serving(t, new(scripted.Model)).URL + "/v1/chat/completions"
	for kind, want := range map[string]int{"application/json": 200, "application/json; charset=utf-8": 200, "text/plain": 415, "application/x-www-form-urlencoded": 415, "": 415} {
		if status, body := post(t, url, hello, "Content-Type", kind); status != want {
			t.Errorf("%q: %d %s", kind, status, body)
		}
	}
}

func TestKeys(t *testing.T) {
	m := new(scripted.Model)
	base := serving(t, m, func(o *Options) {
		o.Keys = []access.Key{{Secret: "sk-first-first", Name: "a", Class: moeflux.Interactive}, {Secret: "sk-second-second", Name: "b", Class: moeflux.Background, Weight: 7}}
	}).URL
	url := base + "/v1/chat/completions"
	for _, tc := range []struct {
		headers []string
		status  int
	}{
		{nil, 401},
		{[]string{"Authorization", "Bearer sk-first-firs"}, 401},
		{[]string{"Authorization", "sk-first-first"}, 401},
		{[]string{"X-Api-Key", "sk-first-first2"}, 401},
		{[]string{"Authorization", "Bearer sk-first-first"}, 200},
		{[]string{"X-Api-Key", "sk-second-second"}, 200},
	} {
		if status, body := post(t, url, hello, tc.headers...); status != tc.status {
			t.Errorf("%v: %d %s", tc.headers, status, body)
		}
	}
	if r := m.Last(); r.Key != "b" || r.Class != moeflux.Background || r.Weight != 7 {
		t.Errorf("the model was asked as key %q, class %v and weight %d", r.Key, r.Class, r.Weight)
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/v1/models": 401, "//v1/models": 401, "/v1/../v1/models": 401, "/nowhere": 401} {
		req, _ := http.NewRequestWithContext(t.Context(), "GET", base+path, nil)
		req.URL.Opaque = "//" + req.URL.Host + path // as it is
		resp, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s without a key: %d", path, resp.StatusCode)
		}
	}
}

// held is a model that reads its prompt until it is told to go on, or until the request ends.
func held(goOn <-chan struct{}) *scripted.Model {
	return &scripted.Model{Say: func(ctx ctxt, r moeflux.Request) moeflux.Events {
		return func(yield func(moeflux.Event, error) bool) {
			yield(moeflux.Event{Prompt: &moeflux.Prompt{IDs: []int32{1}}}, nil)
			select {
			case <-goOn:
				s := scripted.NewTeller(yield, &r)
				s.Token(moeflux.Event{Text: "done", Raw: "done"})
				s.End(moeflux.StopEOS)
			case <-ctx.Done():
				yield(moeflux.Event{}, ctx.Err())
			}
		}
	}}
}

func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not after 20 s: %s", what)
		}
	}
}

func TestRunningLimit(t *testing.T) {
	goOn := make(chan struct{})
	m := held(goOn)
	url := serving(t, m, func(o *Options) { o.Keys = []access.Key{{Secret: "sk-first-first", Running: 1}} }).URL + "/v1/chat/completions"
	first := make(chan int)
	go func() {
		status, _ := post(t, url, hello, "X-Api-Key", "sk-first-first")
		first <- status
	}()
	eventually(t, "the first request is under way", func() bool { return m.Open() == 1 })
	release := sync.OnceFunc(func() { close(goOn) })
	defer time.AfterFunc(20*time.Second, release).Stop() // a second one that is let in would wait for ever
	resp := send(t, url, hello, "X-Api-Key", "sk-first-first")
	resp.Body.Close()
	if resp.StatusCode != 429 || resp.Header.Get("Retry-After") != "1" || resp.Header.Get("X-Ratelimit-Limit-Requests") != "1" {
		t.Errorf("the second: %d %v", resp.StatusCode, resp.Header)
	}
	release()
	if status := <-first; status != 200 {
		t.Errorf("the first: %d", status)
	}
	if status, body := post(t, url, hello, "X-Api-Key", "sk-first-first"); status != 200 {
		t.Errorf("a third, after the first: %d %s", status, body)
	}
}

func TestBodyLimit(t *testing.T) {
	url := serving(t, new(scripted.Model), func(o *Options) { o.MaxBody = 1000 }).URL + "/v1/chat/completions"
	if status, body := post(t, url, `{"messages":[{"role":"user","content":"`+strings.Repeat("x", 1000)+`"}]}`); status != 413 {
		t.Errorf("%d %s", status, body)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "POST", url, io.MultiReader(strings.NewReader(strings.Repeat(" ", 1000)), strings.NewReader(hello))) // says no length
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.Body.Close(); resp.StatusCode != 413 || req.ContentLength > 0 {
		t.Errorf("a body of %d bytes: %s", req.ContentLength, resp.Status)
	}
	for _, text := range []string{"", "[]", "null", "5", `"x"`, `{"a":1`, `{} {}`, `{"a":1}x`, "\xff", strings.Repeat(`{"a":`, 100)} {
		if status, body := post(t, url, text); status != 400 || !strings.Contains(body, "one JSON object") {
			t.Errorf("%q: %d %s", text, status, body)
		}
	}
}

// A client that never sends its body does not keep its connection, not even where it is refused.
func TestSlowBody(t *testing.T) {
	s := serving(t, new(scripted.Model), func(o *Options) { o.Patience = 50 * time.Millisecond })
	for _, tc := range []struct{ host, kind, status string }{
		{"localhost", "application/json", "400"}, {"evil.example", "application/json", "403"}, {"localhost", "text/plain", "415"},
	} {
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: %s\r\nContent-Length: 100\r\n\r\n{", tc.host, tc.kind)
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		answer, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 "+tc.status) {
			t.Fatalf("%+v: %q, %v", tc, answer, err)
		}
	}
}

// The time that a body may take does not bound the answer.
func TestAnswerOutlastsPatience(t *testing.T) {
	goOn := make(chan struct{})
	url := serving(t, held(goOn), func(o *Options) { o.Patience = 30 * time.Millisecond }).URL + "/v1/chat/completions"
	time.AfterFunc(300*time.Millisecond, func() { close(goOn) })
	if status, body := post(t, url, hello); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}

// A stream has its headers and a sign of life within about a second of silence, and more after it.
func TestKeepalive(t *testing.T) {
	goOn := make(chan struct{})
	resp := send(t, serving(t, held(goOn)).URL+"/v1/chat/completions", `{"stream":true,`+hello[1:])
	defer resp.Body.Close()
	b := make([]byte, 1<<16)
	n := 0
	for began := time.Now(); !strings.Contains(string(b[:n]), ": ping"); {
		k, err := resp.Body.Read(b[n:])
		if n += k; err != nil || time.Since(began) > 20*time.Second {
			t.Fatalf("%q, %v", b[:n], err)
		}
	}
	close(goOn)
	rest, err := io.ReadAll(resp.Body)
	if err != nil || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("%q, %v", rest, err)
	}
}

// Failing is a model whose answer breaks off with an error, after some tokens.
func failing(tokens int, err error) *scripted.Model {
	return &scripted.Model{Say: func(_ ctxt, r moeflux.Request) moeflux.Events {
		return func(yield func(moeflux.Event, error) bool) {
			s := scripted.NewTeller(yield, &r)
			s.Prompt(1, 0)
			for range tokens {
				s.Token(moeflux.Event{Text: "x", Raw: "x"})
			}
			yield(moeflux.Event{}, err)
		}
	}}
}

func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		err    error
		status int
		code   string
		retry  string
	}{
		{&moeflux.ContextError{Max: 100}, 400, "context_length_exceeded", ""},
		{&moeflux.QueueFullError{RetryAfter: 2500 * time.Millisecond}, 429, "queue_full", "3"},
		{moeflux.ErrEmptyPrompt, 400, "invalid_value", ""},
		{moeflux.ErrClosed, 503, "stopping", "5"},
		{&moeflux.StateMemoryError{}, 503, "state_memory", "10"},
		{context.DeadlineExceeded, 504, "timeout", ""},
		{io.ErrUnexpectedEOF, 500, "internal_error", ""},
	} {
		for tokens := range 2 {
			for _, stream := range []string{"", `"stream":true,`} {
				resp := send(t, serving(t, failing(tokens, tc.err)).URL+"/v1/chat/completions", `{`+stream+hello[1:])
				b, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				begun := tokens > 0 && stream != ""
				switch {
				case err != nil:
					t.Error(err)
				case !strings.Contains(string(b), `"code":"`+tc.code+`"`), strings.Contains(string(b), "[DONE]"):
					t.Errorf("%v: %s", tc.err, b)
				case begun && (resp.StatusCode != 200 || !strings.Contains(string(b), "data: {\"error\"")):
					t.Errorf("%v in a stream: %d %s", tc.err, resp.StatusCode, b)
				}
				// Of a stream that has no token yet the prompt's end may have been told already.
				if stream == "" && (resp.StatusCode != tc.status || resp.Header.Get("Retry-After") != tc.retry) {
					t.Errorf("%v: %d, Retry-After %q", tc.err, resp.StatusCode, resp.Header.Get("Retry-After"))
				}
			}
		}
	}
}

// A panic in a model is an error of its request, and of no other. Its stack is for the log alone.
func TestPanics(t *testing.T) {
	m := &scripted.Model{Say: func(_ ctxt, r moeflux.Request) moeflux.Events {
		return func(func(moeflux.Event, error) bool) { panic("oh") }
	}}
	url := serving(t, m).URL + "/v1/chat/completions"
	for range 2 {
		if status, body := post(t, url, hello); status != 500 || !strings.Contains(body, "internal_error") || strings.Contains(body, ".go:") {
			t.Errorf("%d %s", status, body)
		}
	}
}

// broken is a model that cannot even say what it is.
type broken struct{ *scripted.Model }

func (broken) Info() moeflux.Info { panic("oh") }

// A handler that panics is a 500 in the API's form, and the server goes on.
func TestHandlerPanics(t *testing.T) {
	base := start(t, Options{Models: []models.Served{{Name: "demo", Model: broken{new(scripted.Model)}}}}).URL
	for range 2 {
		resp, err := http.Get(base + "/v1/models")
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 500 || !strings.Contains(string(body), `"internal_error"`) {
			t.Errorf("%d %s", resp.StatusCode, body)
		}
	}
}

// Drain lets answers finish; when its patience ends, each stream ends with an error.
func TestDrain(t *testing.T) {
	for _, patient := range []bool{true, false} {
		goOn := make(chan struct{})
		m := held(goOn)
		s, err := New(Options{Models: []models.Served{{Name: "demo", Model: m}}})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		hs := &http.Server{Handler: s}
		go hs.Serve(l)
		base := "http://" + l.Addr().String()
		answer := make(chan string)
		go func() {
			_, body := post(t, base+"/v1/chat/completions", `{"stream":true,`+hello[1:])
			answer <- body
		}()
		eventually(t, "the request is under way", func() bool { return m.Open() == 1 })
		ctx, cancel := context.WithCancel(t.Context())
		drained := make(chan struct{})
		go func() {
			s.Drain(ctx)
			close(drained)
		}()
		eventually(t, "the server is not ready", func() bool {
			resp, err := http.Get(base + "/readyz")
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return resp.StatusCode == 503
		})
		if status, body := post(t, base+"/v1/chat/completions", hello); status != 503 || !strings.Contains(body, "stopping") {
			t.Errorf("a new request: %d %s", status, body)
		}
		if patient {
			close(goOn)
		} else {
			cancel()
		}
		body := <-answer
		<-drained
		cancel()
		if done := strings.Contains(body, "[DONE]"); done != patient || !patient && !strings.Contains(body, `"code":"stopping"`) {
			t.Errorf("patient %v: %s", patient, body)
		}
		hs.Close()
	}
}

// What was read for one key is not known to another, unless all share it on purpose.
func TestScopes(t *testing.T) {
	for _, shared := range []bool{false, true} {
		m := new(scripted.Model)
		url := serving(t, m, func(o *Options) {
			o.SharePrefixes = shared
			o.Keys = []access.Key{{Secret: "sk-first-first", Name: "a"}, {Secret: "sk-second-second", Name: "b"}}
		}).URL
		scopes := make(map[string]bool)
		for _, secret := range []string{"sk-first-first", "sk-second-second", "sk-first-first"} {
			for path, body := range map[string]string{"/v1/chat/completions": hello, "/v1/completions": `{"prompt":"x"}`, "/v1/responses": `{"input":"x"}`, "/v1/messages": `{"max_tokens":9,` + hello[1:]} {
				if status, answer := post(t, url+path, body, "X-Api-Key", secret); status != 200 {
					t.Fatal(path, status, answer)
				}
				scopes[m.Last().Key+"|"+m.Last().Scope] = true
			}
		}
		if want := map[bool]string{false: "map[a|a:true b|b:true]", true: "map[a|:true b|:true]"}[shared]; fmt.Sprint(scopes) != want {
			t.Errorf("shared %v: keys and scopes were %v, want %v", shared, scopes, want)
		}
	}
}
