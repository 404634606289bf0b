package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/moeflux/moeflux-actor/actors/expertmem"
	"github.com/moeflux/moeflux-actor/actors/remote/frame"
	"github.com/moeflux/moeflux-actor/actors/remote/secrets"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/fingerprint"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
	"github.com/moeflux/moeflux-actor/stages/expertio"
)

// Config is what a host is made of. Model and Device must be set.
type Config struct {
	Model      string     // as that of actors.Config
	ExpertsDir string     // likewise
	Device     gpu.Device // stays the caller's, who closes it after the host
	// ExpertMemory is the most bytes for experts, of the device's memory if it has its own. 0 means
	// what is free when the host opens, less a reserve of a sixteenth.
	ExpertMemory int64
	// HostMemory is the most bytes of this machine's memory for experts that are on their way to a
	// device with memory of its own, or may be wanted there again. 0 means what is free, likewise.
	HostMemory  int64
	ExpertIO    string // how experts are read: auto, mmap, loaded, direct or buffered; "" means auto
	ReadWorkers int    // parallel reads; 0: as many as suit
	// Secrets say which engines are served. Without any it is those of this machine.
	Secrets secrets.Files
	// Join are hosts, host:port, whose group this one joins. Without any it is in a group once
	// another host joins it.
	Join []string
	// Advertise is the address, host:port, at which engines and other hosts dial this one. "" means
	// the one that it listens at.
	Advertise string
	// Logger gets what an operator should know; nil means silence.
	Logger *slog.Logger

	wrapReads func(readpool.Source) readpool.Source // for tests
}

const (
	// waveSlots is the most experts of one submission, and ringDepth the submissions under way.
	waveSlots, ringDepth = 64, 2
	// asks is how many an engine may have under way.
	asks = 16
	// keepBytes is the largest answer whose memory is used again: one of some tokens, not of a
	// prompt.
	keepBytes = 1 << 20
)

// Open opens the experts of a model. The host takes no connections before Serve.
func Open(ctx context.Context, cfg Config) (h *Host, err error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if parts := gpu.PartsOf(cfg.Device); len(parts) > 1 {
		return nil, fmt.Errorf("an expert host computes on one device, and not on %s; start a host for each", cfg.Device.Name())
	}
	h = newHost(cfg)
	defer func() {
		if err != nil {
			err = errors.Join(err, h.release())
			h = nil
		}
	}()
	if h.files, err = modelfiles.Open(modelfiles.Where{Path: cfg.Model, ExpertsDir: cfg.ExpertsDir}); err != nil {
		return h, err
	}
	if h.token, err = cfg.Secrets.Token(); err != nil {
		return h, err
	}
	m := h.files.Config
	h.shape = frame.Shape{Layers: len(m.Layers), Experts: m.NumExperts, Hidden: m.HiddenSize}
	if h.print, err = fingerprint.Of(cfg.Model, cfg.ExpertsDir); err != nil {
		return h, err
	}
	if err := h.openMemory(ctx); err != nil {
		return h, err
	}
	if h.queue, err = cfg.Device.NewQueue(); err != nil {
		return h, err
	}
	if h.lender, err = dispatch.NewLender(m, h.files.Experts.LayoutOf, cfg.Device, h.queue, h.files.Weights); err != nil {
		return h, err
	}
	if err := ctx.Err(); err != nil {
		return h, err
	}
	p := &h.plan
	if h.core, err = expertio.New(expertio.Config{
		Layers: len(m.Layers), Experts: m.NumExperts, First: m.MoELayers()[0], ExpertBytes: p.SlotBytes, Slots: p.Slots, WaveSlots: p.WaveSlots,
		RingDepth: ringDepth, Reads: 2 * p.Workers, Mapped: !p.IO.Streams(), Single: true,
	}); err != nil {
		return h, err
	}
	h.start()
	return h, nil
}

// openMemory plans and opens the memory of experts.
func (h *Host) openMemory(ctx context.Context) (err error) {
	f, m := h.files.Experts, h.files.Config
	if h.memory, err = expertmem.New(expertmem.Config{Device: h.cfg.Device, File: f, Layers: len(m.Layers), Host: memoryHost{h}, Log: h.cfg.Logger, WrapReads: h.cfg.wrapReads}, nil); err != nil {
		return err
	}
	available, machine, err := h.available()
	if err != nil {
		return err
	}
	h.reserve = expertmem.ReserveOf(available)
	h.plan, err = expertmem.MakePlan(
		expertmem.Shape{RecordBytes: f.Layout().Bytes, Experts: m.NumExperts, Layers: len(m.Layers), MoELayers: len(f.Layers()), TopK: m.NumExpertsPerTok},
		expertmem.Wishes{IO: expertmem.IO(h.cfg.ExpertIO), Bytes: h.cfg.ExpertMemory, HostBytes: h.cfg.HostMemory, Workers: h.cfg.ReadWorkers},
		expertmem.Room{
			Left: available - h.reserve, Host: machine, Direct: f.UseDirect,
			Least: func(bytes int64) error {
				return fmt.Errorf("the experts of two tokens take %d MiB of memory, and %d MiB are available", bytes>>20, available>>20)
			},
		}, h.cfg.Logger)
	if err != nil {
		return err
	}
	return h.memory.Open(ctx, h.plan)
}

// available returns the bytes of memory that experts may have: the machine's, or those of a device
// with memory of its own. Then machine has those of the machine, else 0.
func (h *Host) available() (bytes, machine int64, err error) {
	now, err := h.memory.Measure()
	if err != nil {
		return 0, 0, err
	}
	d, own := h.cfg.Device.(gpu.Discrete)
	if !own {
		return now.Available, 0, nil
	}
	if bytes, _, err = d.Memory(); err != nil {
		return 0, 0, fmt.Errorf("the memory of %s: %w", d.Name(), err)
	}
	return bytes, max(1, now.Available), nil
}
