package actors_test

import (
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// TestPlan holds that a plan is what an engine then uses, and that it fails where the engine would.
func TestPlan(t *testing.T) {
	cfg := actors.Config{
		Model: fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0), Device: device(t, 2), ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 1 << 20, Context: 128,
		ReadWorkers: 3,
	}
	got, err := actors.Plan(cfg)
	if err != nil {
		t.Fatal(err)
	}
	want := open(t, cfg).Info()
	if got.ExpertIO != want.ExpertIO || got.Slots != want.Slots || got.SlotBytes != want.SlotBytes || got.WaveSlots != want.WaveSlots ||
		got.ReadWorkers != 3 || got.Context != 128 || got.WeightBytes != want.WeightBytes || got.Device != want.Device {
		t.Errorf("plan %+v, engine %+v", got, want)
	}
	cfg.ExpertMemory = 1
	if _, err := actors.Plan(cfg); err == nil {
		t.Error("a byte for experts: no error")
	}
	cfg.Model = t.TempDir()
	if _, err := actors.Plan(cfg); err == nil {
		t.Error("an empty directory: no error")
	}
}
