package expertmem

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// The number of expert slots has one owner at a time, and one way to it.
//
// At Open it is Plan, which chooses the most slots and the least. From then on it is the core of
// expert-IO: it has as many slots as two bounds allow, the caller's and memory's. Both come as a
// stages.ResizeSlots, made by the two functions below, and nobody else makes one. What the core
// decides comes back by Free, for the memory of a slot that is given up, by Read, which fills a
// slot that came back, and by Resized.
//
// Where slots lie in a device's own memory, memory's bound is on the records in the host's memory,
// and their tier is what decides. Mapped experts have no number: the kernel drops their pages.

// CallersBound returns the message that bounds the number of slots for a caller.
func CallersBound(slots int, to stages.Caller) *stages.ResizeSlots {
	return &stages.ResizeSlots{Slots: slots, Caller: to}
}

// memorysBound returns the message that bounds the number of slots for the governor. Nobody waits
// for the answer.
func memorysBound(slots int) *stages.ResizeSlots {
	return &stages.ResizeSlots{Slots: slots, Memory: true, Caller: make(chan stages.Message, 1)}
}

// bounded is what the governor bounds.
type bounded struct {
	most, least int              // records; most is 0 for mapped experts
	stride      int64            // bytes of a record
	held        func() int64     // bytes of memory that records take up
	resize      func(number int) // asks for another number
}

// bounded returns what the governor bounds; ok is false if all experts were loaded, of which none
// can be given up.
func (m *Memory) bounded() (b bounded, ok bool) {
	p := &m.plan
	_, own := m.cfg.Device.(gpu.Discrete)
	switch {
	case p.IO == Loaded:
		return b, false
	case own:
		h := m.slots.tier
		return bounded{most: p.HostSlots, least: h.perBlock, stride: int64(h.stride), held: h.heldBytes, resize: h.resize}, true
	case p.IO == Mmap:
		return b, true
	}
	return bounded{
		most: p.Slots, least: max(1, len(p.Parts)) * p.WaveSlots, stride: int64(p.Stride), held: m.slots.held,
		resize: func(n int) { m.cfg.Host.Send(stages.ExpertIO, memorysBound(n)) },
	}, true
}

// Resized logs a new number of slots.
func (m *Memory) Resized(slots int) {
	m.cfg.Log.Info("expert slots", "slots", slots, "of", m.plan.Slots, "bytes", int64(slots)*int64(m.plan.SlotBytes))
}

// Free returns the memory of a slot to the system. If that fails the slot keeps its memory, which
// does no other harm.
func (m *Memory) Free(id stages.SlotID) {
	if err := m.slots.discard(id); err != nil {
		m.cfg.Log.Warn("the memory of an expert slot stays in use", "slot", id, "error", err)
	}
}

// Forgotten forgets the experts in the host's memory too.
func (m *Memory) Forgotten() {
	if m.slots.tier != nil {
		m.slots.tier.forgetAll()
	}
}
