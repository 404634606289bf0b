package actors

import (
	"fmt"
	"log/slog"
	"slices"

	"github.com/moeflux/moeflux-actor/gpu"
)

// recordBlockBytes is roughly the memory that a tier pins or frees at once. Pinning it takes some
// ten milliseconds, so a goroutine does that ahead of the reads.
const recordBlockBytes = 64 << 20

// recordBlock is one piece of pinned memory.
type recordBlock struct {
	buf     gpu.Buffer
	records []record
	leaving bool // to be freed as soon as none of its records is in use
}

// newTier makes a tier of at most limit records. It pins its first block at once.
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

// heldBytes returns the bytes that are pinned.
func (h *tier) heldBytes() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return int64(h.held) * int64(h.stride)
}

// resize sets the limit of records. It does not wait. One block always stays.
func (h *tier) resize(records int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.limit = records
	h.wake.Signal()
}

// keep pins memory ahead of the reads, and frees it after the limit was lowered, until close.
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

// unlocked runs do, which may take long, without the lock.
func (h *tier) unlocked(do func()) {
	h.mu.Unlock()
	defer h.mu.Lock()
	do()
}

// grow pins another block. If that fails the tier keeps its size.
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

// leave gives up a block. Its unused records are dropped at once, the others as their uses end.
func (h *tier) leave(b *recordBlock) {
	b.leaving = true
	h.free = slices.DeleteFunc(h.free, func(r *record) bool { return r.block == b })
	for i := range b.records {
		if r := &b.records[i]; r.there && r.users == 0 {
			h.forget(r)
		}
	}
}

// idleLeaver returns the index of a leaving block that is not in use, or -1.
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
