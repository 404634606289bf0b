package expertmem

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/sysmem"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// Host is what a Memory needs of the engine: *runtime.Runtime.
type Host interface {
	// Send sends a message to a stage, from any goroutine.
	Send(to stages.StageID, m stages.Message)
	// At returns a moment on the engine's clock.
	At(time.Time) int64
	// Break ends the engine: a part of it has found one of its invariants broken.
	Break(part string, err error)
}

// Config is what a Memory is made of.
type Config struct {
	Device gpu.Device
	File   *expertfile.File // stays the engine's, who closes it after the Memory
	Layers int              // of the model
	// Borders say which part of a gpu.Split computes, and so has the experts of, which layers.
	Borders stages.Borders
	Host    Host
	Log     *slog.Logger

	ReadTimeout time.Duration
	Verify      Verify                                // "" means VerifyAuto
	WrapReads   func(readpool.Source) readpool.Source // for tests; nil: the file as it is
}

// Memory is the memory of an engine's experts and the way of their bytes into it. It is what the
// shells call runtime.Experts. The order of its life is New, Measure, Open, Govern, and for the end
// StopGoverning, StopReading, Release; each step of the end may be called whatever came before.
type Memory struct {
	cfg  Config
	plan Plan

	slots   *slotMemory
	pool    *readpool.Pool
	checked *checkedReads // nil if reads are not compared with checksums
	reads   []*slotRead   // [slots]; nil for a slot that nothing was read into yet

	governor     governor
	faultsAtOpen int64
}

// New returns a Memory that has nothing yet. meter measures available memory; nil means the
// system's.
func New(c Config, meter Meter) (*Memory, error) {
	if meter == nil {
		m, err := sysmem.NewMonitor()
		if err != nil {
			return nil, fmt.Errorf("expertmem: %w", err)
		}
		meter = m
	}
	return &Memory{cfg: c, governor: governor{meter: meter, log: c.Log}, faultsAtOpen: majorFaults()}, nil
}

// Measure returns the memory that is available on the machine.
func (m *Memory) Measure() (sysmem.Info, error) {
	now, err := m.governor.meter.Read()
	if err != nil {
		return now, fmt.Errorf("expertmem: %w", err)
	}
	return now, nil
}

// Open makes slots and whatever reads into them. ctx ends the loading of all experts, if the plan
// has that. After an error the Memory can only be ended.
func (m *Memory) Open(ctx context.Context, p Plan) (err error) {
	m.plan = p
	dev := m.cfg.Device
	src, err := m.source()
	if err != nil {
		return err
	}
	_, own := dev.(gpu.Discrete)
	devices, each := gpu.PartsOf(dev), p.Parts
	if each == nil {
		each = []int{p.Slots}
	}
	switch {
	case p.IO == Loaded:
		m.slots, err = m.loadSlots(ctx, src)
	case p.IO == Mmap:
		m.slots, err = mapSlots(m.deviceOf, m.cfg.File, m.cfg.Layers)
	case len(devices) != len(each):
		return fmt.Errorf("expertmem: slots of %d parts, of %s with %d", len(each), dev.Name(), len(devices))
	case own:
		m.slots, err = m.newStagedSlots(devices, each)
	default:
		m.slots, err = newSlots(devices, each, p.Stride, p.SlotBytes)
	}
	if err != nil {
		return err
	}
	m.pool = readpool.New(src, readpool.Config{Workers: p.Workers, Fewer: p.Fewer, Timeout: m.cfg.ReadTimeout, Overdue: m.readOverdue})
	m.reads = make([]*slotRead, p.Slots+p.Near)
	return nil
}

// deviceOf returns the device that computes a layer: a part of a gpu.Split, or the only one.
func (m *Memory) deviceOf(layer int) gpu.Device {
	return gpu.PartsOf(m.cfg.Device)[m.cfg.Borders.Part(layer)]
}

// Place says which part of a gpu.Split computes which layers, before Open.
func (m *Memory) Place(b stages.Borders) { m.cfg.Borders = b }

// View returns where a slot begins.
func (m *Memory) View(id stages.SlotID) gpu.View { return m.slots.View(id) }

// Reserves is the memory that a governor leaves alone.
type Reserves struct {
	Weights int64 // bytes of weights that are mapped
	Machine int64 // bytes that stay free where the slots are
	Host    int64 // bytes of the host's memory that stay free, if slots are a device's own
}

// Govern keeps the memory of experts within what is available, from now on. The stages run. every
// is how often to look; 0 means once a second.
func (m *Memory) Govern(r Reserves, every time.Duration) {
	b, ok := m.bounded()
	if !ok {
		return
	}
	g := &m.governor
	g.bounded, g.reserve = b, r.Machine
	switch _, own := m.cfg.Device.(gpu.Discrete); {
	case own:
		g.reserve = r.Host
	case m.plan.IO == Mmap:
		g.need = r.Weights + m.plan.Bytes
	default:
		g.need = r.Weights
	}
	if every == 0 {
		every = governEvery
	}
	g.start(every)
}

// StopGoverning leaves memory as it is.
func (m *Memory) StopGoverning() { m.governor.close() }

// Reading returns how many reads the disk has not answered.
func (m *Memory) Reading() int { return m.pool.Stats().Running }

// StopReading waits for reads and uploads under way and their messages.
func (m *Memory) StopReading() error {
	if m.pool != nil {
		m.pool.Close()
	}
	if m.slots == nil {
		return nil
	}
	return m.slots.uploads.close()
}

// Release gives the slots' memory back. Neither device nor reads use it any more.
func (m *Memory) Release() error {
	if m.slots == nil {
		return nil
	}
	return m.slots.release()
}
