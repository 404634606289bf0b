package main

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/internal/forecast"
	"github.com/moeflux/moeflux-actor/internal/netdelay"
)

// TestDoctorHosts plants a network before a host: doctor and inspect print its delay, at most a
// quarter more, and its rate to 15 %, and doctor's forecast has the time that these take. It says
// that a network this slow does not pay.
func TestDoctorHosts(t *testing.T) {
	link := netdelay.Link{Delay: 4 * time.Millisecond, Rate: 100e6}
	dir := mustInspect(t).Dir
	p, err := netdelay.New(startHost(t, dir), link)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	flags := []string{"--expert-io", "buffered", "--expert-memory", "3MiB", "--profile", "off", "--hosts", p.Addr() + ",127.0.0.1:1"}
	check := func(h *forecast.Hosts) (bad []string) {
		t.Helper()
		if h == nil || len(h.All) != 2 {
			t.Fatalf("hosts %+v", h)
		}
		x, trip, rate := &h.All[0], 2*link.Delay.Seconds(), float64(link.Rate)/8
		within := func(what string, got, want, less, more float64) {
			if got < want*(1-less) || got > want*(1+more) {
				bad = append(bad, fmt.Sprintf("%s: %g, want %g", what, got, want))
			}
		}
		within("round trip", x.RoundTrip.Median, trip, 0, 0.25)
		within("bandwidth there", x.Out.Median, rate, 0.15, 0.05)
		within("bandwidth back", x.In.Median, rate, 0.15, 0.05)
		within("an ask's network", x.AskSeconds-x.ReadSeconds-x.ComputeSeconds, trip+float64(1+x.AskExperts)*4*float64(mustInspect(t).Shape.Hidden)/rate, 0, 0.35)
		within("shares", h.Here.Share+x.Share, 1, 1e-9, 1e-9)
		if x.Owned+h.Here.Owned != h.Experts || h.Here.Owned > h.HereSlots || x.Owned+x.Copies > x.Slots || x.Owned < h.Experts/3 || x.Slots != h.Experts || !strings.Contains(x.Device, "host (") || x.Bytes <= 0 {
			t.Errorf("host %+v, here %+v in %d slots", x, h.Here, h.HereSlots)
		}
		if !strings.Contains(h.All[1].Error, "refused") {
			t.Errorf("nobody's host: %+v", h.All[1])
		}
		if s := h.Split; s != nil {
			// A layer of which no pick is the host's takes no round trip.
			row := 4 * float64(mustInspect(t).Shape.Hidden)
			layers := float64(mustInspect(t).Shape.Layers)
			some := 1 - math.Pow(1-x.Share, float64(x.AskExperts))
			within("the network of a token", s.NetworkSeconds, layers*(some*(trip+row/rate)+row*float64(x.AskExperts)*x.Share/rate), 0.02, 0.25)
			if h.Pays != forecast.PaysNo || s.Bound != forecast.BoundNetwork || !strings.Contains(h.Verdict, "splitting does not pay") || s.KeptRate != 1 {
				t.Errorf("pays %q, %q, %+v", h.Pays, h.Verdict, s)
			}
		}
		return bad
	}
	// What else runs on the machine spoils a measurement now and then.
	trying := func(what string, hosts func() *forecast.Hosts) {
		t.Helper()
		var bad []string
		for range 3 {
			if bad = check(hosts()); len(bad) == 0 {
				return
			}
		}
		t.Errorf("%s: %s", what, strings.Join(bad, "; "))
	}
	var r *forecast.Report
	trying("doctor", func() *forecast.Hosts {
		r = mustDoctor(t, testEnv(), flags...)
		return r.Hosts
	})
	if r.Hosts.Split == nil || r.Hosts.PromptRows <= 0 {
		t.Errorf("no forecast: %+v", r.Hosts)
	}
	trying("inspect", func() *forecast.Hosts {
		var i inspectResult
		if err := json.Unmarshal([]byte(mustCall(t, "", append([]string{"inspect", "--json"}, flags...)...).stdout), &i); err != nil {
			t.Fatal(err)
		}
		return i.Hosts
	})
	var b strings.Builder
	r.Hosts.Lines(&b)
	for _, says := range []string{"\nplacement ", "\nwith hosts ", "round trip 8.", " there and ", "127.0.0.1:1 would not be asked: ", "\nhosts         splitting does not pay: ", "sooner read here than sent away"} {
		if !strings.Contains("\n"+b.String(), says) {
			t.Errorf("the text lacks %q:\n%s", says, b.String())
		}
	}
}
