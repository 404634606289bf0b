package whatif

import (
	"math"
	"slices"
	"time"

	"github.com/moeflux/moeflux-actor/stages"
)

// diskLaw says how long reads take: each of n that run at once takes Base + n·Each nanoseconds.
type diskLaw struct{ Base, Each float64 }

// usual returns what a read takes beside n-1 others.
func (l diskLaw) usual(n int) float64 { return l.Base + float64(n)*l.Each }

// ranks is how many there are.
const ranks = int(stages.UrgentRead-stages.GuessRead) + 1

// urgentGap is that of the read pool (io/readpool): how long after an urgent read guesses begin one
// at a time.
const urgentGap = int64(50 * time.Millisecond)

// urgentPause is likewise: how long after an urgent read that somebody waited for nothing begins
// that is not urgent.
const urgentPause = int64(4 * time.Millisecond)

// reading is a read that was asked for.
type reading struct {
	step stages.Step // that asked
	read stages.Read
	rank stages.Rank
	// guess says that it was asked for on a guess, whatever its rank is by now
	guess   bool
	working bool // the device worked when it was asked for
	// of is the recorded step that it is for; 0: none
	of                                uint64
	askedNS, beganNS, endedNS, wanted int64
	left                              float64 // of its work, in usual reads
}

// disk is the read pool and the disk below it. Its rules of who begins are those of io/readpool.
type disk struct {
	e           *engine
	workers     int
	speculative int

	queue    [ranks][]*reading // by index: the highest rank first
	hurried  [ranks][]*reading // that have come to a higher rank, in order
	taken    []*reading        // by workers
	running  []*reading        // of those, that have begun
	held     int               // workers that run the line
	urgent   int               // of taken
	urgentNS int64             // when an urgent one ended last; -1: none
	pausedNS int64             // until when others do not begin after one that somebody waited for
	since    int64
	version  uint64
	spent    bool // an urgent read has ended
}

func index(r stages.Rank) int { return int(stages.UrgentRead - r) }

// ask queues the reads of a group, which a stage asked for at a time.
func (d *disk) ask(g *stages.ReadGroup, at int64) {
	for _, r := range g.Reads {
		n := &reading{step: g.Step, read: r, rank: g.Rank, guess: g.Rank.Speculative(), askedNS: at, of: d.e.laws.source(&g.Step), working: d.e.device.current != nil}
		if !n.guess {
			n.wanted = at
		}
		d.queue[index(g.Rank)] = append(d.queue[index(g.Rank)], n)
	}
	d.begin(false)
}

// hurry gives a read that has not begun a higher rank.
func (d *disk) hurry(h stages.Hurry) {
	is := func(r *reading) bool { return r.read.Slot == h.Slot && r.read.Gen == h.Gen }
	if i := slices.IndexFunc(d.taken, is); i >= 0 {
		d.taken[i].want(d.e.now)
		return
	}
	for at := index(h.Rank) + 1; at < ranks; at++ {
		for _, list := range []*[]*reading{&d.hurried[at], &d.queue[at]} {
			if i := slices.IndexFunc(*list, is); i >= 0 {
				r := (*list)[i]
				*list = slices.Delete(*list, i, i+1)
				r.rank = h.Rank
				r.want(d.e.now)
				d.hurried[index(h.Rank)] = append(d.hurried[index(h.Rank)], r)
				d.begin(false)
				return
			}
		}
	}
}

// recall ends a guess that has not begun.
func (d *disk) recall(h stages.Recall) {
	for _, r := range []stages.Rank{stages.GuessRead, stages.UrgentGuess} {
		list := &d.queue[index(r)]
		i := slices.IndexFunc(*list, func(r *reading) bool { return r.read.Slot == h.Slot && r.read.Gen == h.Gen })
		if i < 0 {
			continue
		}
		n := (*list)[i]
		*list = slices.Delete(*list, i, i+1)
		n.endedNS = d.e.now
		d.e.post(stages.ExpertIO, &stages.ExpertsRead{
			Step: n.step, Speculative: n.guess, Results: []stages.ReadResult{{Slot: h.Slot, Gen: h.Gen, EndedNS: n.endedNS, Err: stages.ErrRecalled}},
		})
		return
	}
}

func (r *reading) want(now int64) {
	if r.wanted == 0 {
		r.wanted = now
	}
}

// next removes and returns the read that a worker takes now, or nil.
func (d *disk) next() *reading {
	if len(d.taken)+d.held >= d.workers {
		return nil
	}
	for at := range ranks {
		list := &d.hurried[at]
		if len(*list) == 0 {
			list = &d.queue[at]
		}
		if len(*list) == 0 {
			continue
		}
		if !d.mayBegin((*list)[0].rank) {
			return nil
		}
		r := (*list)[0]
		*list = slices.Delete(*list, 0, 1)
		return r
	}
	return nil
}

func (d *disk) mayBegin(r stages.Rank) bool {
	most := d.workers
	switch {
	case !r.Urgent() && (d.urgent > 0 || d.e.now < d.pausedNS):
		return false
	case r == stages.GuessRead && d.spent && d.e.now-d.urgentNS < urgentGap:
		most = 1
	case r.Speculative():
		most = d.speculative
	}
	return len(d.taken) < most
}

// begin lets workers take what they may. Those that slept begin some time after the read was asked
// for.
func (d *disk) begin(awake bool) {
	for r := d.next(); r != nil; r = d.next() {
		d.taken = append(d.taken, r)
		if r.rank.Urgent() {
			d.urgent++
		}
		at := d.e.now
		if !awake {
			at = max(at, r.askedNS+int64(d.e.laws.lag(r, r.working)))
		}
		d.e.at(at, func() {
			r.beganNS = d.e.now
			r.left = d.e.laws.work(r)
			d.progress()
			d.running = append(d.running, r)
			d.e.device.reading(true)
			d.plan()
		})
	}
}

// progress notes what is done of the running reads: all have the same share of the disk.
func (d *disk) progress() {
	if n := len(d.running); n > 0 {
		done := float64(d.e.now-d.since) / d.e.laws.disk.usual(n)
		for _, r := range d.running {
			r.left -= done
		}
	}
	d.since = d.e.now
}

// plan has the read end that will end first.
func (d *disk) plan() {
	d.version++
	if len(d.running) == 0 {
		return
	}
	v, first := d.version, d.running[0]
	for _, r := range d.running {
		if r.left < first.left {
			first = r
		}
	}
	ns := math.Round(max(first.left, 0) * d.e.laws.disk.usual(len(d.running)))
	d.e.at(d.e.now+int64(ns), func() {
		if d.version == v {
			d.end(first)
		}
	})
}

func (d *disk) end(r *reading) {
	d.progress()
	r.endedNS = d.e.now
	is := func(o *reading) bool { return o == r }
	d.running = slices.DeleteFunc(d.running, is)
	d.taken = slices.DeleteFunc(d.taken, is)
	if len(d.running) == 0 {
		d.e.device.reading(false)
	}
	if r.rank.Urgent() {
		d.urgent--
		d.urgentNS, d.spent = d.e.now, true
	}
	if r.rank == stages.UrgentRead {
		d.pausedNS = d.e.now + urgentPause
		d.e.at(d.pausedNS, func() { d.begin(false) })
	}
	d.plan()
	if d.e.watch.read != nil {
		d.e.watch.read(r)
	}
	d.held++ // the worker tells of it, and runs the line if nobody does
	d.begin(false)
	d.e.whoPosts(func() {
		d.e.post(stages.ExpertIO, &stages.ExpertsRead{
			Step: r.step, Speculative: r.guess, Results: []stages.ReadResult{{Slot: r.read.Slot, Gen: r.read.Gen, BeganNS: r.beganNS, EndedNS: r.endedNS, PlacedNS: r.endedNS}},
		})
	}, func() {
		d.held--
		d.begin(true)
	})
}
