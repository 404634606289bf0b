package actors_test

import (
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	expert "github.com/moeflux/moeflux-actor/actors/remote/host"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/split"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// testHostsFar has an engine and hosts compute on devices with memory of their own: hosts whose
// device has all experts, or a few, with hardly more in the machine's memory. The bits are those of
// the engine alone.
func testHostsFar(t *testing.T, name string, far func() gpu.Device) {
	dir := fixtures.Packed(t, name, 0)
	base := open(t, actors.Config{Model: dir, Device: far()})
	text := prompt(1, 20, base.Model().VocabSize)
	want, err := transcript(sequence(t, base), text, 6)
	if err != nil {
		t.Fatal(err)
	}
	record := int64(base.Info().SlotBytes+4095) / 4096 * 4096
	all := []string{
		expertHost(t, expert.Config{Model: dir, Device: far()}),
		expertHost(t, expert.Config{Model: dir, Device: far(), ExpertIO: "buffered", ExpertMemory: 12 * record, HostMemory: 8 * record}),
	}
	for _, hosts := range [][]string{all[:1], all[1:], all} {
		e := open(t, actors.Config{Model: dir, Device: far(), ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 5 * record, Hosts: strings.Join(hosts, ",")})
		connected(t, e, len(hosts))
		got, err := transcript(sequence(t, e), text, 6)
		if err != nil {
			t.Fatal(err)
		}
		sameLogits(t, got, want)
		for i, h := range statsOf(t, e).Hosts {
			if h.Failed != 0 || h.Uses == 0 {
				t.Errorf("host %d of %d: %+v", i, len(hosts), h)
			}
		}
	}
}

func TestHostsFar(t *testing.T) {
	for _, name := range []string{fixtures.Qwen35MoEQ4, fixtures.GptOssMXFP4} {
		t.Run(name, func(t *testing.T) {
			testHostsFar(t, name, func() gpu.Device { return &discrete{Device: device(t, 1), free: 1 << 30} })
		})
	}
}

// A host that cannot have what it needs of its device says so.
func TestHostsFarRefused(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	far := func(free int64) *discrete { return &discrete{Device: device(t, 1), free: free} }
	two, err := split.New(far(1<<30), far(1<<30))
	if err != nil {
		t.Fatal(err)
	}
	for says, cfg := range map[string]expert.Config{
		"a host for each":                    {Model: dir, Device: two},
		"the experts of two tokens take":     {Model: dir, Device: far(1000)},
		"bytes of the host's memory hold 0 ": {Model: dir, Device: far(1 << 30), ExpertIO: "buffered", ExpertMemory: 1 << 20, HostMemory: 1},
	} {
		if h, err := expert.Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
			if err == nil {
				_ = h.Close(t.Context())
			}
		}
	}
}
