package expertio

import (
	"math"

	"github.com/moeflux/moeflux-actor/stages"
)

const (
	// manyRows is where the times of prompts are kept apart from those of decoding.
	manyRows = 16
	// farAhead bounds the layers ahead that are told apart.
	farAhead = 3
	// slotCost is what a read for nothing costs even while the disk has nothing else to do, in
	// reads: it takes another expert's slot.
	slotCost = 0.25
	// fewReads is how many reads must have ended before their time is believed.
	fewReads = 8
	// halfLife is the time after which what was measured of the disk counts half, in nanoseconds.
	halfLife = 2e9
	// idleNS is the time without reads after which nobody can be at work.
	idleNS = 50e6
	// newest is the share of the newest sample in an average of samples.
	newest = 0.25
)

// pace is what experience tells of time: how long the disk takes, and how long it is from a hint to
// when its layer is due. Its clock is the times at which messages were sent; where they carry none
// it knows nothing. All times are nanoseconds.
type pace struct {
	now           int64
	reads, demand int // under way; of these, on demand or urgent by now

	// time that has passed; with reads under way; with demand reads under way
	all, busy, wanted float64
	done              float64 // reads that have ended

	layers []layerPace
}

// layerPace is one layer's, for a few rows and for many.
type layerPace struct {
	lead   [2][farAhead + 1]float64 // from a hint so many layers ahead to the plan; 0 for not known
	misses [2]float64               // demand reads a visit
	seen   int64                    // misses until the last visit
	crowd  int                      // of the last visit: 0 for few rows, 1 for many
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

// tick moves the clock to when a message was sent; its head may be nil.
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
		if !groups[i].Speculative {
			p.demand += n
		}
	}
}

// urged notes that somebody has come to wait for a read on a guess.
func (p *pace) urged() { p.demand++ }

// ended notes the end of a read.
func (p *pace) ended(demand bool) {
	p.reads--
	p.done++
	if demand {
		p.demand--
	}
}

// foretold notes a hint and returns when its layer is due, as a key of the experience.
func (p *pace) foretold(m *stages.PrefetchExperts) due {
	d := due{sentNS: m.SentNS, step: m.ID, wraps: m.Ahead > m.Layer, crowd: crowd(m.Batch)}
	p.layers[m.Layer].hints[min(m.Ahead, farAhead)] = d
	return d
}

// routed notes that a layer is due, and how many demand reads of it there were in all before.
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

// room returns how many reads the disk can do before a hint's layer is due, beyond those that go
// first.
func (p *pace) room(m *stages.PrefetchExperts, d due) float64 {
	lead := p.layers[m.Layer].lead[d.crowd][min(m.Ahead, farAhead)]
	if lead == 0 || p.done < fewReads || p.busy == 0 {
		return math.Inf(1)
	}
	room := lead*p.done/p.busy - float64(p.reads)
	for layer := max(0, m.Layer-m.Ahead+1); layer < m.Layer; layer++ {
		room -= p.layers[layer].misses[d.crowd]
	}
	return room
}

// cost returns what a read for nothing takes from others, in reads.
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
