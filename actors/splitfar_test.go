//go:build linux && (amd64 || arm64)

package actors_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// smallEmulator has memory of its own, of some bytes.
type smallEmulator struct {
	*farEmulator
	bytes int64
}

func (d *smallEmulator) Memory() (free, total int64, err error) { return d.bytes, d.bytes, nil }

// TestSplitFar opens a model that fits on neither of two unequal devices with memory of their own,
// but on both. Each has its own layers, by memory, and the bits are those of a device that is large
// enough.
func TestSplitFar(t *testing.T) {
	emulator(t) // the test needs a compiler
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	near, far := newFarEmulator(t), newFarEmulator(t)
	cfg := actors.Config{Model: dir, Device: near, ChunkRows: 8, Context: 64, StateMemory: 1 << 20, CheckpointMemory: 1 << 18, RecordMemory: fewRecords}
	one := open(t, cfg)
	if !one.Info().Resident {
		t.Fatal("experts are streamed to a large device")
	}
	need := one.Info().WeightBytes + one.Info().ExpertBytes
	tokens := prompt(5, 3, one.Model().VocabSize)
	want, err := transcript(sequence(t, one), tokens, 1)
	if err != nil {
		t.Fatal(err)
	}
	small := func(d *farEmulator, share float64) gpu.Device { return &smallEmulator{d, int64(share * float64(need))} }
	for _, shares := range [][2]float64{{0.8, 1.5}, {1.1, 1.1}}[:testenv.Rounds(1, 1, 2)] {
		for _, share := range shares {
			alone := cfg
			if alone.Device = small(near, share); share < 1.2 {
				if info, err := actors.Plan(alone); err == nil && info.Resident {
					t.Errorf("a device of %.1f times the model's size has all experts", share)
				}
			}
		}
		both := cfg
		both.Device = splitOf(t, small(near, shares[0]), small(far, shares[1]))
		e := open(t, both)
		got, err := transcript(sequence(t, e), tokens, 1)
		if err != nil || !slices.EqualFunc(got, want, slices.Equal[[]float32]) {
			t.Errorf("devices of %v times the model's size: error %v, or other logits than on one", shares, err)
		}
	}
	streamed := cfg
	streamed.Device, streamed.HostMemory = splitOf(t, small(near, 0.6), small(far, 0.7)), one.Info().ExpertBytes/2
	e := open(t, streamed)
	if info := e.Info(); info.ExpertIO == actors.ExpertIOMmap || info.Slots >= int(info.ExpertBytes)/info.SlotBytes {
		t.Errorf("devices that are too small together have %d slots, experts come by %s", info.Slots, info.ExpertIO)
	}
	got, err := transcript(sequence(t, e), tokens, 1)
	if err != nil || !slices.EqualFunc(got, want, slices.Equal[[]float32]) {
		t.Errorf("experts streamed to two devices: error %v, or other logits than on one", err)
	}
	cfg.Device = splitOf(t, small(near, 0.1), small(far, 3))
	var part *actors.PartError
	if _, err := actors.Open(context.Background(), cfg); !errors.As(err, &part) || part.First != 0 {
		t.Errorf("a device that is too small for its layers: %v", err)
	}
}
