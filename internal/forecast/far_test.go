package forecast

import (
	"math"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// discrete makes as if it had memory of its own.
type discrete struct{ *host.Device }

var _ gpu.Discrete = discrete{}

func (discrete) Memory() (free, total int64, err error) { return 1 << 30, 1 << 30, nil }
func (d discrete) NewPinned(n int) (gpu.Buffer, error)  { return d.NewBuffer(n) }

// reasons plans for a Config, and returns what doctor says of it.
func reasons(t *testing.T, cfg actors.Config) (Plan, string) {
	t.Helper()
	var r Report
	i := r.plan(cfg)
	if r.Plan.Error != "" {
		t.Fatal(r.Plan.Error)
	}
	r.explainExperts(&cfg, i)
	return r.Plan, strings.Join(r.Why, "\n")
}

// TestFarExperts plans for a device that holds twelve experts: doctor points to the host's memory,
// or says what is there.
func TestFarExperts(t *testing.T) {
	dev, err := host.New(host.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	cfg := actors.Config{Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: discrete{dev}}
	all, _ := reasons(t, cfg)
	record := int64(all.SlotBytes)
	cfg.ExpertMemory = 12 * (record + 4095) / 4096 * 4096
	const advice = "Config.ExpertIO loaded reads all into the host's memory"
	if p, why := reasons(t, cfg); p.ExpertIO == "loaded" || !strings.Contains(why, advice) {
		t.Errorf("auto: expert I/O %s, why\n%s", p.ExpertIO, why)
	}
	cfg.ExpertIO = actors.ExpertIOLoaded
	p, why := reasons(t, cfg)
	share := float64(int64(p.Slots)*record) / float64(all.Streamed)
	held := p.ExpertMemory == int64(p.Slots)*record && math.Abs(p.SlotShare-share) < 1e-9
	if p.ExpertIO != "loaded" || p.Slots == 0 || !held {
		t.Errorf("loaded: expert I/O %s, %d slots of %d bytes, %d bytes, a share of %v, want %v",
			p.ExpertIO, p.Slots, record, p.ExpertMemory, p.SlotShare, share)
	}
	if !strings.Contains(why, "the device has copies of those that are used most") {
		t.Errorf("loaded: why\n%s", why)
	}
	cfg.HostMemory = 20 * record
	cfg.ExpertIO = actors.ExpertIOAuto
	if _, why := reasons(t, cfg); strings.Contains(why, advice) {
		t.Errorf("a small host: why\n%s", why)
	}
}
