package actors_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/split"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestNear has a device with memory of its own read in the host's what does not fit there, for each
// of the fixtures.
func TestNear(t *testing.T) {
	host := device(t, 2)
	for _, name := range fixtures.All() {
		t.Run(name, func(t *testing.T) {
			dev := &discrete{Device: host, free: 1 << 30}
			testNear(t, nearTest{name, 4, host, dev, func() int64 { return dev.fetches.Swap(0) }})
		})
	}
}

// nearTest is an engine with far experts, compared with one on a device that holds all.
type nearTest struct {
	fixture  string
	texts    int
	resident gpu.Device
	dev      gpu.Discrete
	// fetches tells how often experts were copied before a layer, since it was asked before; nil:
	// nobody knows.
	fetches func() int64
}

// testNear has texts that run one after the other and beside each other get the same tokens from a
// device with few slots of its own as from one that holds all experts, while experts come near and
// leave, and each pick charged as its expert was found.
func testNear(t *testing.T, test nearTest) {
	dir := fixtures.Packed(t, test.fixture, 0)
	all := open(t, actors.Config{Model: dir, Device: test.resident})
	m := all.Model()
	experts := len(m.MoELayers()) * m.NumExperts
	record := int64(all.Info().SlotBytes+4095) / 4096 * 4096
	prompts, want := make([][]int32, test.texts), make([][]int32, test.texts)
	for i := range prompts {
		prompts[i] = prompt(uint64(i), 5+40*i, m.VocabSize)
		var err error
		if want[i], err = greedy(sequence(t, all), prompts[i], 12); err != nil {
			t.Fatal(err)
		}
	}
	cases := []struct{ slots, transit int }{
		{all.Info().TopK, 0}, {experts / 4, 0}, {experts - 1, 2 * m.NumExperts},
	}
	if test.fixture != fixtures.Qwen35MoEQ4 || test.texts < 4 {
		cases = cases[2:]
	}
	for _, c := range cases {
		if c.transit > c.slots-m.NumExpertsPerTok {
			c.transit = 0
		}
		name := fmt.Sprintf("%d slots, %d for transit", c.slots, c.transit)
		cfg := actors.Config{
			Model: dir, Device: test.dev,
			ExpertIO: actors.ExpertIOLoaded, ExpertMemory: int64(c.slots) * record,
		}
		if c.transit > 0 {
			cfg = actors.WithTransitShare(cfg, 1)
		}
		e := open(t, cfg)
		if i := e.Info(); i.ExpertIO != actors.ExpertIOLoaded || !i.Resident {
			t.Fatalf("%s: experts come by %s, resident %v; want loaded, true",
				name, i.ExpertIO, i.Resident)
		} else if i.NearSlots != c.slots-c.transit || i.HostSlots != experts {
			t.Fatalf("%s: %d near slots and %d in the host's memory, want %d and %d",
				name, i.NearSlots, i.HostSlots, c.slots-c.transit, experts)
		}
		check := func(s *actors.Sequence, text int, when string) {
			got, err := greedy(s, prompts[text], 12)
			if err != nil || !slices.Equal(got, want[text]) {
				t.Errorf("%s, text %d %s: %v, %v, want %v", name, text, when, got, err, want[text])
			}
		}
		for i := range prompts {
			check(sequence(t, e), i, "alone")
		}
		for range test.texts - 1 {
			var together sync.WaitGroup
			for i := range prompts {
				s := sequence(t, e)
				together.Go(func() { check(s, i, "beside others") })
			}
			together.Wait()
		}
		s := settledStats(t, e)
		checkNear(t, name, s, c.slots-c.transit, e.Info().SlotBytes)
		if left := evictions(s); left == 0 && c.slots <= experts/2 {
			t.Errorf("%s: no expert has left", name)
		}
		if test.fetches == nil {
			continue
		}
		if n := test.fetches(); (n > 0) != (c.transit > 0) {
			t.Errorf("%s: %d times experts were copied before a layer", name, n)
		}
	}
}

// settledStats returns an engine's figures when the copies that were begun have ended.
func settledStats(t *testing.T, e *actors.Engine) *actors.Stats {
	t.Helper()
	for began := time.Now(); ; time.Sleep(time.Millisecond) {
		s, copied := statsOf(t, e), int64(0)
		for i := range s.Layers {
			copied += s.Layers[i].BytesRead
		}
		if copied == s.Reads.Uploaded || time.Since(began) > 10*time.Second {
			return s
		}
	}
}

// checkNear compares an engine's figures of experts that moved with each other.
func checkNear(t *testing.T, name string, s *actors.Stats, slots, record int) {
	t.Helper()
	var hits, misses, copied int64
	near := 0
	for i := range s.Layers {
		l := &s.Layers[i]
		hits, misses, copied = hits+l.Hits, misses+l.Misses, copied+l.BytesRead
		for _, p := range l.Places {
			if p != stages.OnDisk {
				near++
			}
		}
	}
	if hits == 0 || misses == 0 || near > slots || s.Slots != slots {
		t.Errorf("%s: %d hits, %d misses, %d experts near, %d slots",
			name, hits, misses, near, s.Slots)
	}
	uploaded, nobody := s.Reads.Uploaded, s.Accounts.Nobody.HostBytes
	if copied == 0 || copied%int64(record) != 0 || uploaded != copied || nobody != copied {
		t.Errorf("%s: layers copied %d bytes, %d were uploaded, %d are charged to nobody",
			name, copied, uploaded, nobody)
	}
	c := &s.Accounts.Requests.Cost
	if c.Hit == 0 || c.Missed == 0 || c.Late != 0 || c.DiskBytes != 0 {
		t.Errorf("%s: requests are charged %+v", name, c)
	}
	if c.SlotBytes != hits*int64(record) || c.HostBytes != misses*int64(record) {
		t.Errorf("%s: %d and %d bytes for %d hits and %d misses",
			name, c.SlotBytes, c.HostBytes, hits, misses)
	}
}

// evictions returns how many experts have left a slot.
func evictions(s *actors.Stats) (n int64) {
	for i := range s.Layers {
		n += s.Layers[i].Evictions
	}
	return n
}

// TestNearRefused opens engines that cannot have far experts: the error says why, and what to do.
func TestNearRefused(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	host := device(t, 2)
	i := open(t, actors.Config{Model: dir, Device: host}).Info()
	record := int64(i.SlotBytes+4095) / 4096 * 4096
	host20 := func(c *actors.Config) { c.HostMemory = 20 * record }
	off := func(c *actors.Config) { c.Resident = actors.ResidentOff }
	const auto = "set Config.ExpertIO to auto"
	inHost := fmt.Sprint(20*record, " in the host's")
	for _, c := range []struct {
		name string
		set  func(*actors.Config)
		want []string
	}{
		{"a small host", host20, []string{inHost, auto}},
		{
			"a small device", func(c *actors.Config) { c.ExpertMemory = 3 * record },
			[]string{"hold 3 experts", "raise Config.ExpertMemory"},
		},
		{"the host routes", off, []string{auto}},
		{"the host looks ahead", func(c *actors.Config) { c.CountAhead = true }, []string{auto}},
		{"two devices", func(c *actors.Config) {
			two, err := split.New(c.Device, &discrete{Device: device(t, 1), free: 1 << 30})
			if err != nil {
				t.Fatal(err)
			}
			c.Device = two
		}, []string{auto}},
	} {
		cfg := actors.Config{
			Model: dir, Device: &discrete{Device: host, free: 1 << 30},
			ExpertIO: actors.ExpertIOLoaded, ExpertMemory: 12 * record,
		}
		c.set(&cfg)
		e, err := actors.Open(context.Background(), cfg)
		if err == nil {
			e.Close(context.Background())
		}
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", c.name, err, want)
			}
		}
	}
}

// TestNearLost has a copy to the device fail: its expert stays far, and no text notices.
func TestNearLost(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	host := device(t, 2)
	all := open(t, actors.Config{Model: dir, Device: host})
	record := int64(all.Info().SlotBytes+4095) / 4096 * 4096
	p := prompt(1, 9, all.Model().VocabSize)
	want, err := greedy(sequence(t, all), p, 12)
	if err != nil {
		t.Fatal(err)
	}
	dev := &discrete{Device: host, free: 1 << 30}
	dev.failAt = 3
	e := open(t, actors.Config{
		Model: dir, Device: dev, ExpertIO: actors.ExpertIOLoaded, ExpertMemory: 12 * record,
	})
	if got, err := greedy(sequence(t, e), p, 12); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
	if s := settledStats(t, e); s.ReadErrors != 1 {
		t.Errorf("%d copies have failed, want one", s.ReadErrors)
	}
}

// TestNearMovesLost has every second change of the device's tables fail: it is made again, and
// until then no slot has another expert than the tables say.
func TestNearMovesLost(t *testing.T) {
	dev := &discrete{Device: device(t, 2), free: 1 << 30, refuse: true}
	testNear(t, nearTest{fixtures.Qwen35MoEQ4, 4, device(t, 2), dev, nil})
	if n := dev.moves.Load(); n < 20 {
		t.Errorf("experts moved %d times", n)
	}
}
