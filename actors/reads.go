package actors

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// slotRead is the read under way into one slot. A slot has at most one, until expert-IO has handled
// its end, so the next read reuses the memory, that of the message included.
type slotRead struct {
	e      *Engine
	reqs   [1]readpool.Request
	result [1]stages.ReadResult
	done   stages.ExpertsRead
	ended  func(errs []error)

	record   *record      // of the tier, if there is one
	commands gpu.Commands // the upload of the record
	uploaded func(error)
}

// Read starts the reads of a group. The pool gets each as a group of its own, so that expert-IO
// hears of each as soon as it ends.
func (e *experts) Read(g *stages.ReadGroup) {
	for _, r := range g.Reads {
		t := e.reads[r.Slot]
		if t == nil {
			t = &slotRead{e: (*Engine)(e)}
			t.ended, t.uploaded = t.end, t.over
			e.reads[r.Slot] = t
		}
		t.reqs[0] = readpool.Request{Layer: r.Layer, Expert: r.Expert, Tag: readTag(r.Slot, r.Gen)}
		t.result[0] = stages.ReadResult{Slot: r.Slot, Gen: r.Gen}
		t.done = stages.ExpertsRead{Step: g.Step, Results: t.result[:], Speculative: g.Speculative}
		t.start()
	}
}

// start begins a read, or continues one that had to wait for room in the tier.
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

// end continues after the disk read. It runs on a worker of the pool.
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

// uploadRead continues with a record after the attempt to read it.
func (t *slotRead) uploadRead(err error) {
	if err != nil {
		t.over(err)
		return
	}
	t.upload()
}

// tell tells expert-IO how the read ended.
func (t *slotRead) tell(err error) {
	t.result[0].Err = err
	t.e.rt.Send(stages.ExpertIO, &t.done)
}
