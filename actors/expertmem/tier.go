package expertmem

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/tier"
)

// recordBlockBytes is roughly the memory that a tier pins or frees at once. Pinning it takes some
// ten milliseconds, so a goroutine does that ahead of the reads.
const recordBlockBytes = 64 << 20

// hostTier runs a tier.Core, which decides what a record holds and who waits for it. It owns the
// pinned memory and the goroutine that makes and frees it. Events come from any goroutine, the core
// takes one at a time, and the goroutine that brought an event performs what follows from it: the
// worker that has read a record starts its upload.
type hostTier struct {
	dev      gpu.Discrete
	stride   int // bytes from record to record
	bytes    int // of a record
	perBlock int // records
	log      *slog.Logger
	user     tierUser
	orders   chan tier.Order // room for one: the core gives no second one before it has the answer
	kept     sync.WaitGroup

	mu     sync.Mutex // guards the rest
	core   *tier.Core
	blocks []gpu.Buffer // by number
	spare  []*tierWork
	closed bool
}

// tierUser performs what a tier wants. Its methods are called from any goroutine and do not wait.
type tierUser interface {
	fill(slot stages.SlotID, record []byte, rank stages.Rank)
	hurry(stages.Hurry) // a fill that was asked for with a lower rank; it may have ended
	upload(slot stages.SlotID, record []byte)
	overdue(stages.ReadOverdue)
	ended(tier.Ended)
	broken(error) // the core's protocol
}

// tierWork is what follows from one event.
type tierWork struct {
	tier.Effects
	records [][]byte // of the fills, then of the uploads
}

// newHostTier makes a tier of at most limit records. It pins the first block at once.
func newHostTier(dev gpu.Discrete, cfg tier.Config, stride, bytes int, user tierUser, log *slog.Logger) (*hostTier, error) {
	cfg.BlockRecords = min(max(1, recordBlockBytes/stride), cfg.Limit)
	h := &hostTier{dev: dev, stride: stride, bytes: bytes, perBlock: cfg.BlockRecords, log: log, user: user, orders: make(chan tier.Order, 1), core: tier.New(cfg)}
	buf, err := h.pin(cfg.BlockRecords)
	if err != nil {
		return nil, err
	}
	h.blocks = []gpu.Buffer{buf}
	h.kept.Go(h.keep)
	return h, nil
}

func (h *hostTier) pin(records int) (gpu.Buffer, error) {
	buf, err := h.dev.NewPinned(records * h.stride)
	if err != nil {
		return nil, fmt.Errorf("expertmem: %d experts of %d bytes in the host's memory: %w", records, h.bytes, err)
	}
	return buf, nil
}

// step gives the core an event and performs what follows. Fills go first, so that the disk has them
// before anybody handles the end of a read.
func (h *hostTier) step(in tier.Event) {
	w, err := h.decide(in)
	if err != nil {
		h.user.broken(err)
		return
	}
	uploads := w.records[len(w.Fills):]
	for i, f := range w.Fills {
		h.user.fill(f.Slot, w.records[i], f.Rank)
	}
	for _, u := range w.Hurries {
		h.user.hurry(u)
	}
	for i, u := range w.Uploads {
		h.user.upload(u.Slot, uploads[i])
	}
	for _, o := range w.Overdue {
		h.user.overdue(o)
	}
	for _, e := range w.Ended {
		h.user.ended(e)
	}
	w.Reset()
	h.mu.Lock()
	h.spare = append(h.spare, w)
	h.mu.Unlock()
}

// decide runs the core, and passes an order on to keep.
func (h *hostTier) decide(in tier.Event) (*tierWork, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var w *tierWork
	if n := len(h.spare) - 1; n >= 0 {
		w, h.spare = h.spare[n], h.spare[:n]
	} else {
		w = new(tierWork)
	}
	if err := h.core.Step(in, &w.Effects); err != nil {
		return nil, err
	}
	w.records = w.records[:0]
	for _, f := range w.Fills {
		w.records = append(w.records, h.record(f.Record))
	}
	for _, u := range w.Uploads {
		w.records = append(w.records, h.record(u.Record))
	}
	if w.Memory.Kind != tier.NoOrder && !h.closed {
		h.orders <- w.Memory
	}
	return w, nil
}

// record returns the memory of a record.
func (h *hostTier) record(r tier.Record) []byte {
	return h.blocks[r.Block].Bytes()[int(r.Index)*h.stride:][:h.bytes:h.bytes]
}

// keep pins and frees memory until close.
func (h *hostTier) keep() {
	for o := range h.orders {
		if o.Kind == tier.Free {
			h.replace(o.Block, nil).Release()
			h.step(new(tier.Freed))
			continue
		}
		buf, err := h.pin(o.Records)
		if err != nil {
			h.log.Warn("no more of the host's memory can be pinned for experts", "held_bytes", h.heldBytes(), "error", err)
		} else {
			h.replace(o.Block, buf)
		}
		h.step(&tier.Pinned{Err: err})
	}
}

// replace sets the memory of a block and returns what it was.
func (h *hostTier) replace(block int32, buf gpu.Buffer) gpu.Buffer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := int(block) + 1 - len(h.blocks); n > 0 {
		h.blocks = append(h.blocks, slices.Repeat([]gpu.Buffer{nil}, n)...)
	}
	was := h.blocks[block]
	h.blocks[block] = buf
	return was
}

// heldBytes returns the bytes that are pinned.
func (h *hostTier) heldBytes() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(h.core.Held()) * int64(h.stride)
}

// hits returns how many reads found their record here or on its way.
func (h *hostTier) hits() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.core.Hits()
}

// resize sets the limit of records. It does not wait.
func (h *hostTier) resize(records int) { h.step(&tier.Limit{Records: records}) }

// forgetAll empties all records that are not in use.
func (h *hostTier) forgetAll() { h.step(new(tier.Forget)) }

// close gives everything back. No read is under way.
func (h *hostTier) close() {
	h.mu.Lock()
	h.closed = true
	close(h.orders)
	h.mu.Unlock()
	h.kept.Wait()
	for _, b := range h.blocks {
		if b != nil {
			b.Release()
		}
	}
	h.blocks = nil
}
