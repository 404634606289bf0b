package server

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server/access"
	"github.com/moeflux/moeflux-actor/server/models"
)

// listening starts a server and returns its URL, and how it ended.
func listening(t *testing.T, ctx context.Context, o Options, c Listening) (url string, ended <-chan error) {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	told, failed := make(chan string, 1), make(chan error, 1)
	c.Told = func(url string) { told <- url }
	go func() { failed <- s.Listen(ctx, c) }()
	select {
	case url = <-told:
	case err := <-failed:
		failed <- err
	}
	return url, failed
}

func demo(m models.Model) Options { return Options{Models: []models.Served{{Name: "demo", Model: m}}} }

func TestListen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	url, ended := listening(t, ctx, demo(new(scripted.Model)), Listening{Addr: "127.0.0.1:0", Drain: time.Minute})
	if !strings.HasPrefix(url, "http://127.0.0.1:") {
		t.Fatal(url)
	}
	if status, body := post(t, url+"/v1/chat/completions", hello); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if _, err := http.Get(url + "/healthz"); err == nil {
		t.Error("the server still answers")
	}
}

// The address that is told is the one that was asked for.
func TestListenEverywhere(t *testing.T) {
	for addr, prefix := range map[string]string{"0.0.0.0:0": "http://0.0.0.0:", "127.0.0.1:0": "http://127.0.0.1:"} {
		ctx, cancel := context.WithCancel(t.Context())
		url, ended := listening(t, ctx, demo(new(scripted.Model)), Listening{Addr: addr, Anyone: true, Drain: time.Minute})
		cancel()
		if err := <-ended; err != nil || !strings.HasPrefix(url, prefix) {
			t.Errorf("%s: %s, %v", addr, url, err)
		}
	}
}

// A stream that outlasts the drain ends with an error, and the server ends.
func TestListenDrains(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	m := held(nil)
	url, ended := listening(t, ctx, demo(m), Listening{Addr: "127.0.0.1:0", Drain: 50 * time.Millisecond})
	answer := make(chan string, 1)
	go func() {
		_, body := post(t, url+"/v1/chat/completions", `{"stream":true,`+hello[1:])
		answer <- body
	}()
	eventually(t, "the request is under way", func() bool { return m.Open() == 1 })
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if body := <-answer; !strings.Contains(body, `"code":"stopping"`) {
		t.Error(body)
	}
}

// Nobody comes in from outside without a key, unless that is wanted.
func TestListenOpen(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "cert.pem")
	if err := os.WriteFile(broken, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := demo(new(scripted.Model))
	keys.Keys = []access.Key{{Secret: "sk-first-first"}}
	for _, tc := range []struct {
		o    Options
		c    Listening
		part string
	}{
		{demo(new(scripted.Model)), Listening{Addr: "0.0.0.0:0"}, "no keys"},
		{demo(new(scripted.Model)), Listening{Addr: ":0"}, "no keys"},
		{demo(new(scripted.Model)), Listening{Addr: ":0", Anyone: true}, ""},
		{keys, Listening{Addr: ":0"}, ""},
		{demo(new(scripted.Model)), Listening{Addr: "localhost:0"}, ""},
		{demo(new(scripted.Model)), Listening{Addr: "127.0.0.1:0", CertFile: broken, KeyFile: broken}, "certificate"},
		{demo(new(scripted.Model)), Listening{Addr: "127.0.0.1:0", CertFile: broken}, "its key"},
		{demo(new(scripted.Model)), Listening{Addr: "nowhere.invalid:0"}, "nowhere.invalid"},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		_, ended := listening(t, ctx, tc.o, tc.c)
		cancel()
		if err := <-ended; (err == nil) != (tc.part == "") || err != nil && !strings.Contains(err.Error(), tc.part) {
			t.Errorf("%+v: %v", tc.c, err)
		}
	}
}

// Connections have a bound: one more waits until another ends. So has what comes before a body.
func TestListenBounds(t *testing.T) {
	url, _ := listening(t, t.Context(), demo(new(scripted.Model)), Listening{Addr: "127.0.0.1:0", Connections: 2})
	addr := strings.TrimPrefix(url, "http://")
	dial := func() net.Conn {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		return c
	}
	answered := func(c net.Conn, patience time.Duration) bool {
		_ = c.SetReadDeadline(time.Now().Add(patience))
		_, err := c.Read(make([]byte, 1))
		return err == nil
	}
	first, second := dial(), dial()
	if !answered(first, time.Minute) || !answered(second, time.Minute) {
		t.Fatal("two connections are not answered")
	}
	third := dial()
	if answered(third, 50*time.Millisecond) {
		t.Error("a third connection is answered beside two others")
	}
	first.Close()
	if !answered(third, time.Minute) {
		t.Error("a third connection is not answered after another has ended")
	}
	second.Close()
	req, _ := http.NewRequestWithContext(t.Context(), "GET", url+"/healthz", nil)
	req.Header.Set("X-Long", strings.Repeat("x", 2*maxHeader))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of %d bytes: %s", 2*maxHeader, resp.Status)
	}
}

// A client that never ends its headers does not keep its connection.
func TestSlowHeader(t *testing.T) {
	o := demo(new(scripted.Model))
	o.Patience = 50 * time.Millisecond
	url, _ := listening(t, t.Context(), o, Listening{Addr: "127.0.0.1:0"})
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost:")
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.ReadAll(c); err != nil {
		t.Error(err)
	}
}
