package tier_test

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/tier"
)

// naive is the tier as its documentation tells it, with maps and full scans. Only which free record
// a fill gets is the core's choice, which the model checks and takes over.
type naive struct {
	per, limit int
	now        int // events
	records    map[tier.Record]*naiveRecord
	leaving    map[int32]bool
	reads      map[stages.SlotID]*naiveRead
	waiting    []stages.SlotID
	order      tier.Order

	got   tier.Effects // of the core
	want  tier.Effects
	wrong error
}

type naiveRecord struct {
	key   [2]int // layer, expert
	has   bool   // or will have, when it is filled
	there bool
	used  int             // when
	users []stages.SlotID // in order; the first of those who wait fills it
	rank  stages.Rank     // the highest of the users' while it is filled
	late  bool            // the fill
}

type naiveRead struct {
	ask       tier.Ask
	record    *naiveRecord
	from      tier.Source
	uploading bool
}

func newNaive(per, limit int) *naive {
	n := &naive{per: per, limit: limit, records: map[tier.Record]*naiveRecord{}, leaving: map[int32]bool{}, reads: map[stages.SlotID]*naiveRead{}}
	n.addBlock(0, per)
	return n
}

func (n *naive) addBlock(number int32, records int) {
	for i := range records {
		n.records[tier.Record{Block: number, Index: int32(i)}] = new(naiveRecord)
	}
}

// step checks what the core made of an event.
func (n *naive) step(in tier.Event, got *tier.Effects) error {
	n.got, n.want = *got, tier.Effects{}
	n.now++
	n.event(in)
	n.shrink()
	n.serve()
	n.memory()
	if n.wrong != nil {
		return n.wrong
	}
	if !sameEffects(got, &n.want) {
		return fmt.Errorf("%T %+v:\n got %+v\nwant %+v", in, in, *got, n.want)
	}
	return nil
}

func sameEffects(a, b *tier.Effects) bool {
	return slices.Equal(a.Fills, b.Fills) && slices.Equal(a.Hurries, b.Hurries) && slices.Equal(a.Uploads, b.Uploads) &&
		reflect.DeepEqual(append([]stages.ReadOverdue{}, a.Overdue...), append([]stages.ReadOverdue{}, b.Overdue...)) &&
		slices.Equal(a.Ended, b.Ended) && a.Memory == b.Memory
}

func (n *naive) event(in tier.Event) {
	switch e := in.(type) {
	case *tier.Ask:
		n.reads[e.Read.Slot] = &naiveRead{ask: *e}
		n.waiting = append(n.waiting, e.Read.Slot)
		n.sortWaiting()
		n.serveOne(e.Read.Slot)
	case *tier.Hurry:
		n.hurry(e)
	case *tier.Filled:
		n.filled(e)
	case *tier.Overdue:
		n.overdue(e)
	case *tier.Uploaded:
		n.end(e.Slot, e.Err)
	case *tier.Limit:
		n.limit = e.Records
	case *tier.Pinned:
		if e.Err == nil {
			n.addBlock(n.order.Block, n.order.Records)
		} else if n.held() < n.limit {
			n.limit = n.held()
		}
		n.order = tier.Order{}
	case *tier.Freed:
		for id := range n.records {
			if id.Block == n.order.Block {
				delete(n.records, id)
			}
		}
		delete(n.leaving, n.order.Block)
		n.order = tier.Order{}
	case *tier.Forget:
		for _, r := range n.records {
			if len(r.users) == 0 {
				*r = naiveRecord{}
			}
		}
	}
}

func (n *naive) held() int { return len(n.records) }

// sortWaiting puts higher ranks first; a stable sort leaves each in order.
func (n *naive) sortWaiting() {
	slices.SortStableFunc(n.waiting, func(a, b stages.SlotID) int {
		return int(n.reads[b].ask.Rank) - int(n.reads[a].ask.Rank)
	})
}

// find returns the record that has an expert or will have it.
func (n *naive) find(key [2]int) (found tier.Record, r *naiveRecord) {
	for id, x := range n.records {
		if x.has && x.key == key {
			if r != nil {
				n.wrong = fmt.Errorf("expert %v is in two records", key)
			}
			found, r = id, x
		}
	}
	return found, r
}

// room says which record a fill may take: any that is empty, or the least recently used that nobody
// uses. The core's choice is the next of its fills.
func (n *naive) room() (tier.Record, bool) {
	var empty []tier.Record
	oldest, age := tier.Record{}, 0
	for id, r := range n.records {
		switch {
		case n.leaving[id.Block] || len(r.users) > 0:
		case !r.has:
			empty = append(empty, id)
		case age == 0 || r.used < age:
			oldest, age = id, r.used
		}
	}
	if len(empty) == 0 {
		return oldest, age != 0
	}
	if i := len(n.want.Fills); i < len(n.got.Fills) && slices.Contains(empty, n.got.Fills[i].Record) {
		return n.got.Fills[i].Record, true
	}
	return empty[0], true
}

// serveOne goes on with a read that waits, if it can.
func (n *naive) serveOne(slot stages.SlotID) {
	t := n.reads[slot]
	key := [2]int{t.ask.Read.Layer, t.ask.Read.Expert}
	id, r := n.find(key)
	switch {
	case r != nil && r.there:
		t.from, t.uploading = tier.FromHost, true
		n.want.Uploads = append(n.want.Uploads, tier.Upload{Slot: slot, Record: id})
	case r != nil:
		t.from = tier.FromOthers
		n.urge(r, t.ask.Rank)
	default:
		var ok bool
		if id, ok = n.room(); !ok {
			return
		}
		r = n.records[id]
		*r = naiveRecord{key: key, has: true, rank: t.ask.Rank}
		t.from = tier.FromDisk
		n.want.Fills = append(n.want.Fills, tier.Fill{Slot: slot, Record: id, Rank: t.ask.Rank})
	}
	n.now++
	r.used, t.record = n.now, r
	r.users = append(r.users, slot)
	n.waiting = slices.DeleteFunc(n.waiting, func(s stages.SlotID) bool { return s == slot })
}

func (n *naive) serve() {
	for _, slot := range slices.Clone(n.waiting) {
		n.serveOne(slot)
	}
}

func (n *naive) urge(r *naiveRecord, rank stages.Rank) {
	if r.rank < rank {
		r.rank = rank
		n.want.Hurries = append(n.want.Hurries, stages.Hurry{Slot: r.users[0], Gen: n.reads[r.users[0]].ask.Read.Gen, Rank: rank})
	}
}

func (n *naive) hurry(e *tier.Hurry) {
	t := n.reads[e.Slot]
	if t == nil || t.ask.Read.Gen != e.Gen || t.ask.Rank >= e.Rank || t.uploading {
		return
	}
	t.ask.Rank = e.Rank
	if t.record != nil {
		n.urge(t.record, e.Rank)
		return
	}
	n.waiting = append(slices.DeleteFunc(n.waiting, func(s stages.SlotID) bool { return s == e.Slot }), e.Slot)
	n.sortWaiting()
}

func (n *naive) filled(e *tier.Filled) {
	r := n.reads[e.Slot].record
	r.late = false
	if e.Err != nil {
		r.has = false
		for _, slot := range slices.Clone(r.users) {
			n.end(slot, e.Err)
		}
		return
	}
	r.there = true
	id, _ := n.find(r.key)
	for _, slot := range r.users {
		n.reads[slot].uploading = true
		n.want.Uploads = append(n.want.Uploads, tier.Upload{Slot: slot, Record: id})
	}
}

func (n *naive) end(slot stages.SlotID, err error) {
	t := n.reads[slot]
	n.want.Ended = append(n.want.Ended, tier.Ended{Slot: slot, From: t.from, Err: err})
	t.record.users = slices.DeleteFunc(t.record.users, func(s stages.SlotID) bool { return s == slot })
	delete(n.reads, slot)
	for id, r := range n.records { // what leaves keeps nothing that is not used
		if n.leaving[id.Block] && len(r.users) == 0 {
			*r = naiveRecord{}
		}
	}
}

func (n *naive) overdue(e *tier.Overdue) {
	t := n.reads[e.Slot]
	if t == nil || t.ask.Read.Gen != e.Gen || t.from != tier.FromDisk || t.record == nil || t.uploading {
		return
	}
	t.record.late = true
	late := slices.Clone(t.record.users)
	for _, r := range n.records {
		if len(r.users) > 0 && !r.late && (r.there || !r.rank.Speculative()) { // it will come free
			n.tellLate(late, e.Err)
			return
		}
	}
	n.tellLate(append(late, n.waiting...), e.Err)
}

func (n *naive) tellLate(who []stages.SlotID, err error) {
	for _, slot := range who {
		n.want.Overdue = append(n.want.Overdue, stages.ReadOverdue{Slot: slot, Gen: n.reads[slot].ask.Read.Gen, Err: err})
	}
}
