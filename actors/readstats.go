package actors

import (
	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/tier"
)

// readTag names a read by its slot and the slot's generation.
func readTag(slot stages.SlotID, gen uint32) uint64 { return uint64(uint32(slot))<<32 | uint64(gen) }

// readOverdue tells expert-IO that a read does not end, and which others wait for that. The pool
// calls it.
func (e *Engine) readOverdue(r readpool.Request, err *readpool.TimeoutError) {
	e.log.Warn("a read does not end", "layer", r.Layer, "expert", r.Expert, "waited", err.Waited, "begun", err.Begun)
	late := stages.ReadOverdue{Slot: stages.SlotID(r.Tag >> 32), Gen: uint32(r.Tag), Err: err}
	if st := e.slots.staging; st != nil {
		st.tier.step((*tier.Overdue)(&late))
		return
	}
	e.rt.Send(stages.ExpertIO, &late)
}

// AddStats adds the figures that only the engine has to those of the stages.
func (e *experts) AddStats(s *stages.Stats) {
	p := e.pool.Stats()
	s.Reads = stages.ReadStats{
		Source: string(e.info.ExpertIO), Ended: p.Reads, Speculative: p.Speculative, Hurried: p.Hurried, Bytes: p.Bytes, Failed: p.Errors,
		Retried: p.Retried, Overdue: p.Overdue, WorkerTime: p.Time, BusyTime: p.Busy, QueuedHigh: p.QueuedHigh, RunningHigh: p.RunningHigh,
		MajorFaults: majorFaults() - e.faultsAtOpen,
	}
	if e.checked != nil {
		s.Reads.Corrupt = e.checked.corrupt.Load()
	}
	g := e.governor
	s.Memory = stages.MemoryStats{
		Available: g.available.Load(), SlotsAsked: int(g.asked.Load()), SlotsHeld: e.slots.held(), Shrunk: g.shrunk.Load(), Grown: g.grown.Load(),
	}
	if e.slots.staging != nil {
		e.slots.staging.add(s)
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
