package actors

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// slotRead is the read under way into one slot. A slot has one at a time, until expert-IO has
// handled its end; so the memory, the message included, is used again for the next.
type slotRead struct {
	e      *Engine
	reqs   [1]readpool.Request
	result [1]stages.ReadResult
	done   stages.ExpertsRead
	ended  func(errs []error)

	record   *record      // what it uses of a tier
	commands gpu.Commands // of the upload from there
	uploaded func(error)
}

// read starts the reads of a group. Each is a group of its own to the pool, so that expert-IO hears
// of it as soon as it ends.
func (s *shell) read(g *stages.ReadGroup) {
	for _, r := range g.Reads {
		t := s.e.reads[r.Slot]
		if t == nil {
			t = &slotRead{e: s.e}
			t.ended, t.uploaded = t.end, t.over
			s.e.reads[r.Slot] = t
		}
		t.reqs[0] = readpool.Request{Layer: r.Layer, Expert: r.Expert, Tag: readTag(r.Slot, r.Gen)}
		t.result[0] = stages.ReadResult{Slot: r.Slot, Gen: r.Gen}
		t.done = stages.ExpertsRead{Step: g.Step, Results: t.result[:], Speculative: g.Speculative}
		t.start()
	}
}

// start begins a read, or goes on with one that had to wait for room in the tier.
func (t *slotRead) start() {
	if s := t.e.slots; s.staging == nil {
		id := t.result[0].Slot
		t.reqs[0].Dst = s.bytes(id)
		s.noteFilled(id, true)
	} else if found := s.staging.tier.take(t); found == foundThere {
		t.upload()
		return
	} else if found != foundRoom {
		return
	}
	t.e.pool.Submit(t.reqs[:], t.done.Speculative, t.ended)
}

// end goes on with what was read. It runs on a worker of the pool.
func (t *slotRead) end(errs []error) {
	err := errs[0] // the pool's memory
	if t.record == nil {
		t.tell(err)
		return
	}
	followers := t.e.slots.staging.tier.arrived(t.record, err)
	t.uploadRead(err)
	for _, f := range followers {
		f.uploadRead(err)
	}
}

// uploadRead goes on with a record that has been read, or has not.
func (t *slotRead) uploadRead(err error) {
	if err != nil {
		t.over(err)
		return
	}
	t.upload()
}

// tell tells expert-IO how the read has ended.
func (t *slotRead) tell(err error) {
	t.result[0].Err = err
	t.e.sendTo(stages.ExpertIO, &t.done)
}
