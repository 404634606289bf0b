//go:build linux && (amd64 || arm64)

package actors_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/emu"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// emulator makes a device that runs the kernels of GPUs on the processor, as long as the test
// lives.
func emulator(tb testing.TB) gpu.Device {
	tb.Helper()
	d, err := emu.New(emulatorConfig(tb))
	if errors.Is(err, emu.ErrNoCompiler) {
		testenv.Missing(tb, err.Error(), testenv.CXXCompilers...)
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Errorf("closing the device: %v", err)
		}
	})
	return d
}

// emulatorConfig has what is compiled kept in the user's cache folder.
func emulatorConfig(tb testing.TB) emu.Config {
	cache := tb.TempDir()
	if dir, err := os.UserCacheDir(); err == nil {
		cache = filepath.Join(dir, "moeflux-actor", "emulator")
	}
	return emu.Config{Cache: cache}
}

// TestEmulatorFixtures compares all fixture models' numbers with those of the kernels of GPUs.
func TestEmulatorFixtures(t *testing.T) {
	dev := emulator(t)
	for _, name := range fixtures.All() {
		t.Run(name, func(t *testing.T) {
			e := open(t, actors.Config{Model: fixtures.Packed(t, name, 0), Device: dev, ChunkRows: 7})
			c := &comparer{t: t, limit: fixtures.Tolerance(name), decode: 3}
			prompt := "p9"
			if e.Model().QueryGrowth != nil || e.Model().IndexTopK > 0 {
				prompt = fixtures.Longest(name) // they do not grow earlier, and choose nothing
			}
			c.checkPrompt(e, fixtures.Reference(t, name), prompt)
			t.Logf("largest difference %.1e", c.worst)
		})
	}
}

// TestEmulatorEqualBits holds a conversation under settings that change speed only, alone and
// beside another sequence, and wants the same bits.
func TestEmulatorEqualBits(t *testing.T) {
	dev := emulator(t)
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	base := open(t, actors.Config{Model: dir, Device: dev, RingDepth: 1, ExpertIO: actors.ExpertIOMmap, Resident: actors.ResidentOff, ChunkRows: 64})
	first, second := prompt(1, 21, base.Model().VocabSize), prompt(2, 11, base.Model().VocabSize)
	want, err := transcript(sequence(t, base), first, 2)
	if err != nil {
		t.Fatal(err)
	}
	slot := int64(base.Info().SlotBytes+4095) / 4096 * 4096
	for _, c := range []struct {
		cfg actors.Config
		way string
	}{
		{actors.Config{RingDepth: 2, ExpertIO: actors.ExpertIOMmap, Resident: actors.ResidentOff, WaveSlots: 3, ChunkRows: 5}, "alone"},
		{actors.Config{RingDepth: 2, ExpertIO: actors.ExpertIOMmap, Resident: actors.ResidentOn, ChunkRows: 5}, "alone"},
		{actors.Config{RingDepth: 3, ExpertIO: actors.ExpertIOMmap, Resident: actors.ResidentOn, ChunkRows: 16}, "beside another"},
		{actors.Config{RingDepth: 3, Prefetch: actors.PrefetchOff, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 4 * slot, WaveSlots: 4, ChunkRows: 10}, "beside another"},
		{actors.Config{RingDepth: 1, Prefetch: actors.PrefetchBoth, ExpertIO: actors.ExpertIOBuffered, ExpertMemory: 24 * slot, WaveSlots: 3, ChunkRows: 21}, "while slots come and go"},
	} {
		c.cfg.Model, c.cfg.Device = dir, dev
		if err := sameConversation(c.cfg, first, second, want, c.way); err != nil {
			t.Errorf("%+v, %s: %v", c.cfg, c.way, err)
		}
	}
}

// farHang is a hung device whose memory the host cannot address: rows of states go through it.
func farHang(occupy func(*hungEngine) error) *hang {
	return &hang{"emulated device", func(t *testing.T, h *hungEngine, cfg *actors.Config) {
		cfg.ExpertIO, cfg.ExpertMemory = actors.ExpertIOBuffered, 1<<18
		cfg.Device = stuckDiscrete{newFarEmulator(t), h.g}
	}, occupy, func(l *actors.LeftBehindError) bool { return l.Device && l.Reads == 0 && !l.Spans }, false}
}

func saveBusy(h *hungEngine) error {
	_, err := h.busy.Save(h.ctx, h.writer(), actors.SaveOptions{})
	return err
}

// TestEveryCallEmulated is TestEveryCall of what reads and fills states, and of Close, while such a
// device hangs in an evaluation or in a save.
func TestEveryCallEmulated(t *testing.T) {
	emulator(t) // the test needs a compiler
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	n := 0
	for _, occupied := range []struct {
		name string
		hung *hang
	}{{"evaluation", farHang(evalBusy)}, {"save", farHang(saveBusy)}} {
		for _, name := range []string{"Sequence.Save", "Sequence.SaveTo", "Sequence.Load", "Sequence.Park"} {
			for _, busy := range []bool{false, true} {
				if n++; n%testenv.Rounds(4, 1, 1) != 0 {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/busy=%v", occupied.name, name, busy), func(t *testing.T) { everyCall(t, dir, occupied.hung, name, busy) })
			}
		}
	}
	t.Run("evaluation/Engine.Close", func(t *testing.T) { everyCall(t, dir, farHang(evalBusy), "Engine.Close", false) })
	t.Run("save/Engine.Close", func(t *testing.T) { closeWhileSaving(t, dir) })
}

// closeWhileSaving closes an engine whose device hangs in a save. The clock is the world's, and the
// limit is that of a busy machine: who frees the engine waits for a lock, and synctest's clock
// stands still then.
func closeWhileSaving(t *testing.T, dir string) {
	hung := farHang(saveBusy)
	h := newHungEngine(t, dir, hung)
	occupied := h.occupy(t, hung)
	ctx, cancel := context.WithTimeout(h.ctx, callPatience)
	defer cancel()
	began := time.Now()
	err := h.e.Close(ctx)
	if left, ok := errors.AsType[*actors.LeftBehindError](err); !ok || !left.Device || time.Since(began) > callPatience+5*time.Second {
		t.Errorf("Close: %v after %v", err, time.Since(began))
	}
	if err := <-occupied; !errors.Is(err, stages.ErrClosed) {
		t.Errorf("Save: %v", err)
	}
	h.g.open()
	if err := h.e.Close(context.Background()); err != nil {
		t.Errorf("in the end: %v", err)
	}
}

// TestEmulatorDemo wants the loss of the demo model over the beginning of a held-out text to be the
// host device's.
func TestEmulatorDemo(t *testing.T) {
	losses := func(dev gpu.Device, kv actors.KVFormat) float64 {
		e, ref := openDemo(t, dev, actors.Config{ChunkRows: 16, KV: kv})
		ids := ref.EvalIDs[:17]
		r, err := sequence(t, e).EvalChunk(context.Background(), actors.Chunk{Tokens: ids[:16], Logits: actors.AllLogits})
		if err != nil {
			t.Fatal(err)
		}
		return meanLoss(r.Logits, ids[1:])
	}
	emulated := emulator(t)
	for _, kv := range []actors.KVFormat{actors.KVF32, actors.KVInt8} {
		got, want := losses(emulated, kv), losses(device(t, 2), kv)
		if d := math.Abs(got - want); !(d <= 1e-4) {
			t.Errorf("keys and values in %s: loss %.6f, the host's %.6f", kv, got, want)
		}
	}
}

// TestEmulatorDump wants the insides of layers from the kernels of GPUs.
func TestEmulatorDump(t *testing.T) {
	testDump(t, emulator(t), fixtures.All(), []int{64, 1})
}

// TestEmulatorProbe computes parts of models with the kernels of GPUs.
func TestEmulatorProbe(t *testing.T) {
	testProbe(t, emulator(t), []string{fixtures.Qwen35MoEQ4, fixtures.DeepseekV3Q4, fixtures.Glm4MoEBF16})
}

// TestEmulatorPlain compares joined launches with their parts.
func TestEmulatorPlain(t *testing.T) { testPlain(t, emulator(t), fixtures.All()) }

func TestLayerTimesEmulated(t *testing.T) { checkLayerTimes(t, emulator(t)) }

// TestEmulatorRandomModels compares families with windows, sinks, gates for each head and chosen
// blocks with their formulas, in configurations that no fixture has.
func TestEmulatorRandomModels(t *testing.T) {
	dev := emulator(t)
	for _, arch := range []model.Arch{model.GptOss, model.MiniMaxM3, model.Step35} {
		for seed := range uint64(testenv.Rounds(1, 3, 12)) {
			if _, err := checkRandomModel(t, dev, arch, seed); err != nil {
				t.Errorf("%s, seed %d: %v", arch, seed, err)
			}
		}
	}
}
