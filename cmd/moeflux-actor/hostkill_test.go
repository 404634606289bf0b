package main

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// hostProcess is an expert host in a process of its own.
type hostProcess struct {
	t    *testing.T
	dir  string
	addr string
	args []string // beside those that all have
	cmd  *exec.Cmd
}

var saidHost = regexp.MustCompile(`listening on (\S+)`)

// start starts it, at the address that it had before.
func (h *hostProcess) start() {
	h.t.Helper()
	h.cmd = exec.Command(os.Args[0], append([]string{"host", h.dir, "--addr", h.addr, "--threads", "1", "--activations", "f32"}, h.args...)...)
	h.cmd.Env = append(os.Environ(), asProgram+"=1")
	said, err := h.cmd.StderrPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	var all strings.Builder
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		if m := saidHost.FindStringSubmatch(lines.Text()); m != nil {
			h.addr = m[1]
			go io.Copy(io.Discard, said)
			return
		}
	}
	h.t.Fatalf("the host ended without an address: %s", all.String())
}

// kill ends it as nothing can prevent.
func (h *hostProcess) kill() {
	if h.cmd.ProcessState == nil {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
	}
}

// halt stops it, and lets it go on after a while.
func (h *hostProcess) halt(d time.Duration) {
	_ = h.cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(d)
	_ = h.cmd.Process.Signal(syscall.SIGCONT)
}

// held is what this process holds.
type held struct {
	goroutines, files int
	heap              uint64
}

func holds(t *testing.T) held {
	t.Helper()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	files, err := filepath.Glob("/dev/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	return held{runtime.NumGoroutine(), len(files), m.HeapAlloc}
}

// logitsOf evaluates a text token by token, and returns the logits of each and the longest time
// that one took.
func logitsOf(t *testing.T, e *actors.Engine, text []int32) (all [][]float32, slowest time.Duration) {
	t.Helper()
	s, err := e.NewSequence(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range text {
		began := time.Now()
		got, err := s.Eval(t.Context(), text[i:i+1])
		if err != nil {
			t.Fatalf("token %d: %v", i, err)
		}
		slowest = max(slowest, time.Since(began))
		all = append(all, slices.Clone(got))
	}
	return all, slowest
}

// TestHostsKilled decodes while two hosts, processes of their own, are killed and started again at
// the same address, and stopped and let go on. No text fails, the bits are those of an engine
// alone, and nothing is left of what has ended.
func TestHostsKilled(t *testing.T) {
	dir := mustInspect(t).Dir
	device, err := host.New(host.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { device.Close() }) // after the engines
	open := func(hosts string) *actors.Engine {
		e, err := actors.Open(t.Context(), actors.Config{
			Model: dir, Device: device, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 200 << 10, Hosts: hosts, HostPatience: 150 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close(context.Background()) })
		return e
	}
	text := make([]int32, 12)
	for i := range text {
		text[i] = int32(1 + i*37%200)
	}
	want, _ := logitsOf(t, open(""), text)
	hosts := []*hostProcess{{t: t, dir: dir, addr: "127.0.0.1:0"}, {t: t, dir: dir, addr: "127.0.0.1:0"}}
	for _, h := range hosts {
		h.start()
		defer func() { h.kill() }()
	}
	e := open(hosts[0].addr + "," + hosts[1].addr)
	up := func(n int) {
		t.Helper()
		for range 1000 {
			s, err := e.Stats(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if h := s.Hosts; h[0].Up && h[1].Up {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Fatalf("after %d events not all hosts can be asked", n)
	}
	same := func() (slowest time.Duration) {
		t.Helper()
		got, slowest := logitsOf(t, e, text)
		for i := range want {
			if !slices.Equal(got[i], want[i]) {
				t.Fatalf("the logits of token %d are not the same", i)
			}
		}
		return slowest
	}
	up(0)
	undisturbed := same()
	before, slowest := holds(t), time.Duration(0)
	events, r := testenv.Rounds(2, 3, 200), rand.New(rand.NewPCG(7, 7))
	for n := range events {
		h, kind, pause, after := hosts[r.IntN(len(hosts))], r.IntN(2), time.Duration(r.IntN(300))*time.Millisecond, time.Duration(r.IntN(30))*time.Millisecond
		var meddler sync.WaitGroup
		meddler.Go(func() {
			time.Sleep(after)
			if kind == 0 {
				h.kill()
			} else {
				h.halt(pause)
			}
		})
		slowest = max(slowest, same())
		meddler.Wait()
		slowest = max(slowest, same())
		if kind == 0 {
			h.start()
		}
		up(n + 1)
	}
	same()
	s, err := e.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	after := holds(t)
	t.Logf("%d events, %d and %d asks, %d and %d failed; a token took %v at most, %v undisturbed; before %+v, after %+v",
		events, s.Hosts[0].Asks, s.Hosts[1].Asks, s.Hosts[0].Failed, s.Hosts[1].Failed, slowest, undisturbed, before, after)
	const more = 4 // what comes and goes by itself: a connection that is being made
	if after.goroutines > before.goroutines+more || after.files > before.files+more || after.heap > before.heap+8<<20 {
		t.Errorf("before %+v, after %d events %+v", before, events, after)
	}
}
