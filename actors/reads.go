package actors

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// slotRead is the read under way into one slot. A slot has one at a time, until expert-IO has handled its end; so the memory, the
// message included, is used again for the next.
type slotRead struct {
	e      *Engine
	reqs   [1]readpool.Request
	result [1]stages.ReadResult
	done   stages.ExpertsRead
	ended  func(errs []error)

	commands gpu.Commands // where slots are uploaded
	uploaded func(error)
}

// read starts the reads of a group. Each is a group of its own to the pool, so that expert-IO hears of it as soon as it ends.
func (s *shell) read(g *stages.ReadGroup) {
	for _, r := range g.Reads {
		t := s.e.reads[r.Slot]
		if t == nil {
			t = &slotRead{e: s.e}
			t.ended, t.uploaded = t.end, t.tell
			s.e.reads[r.Slot] = t
		}
		t.reqs[0] = readpool.Request{Layer: r.Layer, Expert: r.Expert, Dst: s.e.slots.bytes(r.Slot), Tag: readTag(r.Slot, r.Gen)}
		s.e.slots.noteFilled(r.Slot, true)
		t.result[0] = stages.ReadResult{Slot: r.Slot, Gen: r.Gen}
		t.done = stages.ExpertsRead{Step: g.Step, Results: t.result[:], Speculative: g.Speculative}
		s.e.pool.Submit(t.reqs[:], g.Speculative, t.ended)
	}
}

// end uploads what was read, where slots are staged, and else tells expert-IO. It runs on a worker of the pool.
func (t *slotRead) end(errs []error) {
	if errs[0] == nil && t.e.slots.staging != nil {
		t.upload()
		return
	}
	t.tell(errs[0])
}

// tell tells expert-IO how the read has ended.
func (t *slotRead) tell(err error) {
	t.result[0].Err = err
	t.e.sendTo(stages.ExpertIO, &t.done)
}
