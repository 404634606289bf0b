package pagetest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server"
)

// Errors say what went wrong, and what to do.
func testErrors(t *testing.T, b context.Context) {
	var fault atomic.Pointer[error]
	fail := func(err error) { fault.Store(&err) }
	s, _ := serving(t, func(ctx context.Context, r moeflux.Request) moeflux.Events {
		if err := fault.Load(); err != nil {
			return func(yield func(moeflux.Event, error) bool) { yield(moeflux.Event{}, *err) }
		}
		return scripted.Echo(ctx, r)
	}, func(o *server.Options) {
		o.Keys = []server.Key{{Secret: "sk-first-first", Name: "me"}}
	})
	p := openAt(t, b, s)
	p.expect("Failed to load resource") // the browser's own line for each status of an error

	// Without a key, and with a wrong one.
	p.until("document.getElementById('key-dialog').open")
	p.keys("sk-wrong-wrong")
	p.click("#key-dialog [type=submit]")
	p.until("document.getElementById('key-dialog').open && document.getElementById('key-title').innerText.includes('does not know')")
	p.picture("key")
	p.keys("sk-first-first")
	p.click("#key-dialog [type=submit]")
	p.until("document.getElementById('only-model').innerText === 'scripted'")

	problem := "document.querySelector('#messages .error')?.innerText ?? ''"
	for _, tc := range []struct {
		err  error
		want string
	}{
		{&moeflux.ContextError{Max: 4096}, "4096 positions. Edit an earlier message"},
		{&moeflux.QueueFullError{RetryAfter: 2 * time.Second}, "Retry in"},
		{errors.New("the disk is on fire"), "the disk is on fire."},
	} {
		fail(tc.err)
		p.click("#new")
		p.begin("hello")
		p.until("(%s).includes(%q)", problem, tc.want)
		p.picture("error")
	}
	// What was refused for now can be tried again after the time that the server gave.
	fail(&moeflux.QueueFullError{RetryAfter: 2 * time.Second})
	p.click("#new")
	p.begin("hello")
	p.until("document.querySelector('#messages .error button')?.disabled")
	fault.Store(nil)
	p.until("document.querySelector('#messages .error button')?.disabled === false")
	p.click("#messages .error button")
	p.until("!document.querySelector('#messages .error')")
	p.done()
	if got := p.answer(); got != "hello" {
		t.Errorf("tried again it says %q", got)
	}
	// A server that is gone, before and within an answer.
	p.web.CloseClientConnections()
	p.web.Close()
	p.begin("anyone?")
	p.until("(%s).includes('does not answer')", problem)
}

// A stream that breaks off is no answer.
func testBroken(t *testing.T, b context.Context) {
	s, _ := serving(t, told("", strings.Repeat("word ", 10_000), 5*time.Millisecond))
	p := open(t, b, s)
	p.expect("ERR_INCOMPLETE_CHUNKED_ENCODING")
	p.expect("Failed to load resource")
	p.begin("go on")
	p.until("document.querySelector('.message.assistant .text')?.innerText.length > 20")
	p.web.CloseClientConnections()
	p.until("document.querySelector('#messages .error')?.innerText.includes('broke off')")
	if got := p.answer(); !strings.HasPrefix(got, "word word") {
		t.Errorf("what came before is gone: %q", got)
	}
}
