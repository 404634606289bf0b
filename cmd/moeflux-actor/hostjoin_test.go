package main

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// TestHostsJoinKilled has an engine find three hosts, processes of their own, by one of them. One
// that is killed is no longer dialled once the others have taken it out of the group, and is asked
// again when it has come back at its address. The bits are those of an engine alone.
func TestHostsJoinKilled(t *testing.T) {
	dir := mustInspect(t).Dir
	device, err := host.New(host.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { device.Close() }) // after the engines
	var log testenv.Log
	open := func(join string) *actors.Engine {
		e, err := actors.Open(t.Context(), actors.Config{
			Model: dir, Device: device, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 200 << 10, HostsJoin: join, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close(context.Background()) })
		return e
	}
	text := []int32{1, 38, 75, 112, 149, 186, 23, 60}
	want, _ := logitsOf(t, open(""), text)
	hosts := []*hostProcess{{t: t, dir: dir, addr: "127.0.0.1:0"}, {t: t, dir: dir, addr: "127.0.0.1:0"}, {t: t, dir: dir, addr: "127.0.0.1:0"}}
	for i, h := range hosts {
		if i > 0 {
			h.args = []string{"--join", hosts[0].addr}
		}
		h.start()
		defer func() { h.kill() }()
	}
	e := open(hosts[1].addr)
	until := func(what string, is func(all []actors.HostStats) bool) {
		t.Helper()
		for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
			s, err := e.Stats(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if is(s.Hosts) {
				t.Logf("%s: after %v", what, time.Since(began).Round(time.Millisecond))
				return
			}
			if time.Since(began) > 20*time.Second {
				t.Fatalf("%s: not after %v: %+v", what, time.Since(began), s.Hosts)
			}
		}
	}
	up := func(n int) func([]actors.HostStats) bool {
		return func(all []actors.HostStats) bool {
			now := 0
			for _, h := range all {
				if h.Up {
					now++
				}
			}
			return now == n
		}
	}
	same := func() {
		t.Helper()
		if got, _ := logitsOf(t, e, text); !slices.EqualFunc(got, want, slices.Equal[[]float32]) {
			t.Fatal("the logits are not the same")
		}
	}
	until("all three are asked", up(3))
	same()
	hosts[2].kill()
	until("the third is not asked", up(2))
	same()
	until("the third is no longer dialled", func([]actors.HostStats) bool { return log.Has("no longer dialled", hosts[2].addr) })
	hosts[2].start()
	until("the third is asked again", func(all []actors.HostStats) bool { same(); return up(3)(all) })
}
