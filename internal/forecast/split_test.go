package forecast

import (
	"math"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/model"
)

// TestSplitByHand compares with sums made by hand: one host that owns everything has all picks of
// each layer, so nothing is left to chance.
func TestSplitByHand(t *testing.T) {
	n := SplitNeeds{Layers: 10, Picks: 4, OutBytes: 8000, RowBytes: 8000, DenseSeconds: 0.003, ReadSeconds: 0.002, Kept: 1}
	host := Owner{Share: 1, UseSeconds: 50e-6, RoundTrip: 100e-6, Out: 1e9, In: 0.5e9, Extra: 70e-6}
	// 100 µs, 8,000 bytes at 1 GB/s, 32,000 at 0.5 GB/s: 172 µs of network; 4 times 50 µs
	const network, computed = 172e-6, 200e-6
	for _, tc := range []struct {
		name      string
		kept      float64
		best, low float64 // seconds of a token
		disk      float64
		bound     string
	}{
		{"all in memory", 1, 0.003 + 10*(network+computed), 0.003/slowestShare + 10*(network+computed+70e-6), 0, BoundMemory},
		{"nothing in memory", 0, 0.003 + 10*(network+4*0.002), 0.003/slowestShare + 10*(network+computed+70e-6+4*0.002), 10 * (4*0.002 - computed), BoundDisk},
	} {
		n.Kept = tc.kept
		s := SplitOf(n, []Owner{{UseSeconds: 1e-6}, host})
		for what, c := range map[string][2]float64{
			"best": {1 / s.TokensPerSecond, tc.best}, "low": {1 / s.Low, tc.low}, "network": {s.NetworkSeconds, 10 * network}, "hosts": {s.HostsSeconds, 10 * computed}, "disk": {s.DiskSeconds, tc.disk},
			"here": {s.HereSeconds, 0.003},
		} {
			if math.Abs(c[0]-c[1]) > 1e-9 {
				t.Errorf("%s, %s: %g s, want %g", tc.name, what, c[0], c[1])
			}
		}
		sums := n
		sums.Sums = true // one output of four comes back
		if got, want := SplitOf(sums, []Owner{{UseSeconds: 1e-6}, host}).NetworkSeconds, 10*(network-3*8000/0.5e9); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: with sums the network takes %g s, want %g", tc.name, got, want)
		}
		if s.Bound != tc.bound {
			t.Errorf("%s: bound by %s, want %s", tc.name, s.Bound, tc.bound)
		}
	}
	n.OutBytes = 4000
	if got, want := BreakEven(&n, 1e9, 0.5e9), 0.002/20e-6; math.Abs(got-want) > 1e-9 {
		t.Errorf("break-even at %g rows, want %g", got, want)
	}
}

// TestSplitOfSimulated compares with what another program has simulated: tokens/s of one text, by a
// round trip of 100 µs and 40 µs of software a layer, memory of 100 GB/s, disks of 3 GB/s. In it
// the network carries nothing while the slowest computes, as at worst here, but for what this
// machine computes, which has all of the memory's bandwidth there. So it lies within the forecast,
// whose best is up to a quarter quicker. Both draw picks; 2 % is for that.
func TestSplitOfSimulated(t *testing.T) {
	type shape struct {
		layers, picks, hidden int
		expert, dense         float64
	}
	qwen, deepseek := shape{48, 8, 2048, 2.65e6, 0.7e9}, shape{58, 8, 7168, 24.8e6, 9e9}
	const memory, gpu, disk = 100e9, 900e9, 3e9
	for _, c := range []struct {
		shape
		hosts int
		gbit  float64
		kept  float64
		want  float64
	}{
		{qwen, 2, 1, 0.96, 23.6}, {qwen, 2, 10, 0.96, 37.0}, {qwen, 4, 1, 1, 25.3}, {qwen, 4, 10, 1, 68.2}, {qwen, 4, 25, 1, 76.8}, {qwen, 8, 1, 1, 21.1}, {qwen, 8, 10, 1, 69.5}, {qwen, 8, 100, 1, 90.3},
		{deepseek, 2, 10, 0.75, 1.3}, {deepseek, 4, 10, 0.90, 2.8}, {deepseek, 8, 1, 1, 4.8}, {deepseek, 8, 10, 1, 14.1}, {deepseek, 8, 25, 1, 16.4}, {deepseek, 8, 100, 1, 17.7},
	} {
		owners := make([]Owner, c.hosts)
		for i := range owners {
			owners[i] = Owner{Share: 1 / float64(c.hosts), UseSeconds: c.expert / memory, RoundTrip: 140e-6, Out: c.gbit * 1e9 / 8, In: c.gbit * 1e9 / 8}
		}
		s := SplitOf(SplitNeeds{Layers: c.layers, Picks: c.picks, OutBytes: 4 * c.hidden, RowBytes: 4 * c.hidden, DenseSeconds: c.dense / gpu, ReadSeconds: c.expert / disk, Kept: c.kept}, owners)
		if s.TokensPerSecond < 0.98*c.want || s.TokensPerSecond > 1.25*c.want || s.Low > 1.02*c.want || s.Low < 0.7*c.want {
			t.Errorf("%d hosts, hidden %d, %g Gbit/s: %.2f to %.2f tokens/s, want %g", c.hosts, c.hidden, c.gbit, s.Low, s.TokensPerSecond, c.want)
		}
	}
}

// TestHostsVerdict says of planted hosts and networks whether they pay, who would own what, and
// why.
func TestHostsVerdict(t *testing.T) {
	layers := make([]model.Layer, 10)
	for i := range layers {
		layers[i].FFN = model.MixtureOfExperts
	}
	m := &model.Config{HiddenSize: 2048, NumExperts: 64, NumExpertsPerTok: 8, Layers: layers}
	contents := &actors.Contents{Model: m, TouchedWeights: 100e6}
	info := actors.Info{ExpertIO: actors.ExpertIODirect, Slots: 160, SlotBytes: 2_500_000, ExpertBytes: 640 * 2_500_000, TopK: 8}
	host := func(trip, rate float64, slots int) Host {
		h := Host{Addr: "h:1", Slots: slots, RowBytes: 8192, AskExperts: 8, AskSeconds: 8*50e-6 + trip + 9*8192/rate, ComputeSeconds: 8 * 50e-6}
		h.RoundTrip.Median, h.Out.Median, h.In.Median = trip, rate, rate
		return h
	}
	for _, tc := range []struct {
		name  string
		all   []Host
		mmap  bool
		pays  string
		says  string
		share float64 // of the first host
	}{
		{"a quick network, all in memory", []Host{host(100e-6, 1.25e9, 240), host(100e-6, 1.25e9, 240)}, false, PaysYes, "splitting pays", 0.375},
		{"far away", []Host{host(20e-3, 1.25e9, 240), host(20e-3, 1.25e9, 240)}, false, PaysNo, "waits for the network", 0.375},
		{"a slow network", []Host{host(100e-6, 2e6, 480)}, false, PaysNo, "waits for the network", 0.75},
		{"little memory", []Host{host(100e-6, 1.25e9, 10)}, false, PaysPerhaps, "memory for 470 more experts", 10. / 170},
		{"nobody", []Host{{Addr: "h:1", Error: "refused"}}, false, "", "no host can be asked", 0},
		{"all is here", []Host{host(100e-6, 1.25e9, 480)}, true, PaysNo, "all experts are in this machine's memory", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			i := info
			if tc.mmap {
				i.ExpertIO = actors.ExpertIOMmap
			}
			h := &Hosts{All: tc.all}
			h.place(&i, m)
			text := Text{Config: actors.Config{Model: t.TempDir()}}
			kept, err := Expect(&i, text)
			if err != nil {
				t.Fatal(err)
			}
			alone := Of(Needs{Touched: 100e6 + 80*2_500_000, Experts: 80 * 2_500_000}, kept, 50e9, 1e9)
			if err := h.Expect(Base{Info: &i, Contents: contents, Text: text, Alone: alone}); err != nil {
				t.Fatal(err)
			}
			if h.Pays != tc.pays || !strings.Contains(h.Verdict, tc.says) || math.Abs(h.All[0].Share-tc.share) > 0.005 {
				t.Errorf("pays %q, share %g, %q", h.Pays, h.All[0].Share, h.Verdict)
			}
			var b strings.Builder
			h.Lines(&b)
			if !strings.Contains(b.String(), tc.says) {
				t.Errorf("the text lacks %q:\n%s", tc.says, b.String())
			}
		})
	}
}
