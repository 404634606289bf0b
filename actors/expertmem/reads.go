package expertmem

import (
	"errors"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/tier"
)

// slotRead is the read under way into one slot. A slot has at most one, until expert-IO has handled
// its end, so the next read reuses the memory, that of the message included.
type slotRead struct {
	m      *Memory
	reqs   [1]readpool.Request
	result [1]stages.ReadResult
	done   stages.ExpertsRead
	ended  func(ends []readpool.End)

	commands gpu.Commands // the upload of the record, if it goes through the host's memory
	uploaded func(error)
}

// Read starts the reads of a group. The pool gets each as a group of its own, so that expert-IO
// hears of each as soon as it ends.
func (m *Memory) Read(g *stages.ReadGroup) {
	for _, r := range g.Reads {
		t := m.reads[r.Slot]
		if t == nil {
			t = &slotRead{m: m}
			t.ended, t.uploaded = t.end, t.uploadEnded
			m.reads[r.Slot] = t
		}
		t.reqs[0] = readpool.Request{Layer: r.Layer, Expert: r.Expert, Tag: readTag(r.Slot, r.Gen)}
		t.result[0] = stages.ReadResult{Slot: r.Slot, Gen: r.Gen}
		t.done = stages.ExpertsRead{Step: g.Step, Results: t.result[:], Speculative: g.Rank.Speculative()}
		slots := m.slots
		if slots.near != nil {
			t.comeNear()
			continue
		}
		if slots.tier != nil {
			slots.tier.step(&tier.Ask{Read: r, Rank: g.Rank})
			continue
		}
		slots.noteFilled(r.Slot, true)
		t.fill(slots.bytes(r.Slot), g.Rank)
	}
}

// Hurry moves a read ahead: somebody waits for it by now.
func (m *Memory) Hurry(h stages.Hurry) {
	if ht := m.slots.tier; ht != nil {
		hurry := tier.Hurry(h)
		ht.step(&hurry)
		return
	}
	m.pool.Hurry(readTag(h.Slot, h.Gen), rankOf(h.Rank))
}

// Recall ends a read that nobody needs any more, unless a worker has begun it. Reads through a tier
// go on: what they bring serves later steps from the host's memory.
func (m *Memory) Recall(r stages.Recall) {
	if m.slots.tier == nil {
		m.pool.Recall(readTag(r.Slot, r.Gen))
	}
}

// rankOf says what the pool calls a rank. Both name the same four.
func rankOf(r stages.Rank) readpool.Rank { return readpool.Rank(r) }

// fill has the pool read the record.
func (t *slotRead) fill(record []byte, rank stages.Rank) {
	t.reqs[0].Dst = record
	t.m.pool.Submit(t.reqs[:], rankOf(rank), t.ended)
}

// end continues after the disk read. It runs on a worker of the pool.
func (t *slotRead) end(ends []readpool.End) {
	end, r := ends[0], &t.result[0] // the pool's memory
	if !end.Began.IsZero() {
		r.BeganNS, r.EndedNS = t.m.cfg.Host.At(end.Began), t.m.cfg.Host.At(end.Ended)
	}
	if h := t.m.slots.tier; h != nil {
		h.step(&tier.Filled{Slot: r.Slot, Err: end.Err})
		return
	}
	switch {
	case end.Err == nil:
		r.PlacedNS = r.EndedNS
	case errors.Is(end.Err, readpool.ErrRecalled):
		end.Err = stages.ErrRecalled
	}
	t.tell(end.Err)
}

// now returns the time on the engine's clock.
func (t *slotRead) now() int64 { return t.m.cfg.Host.At(time.Now()) }

// upload copies a record to the read's slot.
func (t *slotRead) upload(record []byte) {
	slots, r := t.m.slots, &t.result[0]
	if r.EndedNS == 0 { // another read has brought the record
		r.EndedNS = t.now()
	}
	t.commands.Reset()
	gpu.Encode(&t.commands, gpu.Upload{Dst: slots.View(r.Slot), Src: record})
	ticket, err := slots.uploads.submit(&t.commands, slots.partOf(r.Slot))
	if err != nil {
		t.uploadEnded(err)
		return
	}
	ticket.OnDone(t.uploaded)
}

func (t *slotRead) uploadEnded(err error) {
	slots, r := t.m.slots, &t.result[0]
	if err == nil {
		r.PlacedNS = t.now()
		slots.uploads.bytes.Add(int64(slots.bytesEach))
	}
	if slots.tier == nil {
		t.tell(err)
		return
	}
	slots.tier.step(&tier.Uploaded{Slot: r.Slot, Err: err})
}

// tell tells expert-IO how the read ended.
func (t *slotRead) tell(err error) {
	r := &t.result[0]
	if r.Err = err; r.EndedNS == 0 { // it never came to a worker, or waited for another that failed
		r.EndedNS = t.now()
	}
	t.m.cfg.Host.Send(stages.ExpertIO, &t.done)
}

// stagedReads performs what a tier wants for the reads of a Memory.
type stagedReads struct{ m *Memory }

func (s stagedReads) fill(slot stages.SlotID, record []byte, rank stages.Rank) {
	s.m.reads[slot].fill(record, rank)
}
func (s stagedReads) hurry(h stages.Hurry) {
	s.m.pool.Hurry(readTag(h.Slot, h.Gen), rankOf(h.Rank))
}
func (s stagedReads) upload(slot stages.SlotID, record []byte) { s.m.reads[slot].upload(record) }
func (s stagedReads) overdue(o stages.ReadOverdue)             { s.m.cfg.Host.Send(stages.ExpertIO, &o) }
func (s stagedReads) broken(err error)                         { s.m.cfg.Host.Break("tier", err) }

func (s stagedReads) ended(e tier.Ended) {
	t := s.m.reads[e.Slot]
	t.result[0].FromHost = e.From != tier.FromDisk
	t.tell(e.Err)
}
