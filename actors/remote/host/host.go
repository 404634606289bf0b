package host

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/actors/expertmem"
	"github.com/moeflux/moeflux-actor/actors/remote/frame"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/fingerprint"
	"github.com/moeflux/moeflux-actor/io/modelfiles"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
	"github.com/moeflux/moeflux-actor/stages/expertio"
)

// Host is an open expert host.
type Host struct {
	cfg    Config
	files  *modelfiles.Files
	shape  frame.Shape
	print  fingerprint.Fingerprint
	token  [32]byte
	memory *expertmem.Memory
	plan   expertmem.Plan
	queue  gpu.Queue
	lender *dispatch.Lender
	epoch  time.Time

	reserve int64 // bytes of memory that stay free

	// Only who handles the inbox has these.
	core    *expertio.Core
	out     stages.Outbox
	todo    []stages.Send // what the core has sent and nobody has handled yet
	jobs    map[stages.StepID]*job
	last    stages.StepID
	spare   []*dispatch.Bench // that are not in use
	benches []*dispatch.Bench // all
	answers [][]byte          // memory for answers

	inbox inbox

	conns   conns
	members members
}

func newHost(cfg Config) *Host {
	h := &Host{cfg: cfg, epoch: time.Now(), jobs: make(map[stages.StepID]*job)}
	h.inbox.stopped = make(chan struct{})
	h.conns.open, h.conns.said = make(map[*conn]bool), make(map[string]bool)
	return h
}

// start keeps memory within what is available.
func (h *Host) start() {
	h.memory.Govern(expertmem.Reserves{Machine: h.reserve, Host: h.plan.HostReserve}, 0)
}

// Room returns what engines are told.
func (h *Host) Room() frame.Room {
	p := &h.plan
	n := min(p.Slots, int(p.Bytes)/p.SlotBytes)
	return frame.Room{Experts: n, Asks: asks, Bytes: int64(n) * int64(p.Stride), Device: h.cfg.Device.Name()}
}

// Describe says in a line what the host serves.
func (h *Host) Describe() string {
	r := h.Room()
	return fmt.Sprintf("%d of %d experts in %d MiB (%s), on %s", r.Experts, int(h.plan.Bytes)/h.plan.SlotBytes, r.Bytes>>20, h.plan.IO, r.Device)
}

// inbox is what the host has to handle, one item after the other, without a bound of its own:
// reads, the device and credits bound it. Whoever puts something in handles it, and what comes
// meanwhile, unless another goroutine does so already: no goroutine sleeps or wakes between an ask,
// what expert-IO makes of it, and the device. Handling does not wait.
type inbox struct {
	mu      sync.Mutex
	items   []any // a stages.Message for expert-IO, a *job, or a *wave that is done
	spare   []any // memory for items
	running bool  // a goroutine handles items
	ended   bool
	err     error         // what broke the host
	stopped chan struct{} // closed when it has ended and nobody handles anything any more
}

// put adds an item, and handles all there are.
func (h *Host) put(item any) {
	b := &h.inbox
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	b.items = append(b.items, item)
	if b.running {
		return
	}
	b.running = true
	for len(b.items) > 0 && !b.ended {
		items := b.items
		b.items = b.spare[:0]
		b.mu.Unlock()
		err := h.handleAll(items)
		b.mu.Lock()
		clear(items)
		b.spare = items
		if err != nil {
			b.over(err)
		}
	}
	b.running = false
	if b.ended {
		close(b.stopped)
	}
}

// end ends the handling, because of an error or nil.
func (b *inbox) end(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over(err)
}

// over is end, for who holds b.mu.
func (b *inbox) over(err error) {
	if b.ended {
		return
	}
	b.ended, b.err = true, err
	if !b.running {
		close(b.stopped)
	}
}

// handleAll handles items, up to an error.
func (h *Host) handleAll(items []any) error {
	for _, item := range items {
		if err := h.handle(item); err != nil {
			h.cfg.Logger.Error("the expert host is broken", "error", err)
			h.conns.closeAll()
			return err
		}
	}
	return nil
}

func (h *Host) handle(item any) error {
	switch x := item.(type) {
	case stages.Message:
		return h.step(x)
	case *job:
		return h.begin(x)
	case *wave:
		return h.waveDone(x)
	}
	return fmt.Errorf("host: an item of type %T", item)
}

// step has expert-IO handle a message, and does what it asks for.
func (h *Host) step(m stages.Message) error {
	h.todo = append(h.todo, stages.Send{To: stages.ExpertIO, Msg: m})
	return h.run()
}

// run does what is to do until nothing is.
func (h *Host) run() error {
	for len(h.todo) > 0 {
		next := h.todo[0]
		h.todo = append(h.todo[:0], h.todo[1:]...)
		if next.To != stages.ExpertIO {
			h.sent(next)
			continue
		}
		h.out.NowNS = h.now()
		next.Msg.Stamp(h.out.NowNS)
		if err := h.core.Step(next.Msg, &h.out); err != nil {
			return err
		}
		h.perform()
	}
	return nil
}

// perform does what the core has written into the outbox, as an engine's shell does.
func (h *Host) perform() {
	for _, id := range h.out.Frees {
		h.memory.Free(id)
	}
	for i := range h.out.Reads {
		h.memory.Read(&h.out.Reads[i])
	}
	for _, x := range h.out.Hurries {
		h.memory.Hurry(x)
	}
	for _, x := range h.out.Recalls {
		h.memory.Recall(x)
	}
	for _, a := range h.out.Answers {
		if m, ok := a.Msg.(*stages.SlotsResized); ok {
			h.memory.Resized(m.Slots)
		}
	}
	h.todo = append(h.todo, h.out.Sends...)
	h.out.Reset()
}

// sent handles what expert-IO tells stages that a host does not have.
func (h *Host) sent(s stages.Send) {
	switch m := s.Msg.(type) {
	case *stages.WaveResident:
		h.waveResident(m)
	case *stages.StepFailed:
		if j := h.jobs[m.ID]; j != nil {
			h.fail(j, m.Err)
		}
	}
}

// now returns the time on the host's clock, in nanoseconds.
func (h *Host) now() int64 { return int64(time.Since(h.epoch)) }

// memoryHost is what the memory of experts needs of the host.
type memoryHost struct{ h *Host }

func (m memoryHost) Send(_ stages.StageID, msg stages.Message) { m.h.put(msg) }
func (m memoryHost) At(t time.Time) int64                      { return int64(t.Sub(m.h.epoch)) }
func (m memoryHost) Break(part string, err error)              { m.h.inbox.end(fmt.Errorf("%s: %w", part, err)) }

// release frees everything, each thing after its users.
func (h *Host) release() error {
	var errs []error
	if h.memory != nil {
		h.memory.StopGoverning()
		errs = append(errs, h.memory.StopReading())
	}
	if h.queue != nil {
		errs = append(errs, h.queue.Close())
	}
	h.inbox.end(nil)
	<-h.inbox.stopped
	for _, b := range h.benches {
		b.Release()
	}
	if h.lender != nil {
		h.lender.Close()
	}
	if h.memory != nil {
		errs = append(errs, h.memory.Release())
	}
	if h.files != nil {
		errs = append(errs, h.files.Close())
	}
	return errors.Join(errs...)
}
