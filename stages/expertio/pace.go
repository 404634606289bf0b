package expertio

import (
	"math"

	"github.com/moeflux/moeflux-actor/stages"
)

const (
	// manyRows separates prompts from decoding: steps of more rows have times of their own.
	manyRows = 16
	// farAhead is the largest distance of a hint, in layers, that has times of its own.
	farAhead = 3
	// slotCost is what a useless read costs even while the disk is idle, in reads: it takes another
	// expert's slot.
	slotCost = 0.25
	// fewReads is how many reads must have ended before their times are used.
	fewReads = 8
	// halfLife is the time, in nanoseconds, after which measurements of the disk count half.
	halfLife = 2e9
	// idleNS is a time without reads after which the engine must have been idle, in nanoseconds.
	idleNS = 50e6
	// newest is the share of the newest sample in an average of samples.
	newest = 0.25
)

// pace measures how long the disk takes, and how long after a hint its layer is due. Its clock is
// the time at which messages were sent; if they carry no time it knows nothing. All times are in
// nanoseconds.
type pace struct {
	now           int64
	reads, demand int // reads under way; those of them that are on demand or urgent

	// time passed; time with reads under way; time with demand reads under way
	all, busy, wanted float64
	done              float64 // reads that have ended

	layers []layerPace
}

// layerPace is the pace of one layer, for few rows and for many.
type layerPace struct {
	lead   [2][farAhead + 1]float64 // from a hint to the plan, by layers ahead; 0 if unknown
	misses [2]float64               // demand reads for each plan of the layer
	seen   int64                    // misses until the last plan
	crowd  int                      // of the last plan: 0 for few rows, 1 for many
	hints  [farAhead + 1]due
}

// due is a hint whose layer is not routed yet.
type due struct {
	sentNS int64 // 0: none
	step   stages.StepID
	wraps  bool // the layer is one of the next step
	crowd  int
}

func newPace(layers int) pace { return pace{layers: make([]layerPace, layers)} }

// tick moves the clock to the time at which a message was sent. Its head may be nil.
func (p *pace) tick(head *stages.Step) {
	if head == nil || head.SentNS <= p.now {
		return
	}
	d, first := float64(head.SentNS-p.now), p.now == 0
	p.now = head.SentNS
	if first || p.reads == 0 && d > idleNS {
		return
	}
	p.all += d
	if p.reads > 0 {
		p.busy += d
	}
	if p.demand > 0 {
		p.wanted += d
	}
	if p.all > halfLife {
		p.all, p.busy, p.wanted, p.done = p.all/2, p.busy/2, p.wanted/2, p.done/2
	}
}

// asked notes reads that begin.
func (p *pace) asked(groups []stages.ReadGroup) {
	for i := range groups {
		n := len(groups[i].Reads)
		p.reads += n
		if !groups[i].Rank.Speculative() {
			p.demand += n
		}
	}
}

// urged notes that a load has come to wait for a speculative read.
func (p *pace) urged() { p.demand++ }

// ended notes the end of a read.
func (p *pace) ended(demand bool) {
	p.reads--
	p.done++
	if demand {
		p.demand--
	}
}

// predicted notes a hint and returns what room needs to know about it.
func (p *pace) predicted(m *stages.PrefetchExperts) due {
	d := due{sentNS: m.SentNS, step: m.ID, wraps: m.Ahead > m.Layer, crowd: crowd(m.Batch)}
	p.layers[m.Layer].hints[min(m.Ahead, farAhead)] = d
	return d
}

// routed notes that a layer is due. misses counts all demand reads of the layer so far.
func (p *pace) routed(m *stages.LayerRouted, misses int64) {
	l := &p.layers[m.Layer]
	l.misses[l.crowd] += newest * (float64(misses-l.seen) - l.misses[l.crowd])
	l.seen, l.crowd = misses, crowd(m.Batch)
	for ahead := range l.hints {
		h := &l.hints[ahead]
		if h.sentNS == 0 || h.step != m.ID && !h.wraps {
			continue
		}
		lead := &l.lead[h.crowd][ahead]
		if d := float64(m.SentNS - h.sentNS); d > 0 && *lead == 0 {
			*lead = d
		} else if d > 0 {
			*lead += newest * (d - *lead)
		}
		*h = due{}
	}
}

// room returns how many more reads the disk can do before a hint's layer is due, after so many
// guesses under way that go first. What the layers before it miss puts off the layer by as much as
// these reads: only what they usually miss, which is in the time that is known, is to be taken off.
func (p *pace) room(m *stages.PrefetchExperts, d due, before int) float64 {
	lead := p.layers[m.Layer].lead[d.crowd][min(m.Ahead, farAhead)]
	if lead == 0 || p.done < fewReads || p.busy == 0 {
		return math.Inf(1)
	}
	room := lead*p.done/p.busy - float64(before)
	for layer := max(0, m.Layer-m.Ahead); layer < m.Layer; layer++ {
		room -= p.layers[layer].misses[d.crowd]
	}
	return room
}

// readNS returns how long the disk takes for a record while it is kept busy; 0 if that is not
// known.
func (p *pace) readNS() float64 {
	if p.done < fewReads {
		return 0
	}
	return p.busy / p.done
}

// cost returns what a useless read takes from other reads, in reads.
func (p *pace) cost() float64 {
	if p.all == 0 {
		return slotCost
	}
	return slotCost + p.wanted/p.all
}

func crowd(b *stages.Batch) int {
	if b != nil && len(b.Rows) > manyRows {
		return 1
	}
	return 0
}
