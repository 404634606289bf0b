package actors

import (
	"log/slog"
	"slices"
	"sync"

	"github.com/moeflux/moeflux-actor/gpu"
)

// tier is a cache of experts' records in the host's pinned memory, between the disk and slots in
// the memory of a gpu.Discrete device. A read whose record is here does not read the disk; any
// other reads its record into the tier. Both then upload the record from here. The least recently
// used record is replaced first. The tier grows as reads come, up to a limit that the governor
// lowers and raises (tiermemory.go).
type tier struct {
	dev      gpu.Discrete
	experts  int // of a layer
	stride   int // bytes from record to record
	bytes    int // of a record
	perBlock int // records
	log      *slog.Logger
	start    func(*slotRead) // continues a read that waited

	mu sync.Mutex // guards the rest
	at []*record  // [layer·experts + expert]; nil if not here
	// head of the ring of records that hold an expert; next is the most recently used
	recent  record
	free    []*record
	waiting []*slotRead // for a free record, in order, demand reads before speculative ones
	hits    int64       // reads whose record was here or on its way

	limit  int // records
	held   int // records in blocks
	blocks []*recordBlock
	closed bool
	wake   sync.Cond // keep has something to do
	kept   sync.WaitGroup
}

// record is room for one expert.
type record struct {
	mem        []byte
	block      *recordBlock
	key        int // layer·experts + expert
	there      bool
	users      int         // reads and uploads under way
	followers  []*slotRead // wait for the record that another read is bringing
	prev, next *record
}

// found says how a read continues.
type found int

const (
	foundThere  found = iota // the record is here
	foundRoom                // there is room to read it into
	foundComing              // another read is bringing it and will continue this one
	foundNone                // every record is in use: the read continues when one is free
)

// take finds the record of a read, or room for it.
func (h *tier) take(t *slotRead) found {
	key := t.reqs[0].Layer*h.experts + t.reqs[0].Expert
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.at[key]; r != nil {
		h.hits++
		h.use(r, t)
		if r.there {
			return foundThere
		}
		r.followers = append(r.followers, t)
		return foundComing
	}
	r := h.room()
	if r == nil {
		h.queue(t)
		return foundNone
	}
	r.key, h.at[key] = key, r
	h.use(r, t)
	t.reqs[0].Dst = r.mem
	return foundRoom
}

// queue makes a read wait for a free record.
func (h *tier) queue(t *slotRead) {
	i := len(h.waiting)
	for !t.done.Speculative && i > 0 && h.waiting[i-1].done.Speculative {
		i--
	}
	h.waiting = slices.Insert(h.waiting, i, t)
}

// use notes that a read uses a record, which becomes the most recently used.
func (h *tier) use(r *record, t *slotRead) {
	t.record = r
	r.users++
	r.unlink()
	r.prev, r.next = &h.recent, h.recent.next
	r.prev.next, r.next.prev = r, r
}

func (r *record) unlink() {
	if r.next != nil {
		r.prev.next, r.next.prev = r.next, r.prev
		r.prev, r.next = nil, nil
	}
}

// room returns a record without an expert: a free one, or the least recently used of those that are
// not in use, emptied.
func (h *tier) room() *record {
	if len(h.free) <= h.perBlock/2 {
		h.wake.Signal()
	}
	if n := len(h.free); n > 0 {
		r := h.free[n-1]
		h.free = h.free[:n-1]
		return r
	}
	for r := h.recent.prev; r != &h.recent; r = r.prev {
		if r.users == 0 {
			h.forget(r)
			return r
		}
	}
	return nil
}

// forget removes the expert from a record.
func (h *tier) forget(r *record) {
	h.at[r.key] = nil
	r.there = false
	r.unlink()
}

// forgetAll empties all records that are not in use.
func (h *tier) forgetAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := h.recent.next; r != &h.recent; {
		next := r.next
		if r.users == 0 {
			h.forget(r)
			if !r.block.leaving {
				h.free = append(h.free, r)
			}
		}
		r = next
	}
}

// arrived notes that the read of a record has ended, and returns the other reads that waited for
// it.
func (h *tier) arrived(r *record, err error) []*slotRead {
	h.mu.Lock()
	defer h.mu.Unlock()
	followers := r.followers
	r.followers = nil
	if err != nil {
		h.forget(r)
	} else {
		r.there = true
	}
	return followers
}

// release ends a read's use of its record and returns a read that waited for a record, or nil.
func (h *tier) release(t *slotRead) (next *slotRead) {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := t.record
	t.record = nil
	r.users--
	if r.users > 0 {
		return nil
	}
	switch {
	case r.block.leaving:
		if r.there {
			h.forget(r)
		}
		h.wake.Signal()
	case !r.there: // its read has failed
		h.free = append(h.free, r)
	}
	return h.dequeue()
}

// dequeue removes and returns the first read that waits, or nil.
func (h *tier) dequeue() *slotRead {
	if len(h.waiting) == 0 {
		return nil
	}
	t := h.waiting[0]
	h.waiting = slices.Delete(h.waiting, 0, 1)
	return t
}

// upload copies the record to the read's slot.
func (t *slotRead) upload() {
	slots := t.e.slots
	t.commands.Reset()
	t.commands.EncodeUpload(gpu.Upload{Dst: slots.View(t.result[0].Slot), Src: t.record.mem})
	ticket, err := slots.staging.submit(&t.commands, len(t.record.mem))
	if err != nil {
		t.over(err)
		return
	}
	ticket.OnDone(t.uploaded)
}

// over ends a read that used a record.
func (t *slotRead) over(err error) {
	h := t.e.slots.staging.tier
	next := h.release(t)
	t.tell(err)
	if next != nil {
		h.start(next)
	}
}
