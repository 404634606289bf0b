package actors

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/moeflux/moeflux-actor/gpu"
)

// recordBlockBytes is about how much memory a tier pins at a time, and gives back at a time.
// Pinning it takes some ten milliseconds, so that is done ahead of the reads, in a goroutine of its
// own.
const recordBlockBytes = 64 << 20

// recordBlock is one piece of pinned memory.
type recordBlock struct {
	buf     gpu.Buffer
	records []record
	leaving bool // goes as soon as nobody uses its records
}

// newTier makes a tier of at most limit records for layers of so many experts. Its first block is
// pinned at once.
func newTier(dev gpu.Discrete, layers, experts, stride, bytes, limit int, log *slog.Logger) (*tier, error) {
	h := &tier{dev: dev, experts: experts, stride: stride, bytes: bytes, perBlock: min(max(1, recordBlockBytes/stride), limit), log: log,
		at: make([]*record, layers*experts), start: (*slotRead).start, limit: limit}
	h.wake.L = &h.mu
	h.recent.prev, h.recent.next = &h.recent, &h.recent
	b, err := h.newBlock(h.perBlock)
	if err != nil {
		return nil, err
	}
	h.add(b)
	h.kept.Go(h.keep)
	return h, nil
}

func (h *tier) newBlock(n int) (*recordBlock, error) {
	buf, err := h.dev.NewPinned(n * h.stride)
	if err != nil {
		return nil, fmt.Errorf("actors: %d experts of %d bytes in the host's memory: %w", n, h.bytes, err)
	}
	b := &recordBlock{buf: buf, records: make([]record, n)}
	for i := range b.records {
		b.records[i] = record{block: b, mem: buf.Bytes()[i*h.stride:][:h.bytes:h.bytes]}
	}
	return b, nil
}

func (h *tier) add(b *recordBlock) {
	h.blocks = append(h.blocks, b)
	h.held += len(b.records)
	for i := range b.records {
		h.free = append(h.free, &b.records[i])
	}
}

// heldBytes returns the memory that is pinned.
func (h *tier) heldBytes() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(h.held) * int64(h.stride)
}

// resize lets the tier have so many records. It does not wait; one block stays.
func (h *tier) resize(records int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limit = records
	h.wake.Signal()
}

// keep pins memory ahead of the reads, and gives it back where the limit has been lowered, until
// close.
func (h *tier) keep() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for !h.closed {
		switch {
		case h.held > h.limit && len(h.blocks) > 1 && !h.blocks[len(h.blocks)-1].leaving:
			h.leave(h.blocks[len(h.blocks)-1])
		case h.idleLeaver() >= 0:
			i := h.idleLeaver()
			b := h.blocks[i]
			h.blocks = slices.Delete(h.blocks, i, i+1)
			h.held -= len(b.records)
			h.unlocked(b.buf.Release)
		case len(h.free) <= h.perBlock/2 && h.held < h.limit:
			h.grow(min(h.perBlock, h.limit-h.held))
			for len(h.free) > 0 && len(h.waiting) > 0 {
				next := h.dequeue()
				h.unlocked(func() { h.start(next) })
			}
		default:
			h.wake.Wait()
		}
	}
}

// unlocked does what takes long.
func (h *tier) unlocked(do func()) {
	h.mu.Unlock()
	defer h.mu.Lock()
	do()
}

// grow pins another block. If none is to be had the tier stays as it is.
func (h *tier) grow(n int) {
	var b *recordBlock
	var err error
	h.unlocked(func() { b, err = h.newBlock(n) })
	if err != nil {
		h.log.Warn("no more of the host's memory can be pinned for experts", "held_bytes", h.held*h.stride, "error", err)
		h.limit = h.held
		return
	}
	h.add(b)
}

// leave gives up a block: its records are nobody's any more, but for those in use, which follow as
// these uses end.
func (h *tier) leave(b *recordBlock) {
	b.leaving = true
	h.free = slices.DeleteFunc(h.free, func(r *record) bool { return r.block == b })
	for i := range b.records {
		if r := &b.records[i]; r.there && r.users == 0 {
			h.forget(r)
		}
	}
}

// idleLeaver returns a block that leaves and is not in use, -1 if there is none.
func (h *tier) idleLeaver() int {
	return slices.IndexFunc(h.blocks, func(b *recordBlock) bool {
		for k := range b.records {
			if b.records[k].users > 0 {
				return false
			}
		}
		return b.leaving
	})
}

// close gives everything back. No read is under way.
func (h *tier) close() {
	h.mu.Lock()
	h.closed = true
	h.wake.Signal()
	h.mu.Unlock()
	h.kept.Wait()
	for _, b := range h.blocks {
		b.buf.Release()
	}
	h.blocks = nil
}
