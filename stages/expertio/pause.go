package expertio

import (
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/expertio/policy"
)

const (
	// pauseRows is the number of rows in each half of the window by which speculation is judged.
	pauseRows = 32
	// The first pause lasts firstPause rows. Each time that the trial after a pause fails, the next
	// one lasts twice as long, up to longestPause.
	firstPause, longestPause = 64, 2048
	// fewWasted is how many wasted reads are too few to judge by.
	fewWasted = 4
	// lateSaves is the share of its time that a read saves if it is still under way when needed.
	lateSaves = 0.5
)

// pause keeps one layer's speculation, for steps of one side, from costing more than it saves.
type pause struct {
	rows          int        // of the window's newer half
	saved, wasted [2]float64 // reads, in the newer and in the older half
	left          int        // rows until the pause ends
	next          int        // how long the next pause will be; 0 means firstPause
}

// pauses are one layer's, by side: what is guessed for a prompt beside a text that decodes says
// nothing about what is guessed for that text.
type pauses [2]pause

// any reports whether speculation for one of the sides is paused.
func (p *pauses) any() bool { return p[policy.Ordinary].on() || p[policy.Urgent].on() }

// on reports whether speculation is paused.
func (p *pause) on() bool { return p.left > 0 }

// visit notes that the layer was routed for some rows and reports whether a pause begins or ends
// with that. cost is what a wasted read takes from other reads, in reads.
func (p *pause) visit(rows int, cost float64) (begins, ends bool) {
	if p.left > 0 {
		p.left = max(0, p.left-rows)
		if p.left == 0 {
			p.rows, p.saved, p.wasted = 0, [2]float64{}, [2]float64{}
		}
		return false, p.left == 0
	}
	if p.rows += rows; p.rows < pauseRows {
		return false, false
	}
	saved, wasted := p.saved[0]+p.saved[1], p.wasted[0]+p.wasted[1]
	p.rows, p.saved, p.wasted = 0, [2]float64{0, p.saved[0]}, [2]float64{0, p.wasted[0]}
	switch {
	case wasted >= fewWasted && wasted*cost > saved:
		p.left = max(firstPause, p.next)
		p.next = min(2*p.left, longestPause)
		return true, false
	case saved > 0:
		p.next = 0
	}
	return false, false
}

// judge notes that a layer is due. It may begin or end a pause of the layer's speculation.
func (c *Core) judge(m *stages.LayerRouted, out *stages.Outbox) {
	p, st := &c.pauses[m.Layer][side(&m.Step)], &c.layers[m.Layer]
	c.pace.routed(m, st.Misses)
	if c.cfg.Mapped || m.Batch == nil {
		return
	}
	saved, wasted, cost := p.saved[0]+p.saved[1], p.wasted[0]+p.wasted[1], c.pace.cost()
	switch begins, ends := p.visit(len(m.Batch.Rows), cost); {
	case begins:
		st.PrefetchPauses++
		out.Notes = append(out.Notes, stages.Note{Text: "speculation paused", Args: []any{
			"layer", m.Layer, "urgent", m.Batch.Urgent, "rows", p.left, "reads_saved", saved, "reads_wasted", wasted, "cost_of_one", cost,
		}})
	case ends:
		out.Notes = append(out.Notes, stages.Note{Text: "speculation is tried again", Args: []any{"layer", m.Layer, "urgent", m.Batch.Urgent}})
	}
}
