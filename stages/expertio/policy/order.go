package policy

import (
	"errors"
	"fmt"
)

const (
	defaultShort, defaultLong, defaultPopular = 6, 64, 1024
	// anew is the share of its popularity that is the least chance of an expert: what is used fades
	// with a subject, and the next one needs popular experts again.
	anew                     = 0.1
	minHalfLife, maxHalfLife = 0.125, 1 << 20
	// maxKeys bounds layers times experts: keys are int32 in the heaps.
	maxKeys = 1 << 30
	// least stands for all smaller chances. Its inverse still leaves a distance enough digits in a
	// sum.
	least = 1e-9
	// better is the factor by which an estimate's error must be below the other's to replace it.
	better = 0.99
)

// Config sizes an Order.
type Config struct {
	// Layers is the number of layers with routed experts, Experts the number in each.
	Layers, Experts int
	// Short and Long are the half-lives of a use, in rows, of the two estimates. 0 means 6 and 64.
	// A shorter one follows a change of subject sooner; a longer one better tells which experts are
	// popular throughout. If both are equal there is one estimate.
	Short, Long float64
	// Popular is the half-life, in rows, of the uses by which experts that the text has left are
	// told apart. 0 means 1024. All rows count for it, those of prompts beside urgent steps, too.
	Popular float64
}

// Validate reports every invalid field in one error.
func (c Config) Validate() error {
	var errs []error
	if c.Layers < 1 || c.Experts < 1 || c.Layers > maxKeys/max(1, c.Experts) {
		errs = append(errs, fmt.Errorf("policy: %d layers of %d experts; there must be 1 or more of each, and at most %d experts in all", c.Layers, c.Experts, maxKeys))
	}
	for _, h := range []float64{c.Short, c.Long, c.Popular} {
		if h != 0 && !(h >= minHalfLife && h <= maxHalfLife) {
			errs = append(errs, fmt.Errorf("policy: half-life of %g rows, must be %g to %d", h, minHalfLife, maxHalfLife))
		}
	}
	return errors.Join(errs...)
}

// Side says for which steps a call is. Urgent and ordinary steps go through the model side by side:
// what is expected on one side, a visit on the other does not end.
type Side uint8

// The sides.
const (
	Ordinary Side = iota
	Urgent
	sides int = iota
)

// Order holds the experts that may leave their slots, keyed layer·Experts + expert, and the use of
// all experts. The same calls lead to the same decisions, and nothing is allocated after New. An
// Order must not be used by several goroutines at once. A key out of range panics.
type Order struct {
	experts int
	of      []estimate // one or two
	by      *estimate  // the one in use
	popular estimate
	now     int // the layer visited last
	n       int // experts that may leave
	layers  []layer
	expect  [sides]expectations
	beside  beside
	place   []int32 // [layers·experts]: the place in its layer's heap; -1 if it is not there
	// wait holds, for each layer, how many passes its first expert is expected to wait after the
	// layer's next visit; -1 for none. It is apart from the layers because Evict runs through all
	// of it.
	wait []float64
	// [layers]: passes until the next layer's visit, that of the layer after it, and so on
	turn []float64
}

// layer holds the experts of one layer that may leave, as a heap: the least value first, and
// usually the smaller key first among equals.
type layer struct {
	heap   []int32 // keys
	rows   float64 // of the last visit
	counts bool    // the last visit is one of those that count for all estimates
	stale  bool    // the heap is to be ordered anew
	anew   float64 // what a score of popularity counts as, in scores of the estimate in use
}

// New returns an empty Order.
func New(c Config) (*Order, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Short == 0 {
		c.Short = defaultShort
	}
	if c.Long == 0 {
		c.Long = defaultLong
	}
	if c.Popular == 0 {
		c.Popular = defaultPopular
	}
	keys := c.Layers * c.Experts
	o := &Order{
		experts: c.Experts, now: c.Layers - 1, layers: make([]layer, c.Layers),
		place: make([]int32, keys), wait: make([]float64, c.Layers), turn: make([]float64, c.Layers),
		beside: beside{layers: c.Layers, at: c.Layers}, popular: newEstimate(c.Layers, c.Experts, c.Popular),
	}
	for i := range o.expect {
		o.expect[i] = newExpectations(c.Layers, c.Experts)
	}
	o.of = append(o.of, newEstimate(c.Layers, c.Experts, c.Short))
	if c.Long != c.Short {
		o.of = append(o.of, newEstimate(c.Layers, c.Experts, c.Long))
	}
	o.by = &o.of[0]
	for i := range o.layers {
		o.layers[i] = layer{heap: make([]int32, 0, c.Experts), rows: 1, counts: true, anew: anew}
		o.wait[i] = -1
		o.turn[i] = float64(i+1) / float64(c.Layers)
	}
	for k := range o.place {
		o.place[k] = -1
	}
	return o, nil
}

// Visit records that the layer's router has picked experts for this many rows, 1 or more. Earlier
// uses of the layer's experts age by as many rows, and earlier calls of Expect for them on this
// side no longer count. Calls of Use name the picks.
//
// Beside urgent steps an ordinary visit counts for nothing but the popularity of experts: other
// uses do not age by it, and calls of Use add nothing to them until the next visit. A prompt uses
// nearly all experts of a layer each time, so what matters to it is that some of them stay, and not
// which. And what the others use would be forgotten in one visit.
func (o *Order) Visit(side Side, at, rows int) {
	if at <= o.now {
		o.choose()
	}
	o.now = at
	o.expect[side].forget(at)
	l := &o.layers[at]
	l.rows = float64(max(1, rows))
	o.popular.visit(at, l.rows)
	if l.counts = o.beside.counts(side, at); l.counts {
		for i := range o.of {
			o.of[i].visit(at, l.rows)
		}
	}
	o.aged(at)
}

// aged notes that the estimates of a layer have aged, each at its own pace, so that the order of
// its experts may have changed.
func (o *Order) aged(at int) {
	l := &o.layers[at]
	l.stale = true
	l.anew = anew * o.by.layers[at].weight / o.popular.layers[at].weight
}

// choose selects the estimate that predicted the latest picks best.
func (o *Order) choose() {
	best := o.by
	for i := range o.of {
		if o.of[i].loss < better*best.loss {
			best = &o.of[i]
		}
	}
	if best == o.by {
		return
	}
	o.by = best
	for at := range o.layers {
		o.aged(at)
	}
}

// Use records how many rows of its layer's last visit, 1 or more, picked the expert, whether or not
// it may leave or is in memory at all. It is called once a visit for each picked expert.
func (o *Order) Use(key, rows int) {
	at := key / o.experts
	l := &o.layers[at]
	share := min(1, float64(max(1, rows))/l.rows)
	o.popular.use(at, key, share)
	if l.counts {
		for i := range o.of {
			o.of[i].use(at, key, share)
		}
	}
	o.raised(at, key)
}

// Seed sets the estimate of an expert to a chance of use, 0 to 1, known from an earlier run. It
// ages like any other.
func (o *Order) Seed(key int, chance float64) {
	if !(chance >= 0) {
		chance = 0
	}
	at := key / o.experts
	o.popular.set(at, key, min(1, chance)*o.popular.layers[at].weight)
	for i := range o.of {
		o.of[i].set(at, key, min(1, chance)*o.of[i].layers[at].weight)
	}
	if i := o.place[key]; i >= 0 {
		o.up(at, int(i))
	}
	o.raised(at, key)
}

// Chance returns the estimate that the next row of the expert's layer picks it, 0 to 1.
func (o *Order) Chance(key int) float64 {
	at := key / o.experts
	return min(1, o.value(at, int32(key))/o.by.layers[at].weight)
}

// Len returns how many experts may leave.
func (o *Order) Len() int { return o.n }

// Add records that the expert may leave: it is in a slot and not in use. Adding it again changes
// nothing.
func (o *Order) Add(key int) {
	if o.place[key] >= 0 {
		return
	}
	at := key / o.experts
	l := &o.layers[at]
	o.place[key] = int32(len(l.heap))
	l.heap = append(l.heap, int32(key))
	o.n++
	o.up(at, len(l.heap)-1)
	o.look(at)
}

// Hold records that a step has the expert, which must stay. It ends what Expect said on the step's
// side.
func (o *Order) Hold(side Side, key int) {
	o.met(side, key)
	o.remove(key)
}

// Remove records that the expert must stay or is gone, and ends what Expect said.
func (o *Order) Remove(key int) {
	for side := range o.expect {
		o.met(Side(side), key)
	}
	o.remove(key)
}

// remove takes an expert out of its heap.
func (o *Order) remove(key int) {
	at, i := key/o.experts, int(o.place[key])
	if i < 0 {
		return
	}
	l := &o.layers[at]
	last := len(l.heap) - 1
	moved := l.heap[last]
	l.heap = l.heap[:last]
	o.place[key] = -1
	o.n--
	if i < last {
		l.heap[i], o.place[moved] = moved, int32(i)
		o.down(at, i)
		o.up(at, int(o.place[moved]))
	}
	o.look(at)
}

// Evict removes the expert that should leave and returns its key; false if none may.
func (o *Order) Evict() (key int, ok bool) {
	if key, ok = o.Next(); ok {
		o.Remove(key)
	}
	return key, ok
}

// Next returns the expert that Evict would remove; false if none may leave.
func (o *Order) Next() (key int, ok bool) {
	for at := range o.layers {
		if o.layers[at].stale {
			o.heapify(at)
			o.look(at)
		}
	}
	best, longest := -1, -1.0
	// The layers after the one visited last come first; that one itself waits a whole pass.
	next := o.now + 1
	for i, d := range o.turn[:len(o.wait)-next] {
		if w := o.wait[next+i]; w >= 0 && w+d > longest {
			best, longest = next+i, w+d
		}
	}
	for i, d := range o.turn[len(o.wait)-next:] {
		if w := o.wait[i]; w >= 0 && w+d > longest {
			best, longest = i, w+d
		}
	}
	if best < 0 {
		return -1, false
	}
	return int(o.layers[best].heap[0]), true
}

// look updates a layer's wait.
func (o *Order) look(at int) {
	h := o.layers[at].heap
	if len(h) == 0 {
		o.wait[at] = -1
		return
	}
	p := min(1, o.value(at, h[0])/o.by.layers[at].weight)
	o.wait[at] = 1/max(p, least) - 1
}
