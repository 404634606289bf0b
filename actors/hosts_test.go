package actors_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/actors/remote/frame"
	expert "github.com/moeflux/moeflux-actor/actors/remote/host"
	"github.com/moeflux/moeflux-actor/actors/remote/host/hosttest"
	"github.com/moeflux/moeflux-actor/actors/remote/secrets"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// expertHost starts an expert host that lives as long as the test, and returns its address.
func expertHost(t *testing.T, cfg expert.Config) string {
	t.Helper()
	if cfg.Device == nil {
		cfg.Device = device(t, 1)
	}
	return hosttest.Serve(t, cfg)
}

// connected waits until so many of an engine's hosts can be asked.
func connected(t *testing.T, e *actors.Engine, n int) {
	t.Helper()
	for range 500 {
		up := 0
		for _, h := range statsOf(t, e).Hosts {
			if h.Up {
				up++
			}
		}
		if up == n {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("not %d hosts can be asked: %+v", n, statsOf(t, e).Hosts)
}

// asksHosts is an engine with a few slots that asks hosts, most of the experts being theirs.
func asksHosts(dir string, addrs ...string) actors.Config {
	return actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 64 << 10, Hosts: strings.Join(addrs, ",")}
}

// TestHosts holds a conversation with one and four expert hosts, which map their experts, load them
// or read them: the bits are the same as with none, of models of every kind of expert.
func TestHosts(t *testing.T) {
	cases := []struct {
		name   string
		inputs host.Activations
	}{
		{fixtures.Qwen35MoEQ4, host.F32}, {fixtures.Qwen35MoEQ4, host.Int8},
		{fixtures.DeepseekV3BF16, host.F32},
		{fixtures.GptOssMXFP4, host.F32}, {fixtures.GptOssMXFP4, host.Int8},
	}
	for i, tc := range cases {
		if !testenv.ShareOf(t, "case", i, len(cases), testenv.Rounds(3, 1, 1)) {
			continue
		}
		t.Run(fmt.Sprint(tc.name, " ", tc.inputs), func(t *testing.T) {
			dir := fixtures.Packed(t, tc.name, 0)
			compute := func() gpu.Device {
				d, err := host.New(host.Config{Threads: 1, Activations: tc.inputs})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { d.Close() })
				return d
			}
			base := open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered, Device: compute()})
			text := prompt(1, 40, base.Model().VocabSize)
			want, err := transcript(sequence(t, base), text, 8)
			if err != nil {
				t.Fatal(err)
			}
			reads := func() string {
				return expertHost(t, expert.Config{Model: dir, ExpertIO: "buffered", ExpertMemory: 64 << 10, Device: compute()})
			}
			maps := expertHost(t, expert.Config{Model: dir, Device: compute()})
			loads := expertHost(t, expert.Config{Model: dir, ExpertIO: "loaded", Device: compute()})
			all := []string{maps, loads, reads(), reads()}
			for _, hosts := range [][]string{all[:1], all[1:2], all[2:3], all} {
				cfg := asksHosts(dir, hosts...)
				cfg.Device = compute()
				e := open(t, cfg)
				connected(t, e, len(hosts))
				got, err := transcript(sequence(t, e), text, 8)
				if err != nil {
					t.Fatal(err)
				}
				sameLogits(t, got, want)
				computed := int64(0)
				for i, h := range statsOf(t, e).Hosts {
					if computed += h.Uses; h.Failed != 0 {
						t.Errorf("host %d of %d has failed: %+v", i, len(hosts), h)
					}
				}
				if computed == 0 {
					t.Errorf("none of %d hosts has computed anything", len(hosts))
				}
			}
		})
	}
}

// TestHostsSum has hosts answer with sums: logits differ by rounding alone, and what changes
// results says so. How many bytes that saves depends on what is asked for when.
func TestHostsSum(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	base := open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered})
	text := prompt(1, 40, base.Model().VocabSize)
	want, err := transcript(sequence(t, base), text, 8)
	if err != nil {
		t.Fatal(err)
	}
	few := expert.Config{Model: dir, ExpertIO: "buffered", ExpertMemory: 64 << 10} // several waves for an ask
	hosts := []string{expertHost(t, expert.Config{Model: dir}), expertHost(t, few)}
	for _, sums := range []bool{false, true} {
		cfg := asksHosts(dir, hosts...)
		cfg.HostsSum = sums
		e := open(t, cfg)
		connected(t, e, len(hosts))
		if says := strings.Contains(e.Info().Exactness, " hosts=sum "); says != sums {
			t.Errorf("with sums %v: %s", sums, e.Info().Exactness)
		}
		got, err := transcript(sequence(t, e), text, 8)
		if err != nil {
			t.Fatal(err)
		}
		if !sums {
			sameLogits(t, got, want)
		} else {
			for i := range want {
				// some outputs in float32 are added up another way, in each layer
				if off := numcmp.MaxRelative(got[i], want[i]); off > 1e-5 {
					t.Errorf("logits %d differ by %g of the largest", i, off)
				}
			}
		}
		for i, h := range statsOf(t, e).Hosts {
			if h.Failed != 0 || h.Uses == 0 {
				t.Errorf("with sums %v, host %d: %+v", sums, i, h)
			}
		}
	}
}

func sameLogits(t *testing.T, got, want [][]float32) {
	t.Helper()
	for i := range want {
		if !slices.Equal(got[i], want[i]) {
			t.Fatalf("logits %d are not the same", i)
		}
	}
}

// relay stands between an engine and a host.
type relay struct {
	net.Listener
	to string

	mu    sync.Mutex
	ready sync.Cond
	held  bool // nothing passes, and nothing ends
	cut   bool // who comes is turned away
	open  map[net.Conn]bool
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, to: to, open: make(map[net.Conn]bool)}
	r.ready.L = &r.mu
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { r.pass(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		r.set(false, true)
		all.Wait()
	})
	return r
}

// set holds everything, or cuts all connections and lets nobody in, or neither.
func (r *relay) set(held, cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held, r.cut = held, cut
	for c := range r.open {
		if cut {
			c.Close()
		}
	}
	r.ready.Broadcast()
}

// enter notes a connection, unless there shall be none.
func (r *relay) enter(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut {
		c.Close()
		return false
	}
	r.open[c] = true
	return true
}

func (r *relay) pass(in net.Conn) {
	defer in.Close()
	out, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer out.Close()
	if !r.enter(in) || !r.enter(out) {
		return
	}
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() { r.copy(out, in) })
	r.copy(in, out)
}

func (r *relay) copy(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 32<<10)
	for {
		n, err := from.Read(b)
		r.mu.Lock()
		for r.held {
			r.ready.Wait()
		}
		r.mu.Unlock()
		if n > 0 {
			if _, err := to.Write(b[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// TestHostsComeAndGo decodes while connections to hosts are cut, fall silent and come back: no text
// fails, and the bits are those of an engine alone.
func TestHostsComeAndGo(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	base := open(t, actors.Config{Model: dir, ExpertIO: actors.ExpertIOBuffered})
	text := prompt(1, 30, base.Model().VocabSize)
	rounds := testenv.Rounds(4, 12, 200)
	const tokens = 8
	want, err := transcript(sequence(t, base), text, tokens)
	if err != nil {
		t.Fatal(err)
	}
	relays := []*relay{newRelay(t, expertHost(t, expert.Config{Model: dir})), newRelay(t, expertHost(t, expert.Config{Model: dir}))}
	cfg := asksHosts(dir, relays[0].Addr().String(), relays[1].Addr().String())
	cfg.HostPatience = 60 * time.Millisecond
	e := open(t, cfg)
	connected(t, e, 2)
	done := make(chan struct{})
	var meddler sync.WaitGroup
	meddler.Go(func() {
		r := rand.New(rand.NewPCG(1, 4))
		for {
			select {
			case <-done:
				return
			case <-time.After(time.Duration(r.IntN(40)) * time.Millisecond):
			}
			kind := r.IntN(4)
			relays[r.IntN(2)].set(kind == 0, kind == 1)
		}
	})
	// Chance decides which connection suffers when: an ask has to fail, and each host to compute.
	shown := func() bool {
		h := statsOf(t, e).Hosts
		return h[0].Failed+h[1].Failed > 0 && h[0].Uses > 0 && h[1].Uses > 0
	}
	slowest := time.Duration(0)
	texts := 0
	for ; texts < rounds || texts < 25*rounds && !shown(); texts++ {
		began := time.Now()
		got, err := transcript(sequence(t, e), text, tokens)
		if err != nil {
			t.Fatal(err)
		}
		sameLogits(t, got, want)
		slowest = max(slowest, time.Since(began)/(tokens+1))
		time.Sleep(20 * time.Millisecond)
	}
	close(done)
	meddler.Wait()
	for _, r := range relays {
		r.set(false, false)
	}
	connected(t, e, 2)
	st := statsOf(t, e)
	if !shown() {
		t.Errorf("no ask failed, or a host computed nothing; the test shows nothing: %+v", st.Hosts)
	}
	t.Logf("%d conversations, %+v; the slowest took %v a token", texts, st.Hosts, slowest)
}

// tokenFile writes a token.
func tokenFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestHostsRefused has hosts that must not be asked: the engine says why, and works without them.
func TestHostsRefused(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	token := tokenFile(t)
	rounds, err := host.New(host.Config{Threads: 1, Activations: host.Int8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rounds.Close() })
	for _, tc := range []struct{ name, addr, why string }{
		{"token", expertHost(t, expert.Config{Model: dir, Secrets: secrets.Files{TokenFile: token}}), "token is wrong"},
		{"model", expertHost(t, expert.Config{Model: fixtures.Packed(t, fixtures.GptOssMXFP4, 0)}), "another model"},
		{"bits", expertHost(t, expert.Config{Model: dir, Device: rounds}), "other bits"},
		{"nobody", "127.0.0.1:1", "refused"},
		{"garbage", impostor(t, []byte("HTTP/1.1 400 Bad Request\r\n\r\n")), "out of place"},
		{"huge", impostor(t, []byte{0xff, 0xff, 0xff, 0x7f, byte(frame.Welcome), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}), "too large"},
		{"no room", impostor(t, frame.AppendWelcome(nil, frame.Room{})), "do not fit together"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log testenv.Log
			cfg := asksHosts(dir, tc.addr)
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			e := open(t, cfg)
			for range 500 {
				if strings.Contains(log.String(), "not used") {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if !strings.Contains(log.String(), tc.why) {
				t.Errorf("the log does not say %q: %s", tc.why, log.String())
			}
			if _, err := transcript(sequence(t, e), prompt(1, 5, e.Model().VocabSize), 2); err != nil {
				t.Error(err)
			}
			if h := statsOf(t, e).Hosts[0]; h.Asks != 0 {
				t.Errorf("the host was asked: %+v", h)
			}
		})
	}
}

// impostor listens, and says one thing to everybody.
func impostor(t *testing.T, says []byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(says)
			time.Sleep(10 * time.Millisecond)
			c.Close()
		}
	})
	t.Cleanup(func() {
		l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// TestHostileEngines send a host what no engine sends: each loses its connection, and an engine
// beside them notices nothing.
func TestHostileEngines(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	addr := expertHost(t, expert.Config{Model: dir})
	e := open(t, asksHosts(dir, addr))
	connected(t, e, 1)
	text := prompt(1, 12, e.Model().VocabSize)
	want, err := transcript(sequence(t, e), text, 2)
	if err != nil {
		t.Fatal(err)
	}
	print, err := e.Fingerprint(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shape := frame.Shape{Layers: len(e.Model().Layers), Experts: e.Model().NumExperts, Hidden: e.Model().HiddenSize}
	hello := frame.AppendHello(nil, frame.Hello, &frame.Greeting{Version: frame.Version, Shape: shape, Fingerprint: print})
	older := frame.AppendHello(nil, frame.Hello, &frame.Greeting{Version: frame.Version + 1, Shape: shape, Fingerprint: print})
	ask := &frame.Question{Uses: []frame.Use{{Expert: 1, Rows: []int32{0}}}, Inputs: make([]float32, shape.Hidden)}
	far := &frame.Question{Layer: shape.Layers, Uses: ask.Uses, Inputs: ask.Inputs}
	many := bytes.Repeat(frame.AppendAsk(nil, 1, shape.Hidden, ask), 2000)
	for name, says := range map[string][]byte{
		"garbage": []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "an ask of a stranger": frame.AppendAsk(nil, 1, shape.Hidden, ask), "another version": older,
		"a layer beyond": frame.AppendAsk(hello[:len(hello):len(hello)], 1, shape.Hidden, far), "two greetings": append(hello[:len(hello):len(hello)], hello...),
		"more asks than allowed": append(hello[:len(hello):len(hello)], many...), "half a frame": hello[:20],
	} {
		t.Run(name, func(t *testing.T) {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			go c.Write(says)
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			if n, err := drainConn(c); err != nil {
				t.Errorf("the connection is still open after %d bytes: %v", n, err)
			}
			got, err := transcript(sequence(t, e), text, 2)
			if err != nil {
				t.Fatal(err)
			}
			sameLogits(t, got, want)
		})
	}
	if h := statsOf(t, e).Hosts[0]; h.Failed != 0 || !h.Up {
		t.Errorf("the engine was disturbed: %+v", h)
	}
}

// drainConn reads until the other side ends the connection.
func drainConn(c net.Conn) (n int, err error) {
	b := make([]byte, 64<<10)
	for {
		k, err := c.Read(b)
		n += k
		if e, ok := err.(net.Error); ok && e.Timeout() {
			return n, fmt.Errorf("nothing comes, and nothing ends: %w", err)
		}
		if err != nil {
			return n, nil
		}
	}
}
