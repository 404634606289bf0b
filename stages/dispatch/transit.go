package dispatch

import (
	"math/bits"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// transitPicks is how many picks a step has for each expert of a layer, at least, for far experts
// to be copied before the layer. With fewer the device reads hardly any of them twice.
const transitPicks = 8

// transit is where far experts of large steps are copied to, a layer ahead: the kernels of many
// rows read weights several times, and over the bus that would cost more than one copy. The layers
// use its two halves by turns, one for what a layer reads while the other is filled for the next
// one.
type transit struct {
	first  stages.SlotID // of the slots
	tables *tables       // as those of the device, but far experts lie in a half
	halves [gpu.FetchLanes]transitHalf
}

// transitHalf is a half as what is submitted next will find it. It serves the step that had it
// filled alone, so that nobody reads what a copy of a failed step has left there.
type transitHalf struct {
	step  stages.StepID
	layer int      // with routed experts, the how-manieth; -1: none
	has   []uint64 // its experts; see stages.NearSets
}

// newTransit writes the tables, of which all experts are far, and waits for the device.
func newTransit(
	cfg Config, net *network, parts []*part, queue gpu.Queue, slots Slots,
) (t *transit, err error) {
	t = &transit{first: cfg.Transit}
	words := stages.NearWords(cfg.Model.NumExperts)
	for i := range t.halves {
		t.halves[i] = transitHalf{layer: -1, has: make([]uint64, words)}
	}
	at := func(layer, expert int) gpu.View { return slots.View(t.slot(cfg, layer, expert)) }
	t.tables, err = newTables(cfg, net, parts, queue, at)
	return t, err
}

// slot returns where an expert of a layer is copied to.
func (t *transit) slot(cfg Config, layer, expert int) stages.SlotID {
	half := cfg.Model.Layers[layer].MoEIndex % len(t.halves)
	return t.first + stages.SlotID(half*cfg.Model.NumExperts+expert)
}

// large reports whether a step's far experts are copied before they are needed. Urgent steps may
// overtake others, which the halves belong to.
func (c *Core) large(l *lane, b *stages.Batch) bool {
	if c.transit == nil || b.Urgent || l.probed {
		return false
	}
	return l.rows*c.cfg.TopK >= transitPicks*c.cfg.Model.NumExperts
}

// fetchAhead has the far experts of a layer copied, unless they were, and those of the next one,
// whose half nothing reads by now.
func (c *Core) fetchAhead(cmd *gpu.Commands, step stages.StepID, layer int) {
	n := c.cfg.Model.Layers[layer].MoEIndex
	c.fetch(cmd, step, n)
	if n+1 < len(c.moe) {
		c.fetch(cmd, step, n+1)
	}
}

// fetch has the far experts of the n-th layer with routed experts copied to its half, unless they
// are there.
func (c *Core) fetch(cmd *gpu.Commands, step stages.StepID, n int) {
	words := len(c.transit.halves[0].has)
	near, lane := c.near.sure[n*words:(n+1)*words], n%gpu.FetchLanes
	h := &c.transit.halves[lane]
	there := h.layer == n && h.step == step
	for i, set := range near {
		there = there && c.all(i)&^set&^h.has[i] == 0
	}
	if there {
		return
	}
	h.layer, h.step = n, step
	for i, set := range near {
		h.has[i] = c.all(i) &^ set
	}
	if copies := c.farCopies(c.moe[n], h.has); len(copies) > 0 {
		gpu.Encode(cmd, gpu.Fetch{Lane: lane, Copies: copies})
	}
}

// all returns the set of all experts, a word of it.
func (c *Core) all(word int) uint64 {
	if n := c.cfg.Model.NumExperts - 64*word; n < 64 {
		return 1<<n - 1
	}
	return ^uint64(0)
}

// farCopies lists the copies of a set of experts. Neighbours that lie as far apart here as there
// are copied together.
func (c *Core) farCopies(layer int, set []uint64) (copies []gpu.HostCopy) {
	size := c.cfg.RecordBytes
	var from, to gpu.View // of the last expert
	for i, word := range set {
		for ; word != 0; word &= word - 1 {
			e := 64*i + bits.TrailingZeros64(word)
			src := c.slots.View(stages.SlotID(layer*c.cfg.Model.NumExperts + e))
			dst := c.slots.View(c.transit.slot(c.cfg, layer, e))
			more := src.Offset - from.Offset
			together := src.Buf == from.Buf && dst.Buf == to.Buf && more == dst.Offset-to.Offset
			if together && more > 0 && more < 2*size {
				x := &copies[len(copies)-1]
				x.Src = x.Src[:len(x.Src)+more]
			} else {
				mem := src.Buf.Bytes()[src.Offset:][:size]
				copies = append(copies, gpu.HostCopy{Dst: dst, Src: mem})
			}
			from, to = src, dst
		}
	}
	return copies
}
