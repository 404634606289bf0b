package server

import (
	"context"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server/access"
	"github.com/moeflux/moeflux-actor/server/models"
)

const helloTo = `{"max_tokens":2,"messages":[{"role":"user","content":"one two three"}]}`

// Requests and tokens of a minute run out and come back; the headers say how many are left, and the
// answer when to ask again.
func TestQuotaHeaders(t *testing.T) {
	now := time.Unix(1000, 0)
	url := serving(t, new(scripted.Model), func(o *Options) {
		o.Keys = []access.Key{{Secret: "sk-first-first", Name: "a", RequestsPerMinute: 3, TokensPerMinute: 10}, {Secret: "sk-second-second", Name: "a", RequestsPerMinute: 3, TokensPerMinute: 10}}
		o.Now = func() time.Time { return now }
	}).URL + "/v1/chat/completions"
	for i, c := range []struct {
		after                                        time.Duration
		status                                       int
		requests, requestsReset, tokens, tokensReset string
		retry                                        string
	}{
		{0, 200, "2", "20s", "10", "0s", ""},
		{0, 200, "1", "40s", "4", "36s", ""},
		{0, 429, "1", "40s", "0", "1m12s", "18"},
		{18 * time.Second, 200, "0", "42s", "1", "54s", ""},
		{10 * time.Second, 429, "1", "32s", "0", "1m20s", "26"},
	} {
		now = now.Add(c.after)
		resp := send(t, url, helloTo, "X-Api-Key", []string{"sk-first-first", "sk-second-second"}[i%2])
		resp.Body.Close()
		h := resp.Header
		if resp.StatusCode != c.status || h.Get("X-Ratelimit-Limit-Requests") != "3" || h.Get("X-Ratelimit-Limit-Tokens") != "10" ||
			h.Get("X-Ratelimit-Remaining-Requests") != c.requests || h.Get("X-Ratelimit-Reset-Requests") != c.requestsReset ||
			h.Get("X-Ratelimit-Remaining-Tokens") != c.tokens || h.Get("X-Ratelimit-Reset-Tokens") != c.tokensReset || h.Get("Retry-After") != c.retry {
			t.Errorf("request %d: %d %v, want %+v", i, resp.StatusCode, h, c)
		}
	}
}

// In Anthropic's API the headers have its names, and say when all is there again.
func TestQuotaHeadersOfMessages(t *testing.T) {
	now := time.Date(2026, 11, 23, 22, 0, 0, 1, time.FixedZone("elsewhere", 3600))
	base := serving(t, new(scripted.Model), func(o *Options) {
		o.Keys = []Key{{Secret: "sk-first-first", RequestsPerMinute: 3, TokensPerMinute: 10}, {Secret: "sk-second-second", Name: "b", Running: 1, Queued: 1}}
		o.Now = func() time.Time { return now }
	}).URL
	const prefix = "Anthropic-Ratelimit-"
	for i, c := range []struct {
		path, key string
		status    int
		want      map[string]string
	}{
		{"", "sk-first-first", 200, map[string]string{
			prefix + "Requests-Limit": "3", prefix + "Requests-Remaining": "2", prefix + "Requests-Reset": "2026-11-23T21:00:21Z",
			prefix + "Tokens-Limit": "10", prefix + "Tokens-Remaining": "10", prefix + "Tokens-Reset": "2026-11-23T21:00:01Z",
		}},
		{"/count_tokens", "sk-first-first", 200, map[string]string{
			prefix + "Requests-Limit": "3", prefix + "Requests-Remaining": "1", prefix + "Requests-Reset": "2026-11-23T21:00:41Z",
			prefix + "Tokens-Limit": "10", prefix + "Tokens-Remaining": "4", prefix + "Tokens-Reset": "2026-11-23T21:00:37Z",
		}},
		{"", "sk-first-first", 200, nil},
		{"", "sk-first-first", 429, map[string]string{
			prefix + "Requests-Limit": "3", prefix + "Requests-Remaining": "0", prefix + "Requests-Reset": "2026-11-23T21:01:01Z",
			prefix + "Tokens-Limit": "10", prefix + "Tokens-Remaining": "0", prefix + "Tokens-Reset": "2026-11-23T21:01:13Z", "Retry-After": "20",
		}},
		{"", "sk-second-second", 200, map[string]string{
			prefix + "Requests-Limit": "2", prefix + "Requests-Remaining": "1", prefix + "Requests-Reset": "2026-11-23T21:00:02Z",
		}},
	} {
		resp := send(t, base+"/v1/messages"+c.path, helloTo, "X-Api-Key", c.key)
		resp.Body.Close()
		got := make(map[string]string)
		for name := range resp.Header {
			if strings.Contains(name, "Ratelimit") || name == "Retry-After" {
				got[name] = resp.Header.Get(name)
			}
		}
		if resp.StatusCode != c.status || c.want != nil && !maps.Equal(got, c.want) {
			t.Errorf("request %d: %d %v, want %d %v", i, resp.StatusCode, got, c.status, c.want)
		}
	}
}

// Requests beyond those that may run wait for their turn, with keepalives, and have it in the order
// of coming; beyond the queue they are refused. Who leaves does not keep a place.
func TestTurns(t *testing.T) {
	goOn := make(chan struct{})
	m := held(goOn)
	url := serving(t, m, func(o *Options) { o.Keys = []access.Key{{Secret: "sk-first-first", Running: 1, Queued: 2}} }).URL + "/v1/chat/completions"
	// ask asks until it is let in: what asked before, to see who is inside, may itself be inside
	// for a moment after it was answered.
	ask := func(ctx context.Context) chan int {
		status := make(chan int, 1)
		go func() {
			for {
				req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(hello))
				if err != nil {
					t.Error(err)
				}
				req.Header = http.Header{"Content-Type": {"application/json"}, "X-Api-Key": {"sk-first-first"}}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					status <- 0
					return
				}
				resp.Body.Close()
				if resp.StatusCode != http.StatusTooManyRequests {
					status <- resp.StatusCode
					return
				}
			}
		}()
		return status
	}
	inside := func(n int) func() bool {
		return func() bool {
			resp := send(t, strings.Replace(url, "chat/completions", "messages/count_tokens", 1), hello, "X-Api-Key", "sk-first-first")
			resp.Body.Close()
			return resp.Header.Get("Anthropic-Ratelimit-Requests-Remaining") == []string{"", "1", "0", "0"}[n] && (n < 3) == (resp.StatusCode != 429)
		}
	}
	first := ask(t.Context())
	eventually(t, "one request runs", func() bool { return m.Open() == 1 })
	leaving, leave := context.WithCancel(t.Context())
	second := ask(leaving)
	eventually(t, "two are inside", inside(2))
	third := ask(t.Context())
	eventually(t, "three are inside", inside(3))
	if m.Open() != 1 {
		t.Errorf("%d requests run, want 1", m.Open())
	}
	leave()
	if s := <-second; s != 0 {
		t.Errorf("who left got %d", s)
	}
	eventually(t, "one has left", inside(2))
	close(goOn)
	if a, b := <-first, <-third; a != 200 || b != 200 {
		t.Errorf("%d, %d", a, b)
	}
}

// Keys are replaced while a request runs: it goes on, and counts for its name.
func TestSetKeys(t *testing.T) {
	goOn := make(chan struct{})
	m := held(goOn)
	s, err := New(Options{Models: []models.Served{{Name: "demo", Model: m}}, Keys: []access.Key{{Secret: "sk-first-first", Name: "a", Running: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	base := startHandler(t, s)
	first := make(chan int, 1)
	go func() {
		status, _ := post(t, base+"/v1/chat/completions", hello, "X-Api-Key", "sk-first-first")
		first <- status
	}()
	eventually(t, "the request runs", func() bool { return m.Open() == 1 })
	if err := s.SetKeys([]access.Key{{Secret: "short"}}); err == nil {
		t.Error("a wrong key is taken")
	}
	if err := s.SetKeys([]access.Key{{Secret: "sk-other-other", Name: "a", Weight: 3, Running: 1}}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]int{"sk-first-first": 401, "sk-other-other": 429} {
		if status, body := post(t, base+"/v1/chat/completions", hello, "X-Api-Key", key); status != want {
			t.Errorf("%s: %d %s, want %d", key, status, body, want)
		}
	}
	close(goOn)
	if status := <-first; status != 200 {
		t.Errorf("the request ended with %d", status)
	}
	if status, body := post(t, base+"/v1/chat/completions", hello, "X-Api-Key", "sk-other-other"); status != 200 {
		t.Errorf("the new key, afterwards: %d %s", status, body)
	}
	if w := m.Last().Weight; w != 3 {
		t.Errorf("the model is asked with weight %d, the new key has 3", w)
	}
}

// The file of keys is read again when it has changed for a moment, and for a signal; a mistake in
// it changes nothing.
func TestFollowKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	write := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Options{Models: []models.Served{{Name: "demo", Model: new(scripted.Model)}}})
		if err != nil {
			t.Fatal(err)
		}
		names := func() (all []string) {
			for _, k := range s.keys.All() {
				all = append(all, k.Name)
			}
			return all
		}
		expect := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			if got := strings.Join(names(), " "); got != strings.Join(want, " ") {
				t.Errorf("%s the keys are %q, want %q", when, got, want)
			}
		}
		write("sk-first-first name=a\n")
		ctx, cancel := context.WithCancel(t.Context())
		again := make(chan os.Signal)
		go s.FollowKeys(ctx, path, again)
		expect("at first", "a")
		write("sk-first-first name=a\nsk-second-second name=bee\n")
		time.Sleep(1500 * time.Millisecond)
		expect("before it has been still for a second", "a")
		time.Sleep(time.Second)
		expect("after a change", "a", "bee")
		write("sk-first-first colour=red\n")
		time.Sleep(3 * time.Second)
		expect("after a mistake", "a", "bee")
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		expect("without a file", "a", "bee")
		write("sk-third-third name=c\n")
		again <- os.Interrupt
		expect("after a signal", "c")
		cancel()
		synctest.Wait()
	})
}
