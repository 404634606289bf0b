package actors_test

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/actors/remote/frame"
	expert "github.com/moeflux/moeflux-actor/actors/remote/host"
	"github.com/moeflux/moeflux-actor/actors/remote/host/hosttest"
	"github.com/moeflux/moeflux-actor/actors/remote/secrets"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages/expertio"
)

// soon waits until something is so, and logs how long that took.
func soon(t *testing.T, what string, is func() bool) {
	t.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%s: not after %v", what, time.Since(began))
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Logf("%s: after %v", what, time.Since(began).Round(time.Millisecond))
}

// groupToken writes a token.
func groupToken(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHostsJoin gives an engine one host of a group of two: it asks both, and a third that joins
// later, until that leaves. Another one, which has another token, is not let in, and both sides say
// why. The bits are those of no hosts. It is so without TLS and with it.
func TestHostsJoin(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	base := open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered})
	text := prompt(1, 20, base.Model().VocabSize)
	want, err := transcript(sequence(t, base), text, 6)
	if err != nil {
		t.Fatal(err)
	}
	a, token := newAuthority(t), groupToken(t, "what all of them know")
	byTLS := a.files("host", time.Hour, "127.0.0.1")
	byTLS.TokenFile = token
	for _, tc := range []struct {
		name         string
		host, engine secrets.Files
	}{{"a token", secrets.Files{TokenFile: token}, secrets.Files{}}, {"TLS", byTLS, a.files("engine", time.Hour)}} {
		t.Run(tc.name, func(t *testing.T) {
			var firstLog, wrongLog testenv.Log
			cfg := expert.Config{Model: dir, Device: device(t, 1), Secrets: tc.host}
			start := func(log *testenv.Log, token string, join ...string) (string, func()) {
				cfg := cfg
				if cfg.Join = join; log != nil {
					cfg.Logger = slog.New(slog.NewTextHandler(log, nil))
				}
				cfg.Secrets.TokenFile = token
				return hosttest.Start(t, cfg)
			}
			first, _ := start(&firstLog, token)
			second, _ := start(nil, token, first)
			asks := asksHosts(dir)
			asks.HostsJoin, asks.HostsToken = second, token
			asks.HostsCert, asks.HostsKey, asks.HostsCA = tc.engine.Cert, tc.engine.Key, tc.engine.CA
			e := open(t, asks)
			connected(t, e, 2)
			uses := func(addr string) int64 {
				for _, h := range statsOf(t, e).Hosts {
					if h.Addr == addr {
						return h.Uses
					}
				}
				return 0
			}
			talk := func() {
				t.Helper()
				got, err := transcript(sequence(t, e), text, 6)
				if err != nil {
					t.Fatal(err)
				}
				sameLogits(t, got, want)
			}
			talk()
			if uses(first) == 0 || uses(second) == 0 {
				t.Errorf("not both hosts were asked: %+v", statsOf(t, e).Hosts)
			}
			hosts := 2
			for range testenv.Rounds(1, 1, 50) { // more than have places at once
				began := time.Now()
				third, end := start(nil, token, second)
				soon(t, "the third is asked", func() bool { talk(); return uses(third) > 0 })
				t.Logf("%v after it was started", time.Since(began).Round(time.Millisecond))
				end()
				hosts = min(hosts+1, expertio.MaxHosts)
				soon(t, "the third has left", func() bool {
					h := statsOf(t, e).Hosts
					return len(h) == hosts && !slices.ContainsFunc(h, func(h actors.HostStats) bool { return h.Addr == third && h.Up })
				})
				talk()
			}
			wrong, _ := start(&wrongLog, groupToken(t, "what nobody else knows"), first)
			soon(t, "the wrong token is refused", func() bool {
				return strings.Contains(wrongLog.String(), "the token is wrong") && strings.Contains(firstLog.String(), "a host may not join")
			})
			talk()
			if h := statsOf(t, e).Hosts; len(h) != hosts || uses(wrong) != 0 {
				t.Errorf("the engine knows of %+v", h)
			}
		})
	}
}

// TestNotAMember dials a host by TLS as another host does, which shows no certificate, and greets
// as an engine: the host ends the connection. It also does so with an engine's certificate and a
// Join.
func TestNotAMember(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	a := newAuthority(t)
	files, engine := a.files("host", time.Hour, "127.0.0.1"), a.files("engine", time.Hour)
	addr := expertHost(t, expert.Config{Model: dir, Secrets: files})
	e := open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered})
	print, err := e.Fingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	hello := &frame.Greeting{
		Version: frame.Version, Shape: frame.Shape{Layers: len(e.Model().Layers), Experts: e.Model().NumExperts, Hidden: e.Model().HiddenSize}, Fingerprint: print,
	}
	member, err := files.Member()
	if err != nil {
		t.Fatal(err)
	}
	client, err := engine.Client()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		tls  *tls.Config
		kind frame.Kind
		want frame.Kind // of the answer; 0 if there is none
	}{{"an engine", client, frame.Hello, frame.Welcome}, {"a host", member, frame.Join, frame.Joined}, {"a host that asks", member, frame.Hello, 0}, {"an engine that joins", client, frame.Join, 0}} {
		tc.tls.ServerName = "127.0.0.1"
		c, err := tls.Dial("tcp", addr, tc.tls)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Write(frame.AppendHello(nil, tc.kind, hello)); err != nil {
			t.Fatal(err)
		}
		f, err := frame.NewReader(c).Next()
		if f.Kind != tc.want || tc.want == 0 && (err == nil || errors.Is(err, os.ErrDeadlineExceeded)) {
			t.Errorf("%s hears kind %d, %q, error %v; want kind %d", tc.name, f.Kind, f.Body, err, tc.want)
		}
		c.Close()
	}
}
