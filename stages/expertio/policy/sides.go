package policy

// expectations are the calls of Expect on one side.
type expectations struct {
	chance []float64 // [layers·experts]
	listed []bool    // [layers·experts]: whether it is in its layer's list
	lists  [][]int32 // [layers]: keys that Expect was called for
}

func newExpectations(layers, experts int) expectations {
	x := expectations{chance: make([]float64, layers*experts), listed: make([]bool, layers*experts), lists: make([][]int32, layers)}
	for i := range x.lists {
		x.lists[i] = make([]int32, 0, experts)
	}
	return x
}

// Expect records that a step of this side will need the expert soon with this chance, 0 to 1. The
// chance holds until Hold on this side, Remove, or the side's next Visit of the layer. It keeps an
// expert that was read ahead until its turn, and an expert of a later wave of a prompt until that
// wave holds it.
func (o *Order) Expect(side Side, key int, chance float64) {
	if !(chance > 0) {
		return
	}
	x, at := &o.expect[side], key/o.experts
	if !x.listed[key] {
		x.listed[key] = true
		x.lists[at] = append(x.lists[at], int32(key))
	}
	x.chance[key] = max(x.chance[key], min(1, chance))
	o.raised(at, key)
}

// met ends what Expect said of an expert on one side.
func (o *Order) met(side Side, key int) {
	x := &o.expect[side]
	if x.chance[key] == 0 {
		return
	}
	x.chance[key] = 0
	if i := o.place[key]; i >= 0 {
		o.up(key/o.experts, int(i))
		o.look(key / o.experts)
	}
}

// forget ends what Expect said of a layer's experts.
func (x *expectations) forget(at int) {
	for _, k := range x.lists[at] {
		x.chance[k], x.listed[k] = 0, false
	}
	x.lists[at] = x.lists[at][:0]
}

// beside tells whether ordinary steps run beside urgent ones. They do from the moment at which an
// urgent visit comes between two visits of one ordinary step, until one of the sides pauses.
type beside struct {
	layers   int
	on       bool
	at       int // the layer of the last ordinary visit
	urgent   int // visits since that one
	ordinary int // visits since the last urgent one
}

// pausePasses is how many passes of urgent steps, with none of an ordinary one, are a pause of
// ordinary steps. For these one pass is a pause of the others, since each is long.
const pausePasses = 32

// counts notes a visit, and reports whether it counts.
func (b *beside) counts(side Side, at int) bool {
	if side == Urgent {
		b.urgent++
		if b.urgent > pausePasses*b.layers {
			b.on = false
		}
		return true
	}
	if b.urgent == 0 {
		b.ordinary++
	} else {
		b.ordinary = 0
	}
	switch {
	case b.ordinary >= b.layers:
		b.on = false
	case b.urgent > 0 && at > b.at: // else the urgent steps may have ended before this step began
		b.on = true
	}
	b.urgent, b.at = 0, at
	return !b.on
}
