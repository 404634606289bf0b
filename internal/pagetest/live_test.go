package pagetest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server"
)

// demo serves the demo model with memory for some of its experts, so that the others are read.
func demo(t *testing.T, keys ...server.Key) *server.Server {
	t.Helper()
	dir, err := moeflux.DemoDir(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	o := moeflux.Options{Threads: 1}
	o.Config.ExpertMemory, o.Config.ExpertIO = 3<<20, "buffered"
	m, err := moeflux.Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s, err := server.New(server.Options{Keys: keys, Models: []server.Served{{
		Name: "demo", Model: m, Exactness: m.Info().Exactness, Engine: func() server.Engine { return m.Engine() },
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// listeners counts the requests for the live feed that are under way.
func listeners(h http.Handler, n *atomic.Int32) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/debug/live" {
			n.Add(1)
			defer n.Add(-1)
		}
		h.ServeHTTP(w, r)
	})
}

// busy has the model continue three texts, again and again, until the end of the test.
func busy(t *testing.T, p *tab) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	t.Cleanup(func() { cancel(); all.Wait() })
	for i := range 3 {
		all.Go(func() {
			for seed := i; ctx.Err() == nil; seed += 3 {
				body := fmt.Sprintf(`{"prompt": "package main\n\nimport (\n\t\"fmt\"\n", "max_tokens": 2000, "temperature": 1, "seed": %d}`, seed)
				r, err := http.NewRequestWithContext(ctx, "POST", p.web.URL+"/v1/completions", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Content-Type", "application/json")
				if resp, err := http.DefaultClient.Do(r); err == nil {
					_, _ = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
			}
		})
	}
}

// The live view shows what a streamed model does while it answers, and listens only while somebody
// sees it.
func testLive(t *testing.T, b context.Context) {
	n := new(atomic.Int32)
	p := open(t, b, listeners(demo(t), n))
	if n.Load() != 0 {
		t.Error("the chat listens to the live feed")
	}
	p.click("#to-live")
	p.until("document.querySelectorAll('#board .stage').length === 5")
	p.look(1240, 1500, "light")
	p.picture("live-idle")
	// Texts under way make everything move.
	busy(t, p)
	p.until("document.querySelector('#board tbody tr td:nth-child(3)')?.innerText === 'writing'")
	p.until("document.querySelectorAll('.causes li').length > 1")
	p.until("[...document.querySelectorAll('.stage b')].some((e) => e.innerText !== '0 %')")
	first := js[string](p, moving)
	p.until("%s !== %q", moving, first)
	for _, what := range []string{".map canvas", ".token canvas"} {
		if js[int](p, "(() => { const c = document.querySelector('%s'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data; const seen = new Set(); for (let i = 0; i < d.length; i += 4) seen.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]); return seen.size; })()", what) < 3 {
			t.Errorf("%s has nothing in it", what)
		}
	}
	if os.Getenv(picturesIn) != "" { // the strip of tokens fills
		p.until("Number(document.querySelector('canvas[role=slider]').getAttribute('aria-valuemax')) > 40")
	}
	p.view(1240, 1740, "light", "live-light")
	p.view(1240, 1740, "dark", "live")
	p.view(390, 844, "dark", "live-phone")
	// A token of before is looked at, by keyboard, and stays.
	p.look(1240, 1500, "light")
	js[any](p, "document.querySelector('canvas[role=slider]').focus()")
	p.press("ArrowLeft", 37)
	title := js[string](p, "document.querySelector('#board [aria-label=Tokens] .counts').innerText")
	frame := js[string](p, moving)
	p.until("%s !== %q", moving, frame)
	if got := js[string](p, "document.querySelector('#board [aria-label=Tokens] .counts').innerText"); got != title {
		t.Errorf("the chosen token was %q, and is %q", title, got)
	}
	// A page that nobody sees does not listen, and one that is seen again does.
	js[any](p, "{ Object.defineProperty(document, 'hidden', { value: true, configurable: true }); document.dispatchEvent(new Event('visibilitychange')); }")
	until(t, "nobody listens while the page is hidden", func() bool { return n.Load() == 0 })
	js[any](p, "{ Object.defineProperty(document, 'hidden', { value: false, configurable: true }); document.dispatchEvent(new Event('visibilitychange')); }")
	until(t, "the page listens again", func() bool { return n.Load() == 1 })
	p.click("#to-chat")
	until(t, "nobody listens while the chat is shown", func() bool { return n.Load() == 0 })
}

// moving is what changes from frame to frame.
const moving = "document.querySelector('.tiles').innerText + [...document.querySelectorAll('.stage')].map((e) => e.innerText).join()"

// Who may not see the inside is told so, once, and what the server says.
func testRefused(t *testing.T, b context.Context) {
	n := new(atomic.Int32)
	s := demo(t, server.Key{Secret: "sk-admin-admin", Name: "admin", Admin: true}, server.Key{Secret: "sk-first-first", Name: "me"})
	p := openAt(t, b, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/debug/live" {
			n.Add(1)
		}
		s.ServeHTTP(w, r)
	}))
	p.expect("Failed to load resource")
	p.until("document.getElementById('key-dialog').open")
	p.keys("sk-first-first")
	p.click("#key-dialog [type=submit]")
	p.until("document.getElementById('only-model').innerText === 'demo'")
	p.click("#to-live")
	p.until("document.querySelector('#live > .error').innerText.includes('needs the key of an admin')")
	if n.Load() != 1 {
		t.Errorf("it asked %d times", n.Load())
	}
}
