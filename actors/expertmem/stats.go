package expertmem

import (
	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/tier"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// readTag names a read by its slot and the slot's generation.
func readTag(slot stages.SlotID, gen uint32) uint64 { return uint64(uint32(slot))<<32 | uint64(gen) }

// readOverdue tells expert-IO that a read does not end, and which others wait for that. The pool
// calls it.
func (m *Memory) readOverdue(r readpool.Request, err *readpool.TimeoutError) {
	m.cfg.Log.Warn("a read does not end", "layer", r.Layer, "expert", r.Expert, "waited", err.Waited, "begun", err.Begun)
	late := stages.ReadOverdue{Slot: stages.SlotID(r.Tag >> 32), Gen: uint32(r.Tag), Err: err}
	if h := m.slots.tier; h != nil {
		h.step((*tier.Overdue)(&late))
		return
	}
	m.cfg.Host.Send(stages.ExpertIO, &late)
}

// Level tells how many reads wait for a worker, and how many are under way.
func (m *Memory) Level(l *record.Level) {
	p := m.pool.Stats()
	l.ReadsQueued, l.ReadsRunning = int32(p.Queued), int32(p.Running)
}

// AddStats adds the figures of reads and memory to those of the stages.
func (m *Memory) AddStats(s *stages.Stats) {
	p := m.pool.Stats()
	s.Reads = stages.ReadStats{
		Source: string(m.plan.IO), Ended: p.Reads, Speculative: p.Speculative, Hurried: p.Hurried, Bytes: p.Bytes, Failed: p.Errors,
		Retried: p.Retried, Overdue: p.Overdue, WorkerTime: p.Time, BusyTime: p.Busy, Queued: p.Queued, Running: p.Running, QueuedHigh: p.QueuedHigh, RunningHigh: p.RunningHigh, AtOnce: p.AtOnce,
		MajorFaults: majorFaults() - m.faultsAtOpen,
	}
	if m.checked != nil {
		s.Reads.Corrupt = m.checked.corrupt.Load()
	}
	g := &m.governor
	s.Memory = stages.MemoryStats{
		Available: g.counts.available.Load(), SlotsAsked: int(g.counts.asked.Load()), SlotsHeld: m.slots.held(), Shrunk: g.counts.shrunk.Load(), Grown: g.counts.grown.Load(),
	}
	s.Reads.Uploaded = m.slots.uploads.bytes.Load()
	if h := m.slots.tier; h != nil {
		s.Reads.FromHost, s.Memory.HostHeld = h.hits(), h.heldBytes()
	}
	if m.slots.near != nil {
		s.Reads.FromHost = s.Reads.Uploaded / int64(m.plan.SlotBytes)
		s.Memory.HostHeld = int64(m.plan.HostSlots) * int64(m.plan.Stride)
	}
}

// majorFaults returns how often this process has waited for the disk because a mapped page was not
// in memory.
func majorFaults() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return int64(u.Majflt)
}
