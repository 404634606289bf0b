package policy

import (
	"errors"
	"fmt"
	"math"
)

const (
	defaultHalfLife = 8
	maxHalfLife     = 1 << 20
	// maxKeys bounds layers times experts: keys are int32 in the heaps.
	maxKeys = 1 << 30

	// least is the chance that stands for all smaller ones. Its inverse and a distance still add up exactly enough.
	least = 1e-9
	// maxWeight is where a layer's scores are scaled down, far below the largest float64.
	maxWeight = 0x1p512
)

// Config sizes an Order.
type Config struct {
	// Layers is the layers with routed experts, Experts the experts of each.
	Layers, Experts int
	// HalfLife is the rows after which a use counts half. 0 means 8. Shorter forgets a change of subject sooner, longer
	// tells experts that are popular throughout better from those that are not.
	HalfLife float64
}

// Validate reports every field that cannot be, in one error.
func (c Config) Validate() error {
	var errs []error
	if c.Layers < 1 || c.Experts < 1 || c.Layers > maxKeys/max(1, c.Experts) {
		errs = append(errs, fmt.Errorf("policy: %d layers of %d experts, want 1 or more of each and %d together at most", c.Layers, c.Experts, maxKeys))
	}
	if c.HalfLife != 0 && !(c.HalfLife >= 0.125 && c.HalfLife <= maxHalfLife) {
		errs = append(errs, fmt.Errorf("policy: half-life of %g rows, want 0.125 to %d", c.HalfLife, maxHalfLife))
	}
	return errors.Join(errs...)
}

// Order holds the experts that may leave their slots, keyed layer·Experts + expert, and what is known of the use of all. It takes the same
// decisions for the same calls, and allocates nothing after New. It is not for several goroutines at once. A key outside the
// range panics.
type Order struct {
	experts int
	life    float64 // half-life in rows
	now     int     // layer that was visited last
	n       int     // experts that may leave
	layers  []layer
	score   []float64 // [layers·experts]: Σ of the shares of rows that used it, each times the weight of its time
	hope    []float64 // [layers·experts]: the score that Expect lends
	lent    []bool    // [layers·experts]: is in its layer's list of expected ones
	place   []int32   // [layers·experts]: where in its layer's heap, -1 for not in it
	// wait is of each layer the passes that its first expert is expected to wait, after the layer's next visit; -1 for none. Kept
	// apart from the layers, for Evict runs through all of it.
	wait []float64
	turn []float64 // [layers]: passes until the next visit of the layer so many behind the next one
}

// layer is the experts of one layer that may leave, as a heap: the least score first, of equal ones the smaller key.
type layer struct {
	heap     []int32 // keys
	weight   float64 // of a use now: doubles every half-life
	gain     float64 // what a use by all rows of the last visit added
	rows     float64 // of the last visit
	expected []int32 // keys that Expect lent to
}

// New returns an Order that holds nothing and knows nothing.
func New(c Config) (*Order, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.HalfLife == 0 {
		c.HalfLife = defaultHalfLife
	}
	keys := c.Layers * c.Experts
	o := &Order{
		experts: c.Experts, life: c.HalfLife, now: c.Layers - 1,
		layers: make([]layer, c.Layers), wait: make([]float64, c.Layers), turn: make([]float64, c.Layers),
		score: make([]float64, keys), hope: make([]float64, keys), lent: make([]bool, keys), place: make([]int32, keys),
	}
	for i := range o.layers {
		o.layers[i] = layer{heap: make([]int32, 0, c.Experts), expected: make([]int32, 0, c.Experts), weight: 1, rows: 1}
		o.wait[i] = -1
		o.turn[i] = float64(i+1) / float64(c.Layers)
	}
	for k := range o.place {
		o.place[k] = -1
	}
	return o, nil
}

// Visit says that the layer's router has picked for so many rows, 1 or more: earlier uses of the layer's experts age by that many rows, and what
// Expect said of them is over. The picks follow by Use.
func (o *Order) Visit(at, rows int) {
	l := &o.layers[at]
	o.now = at
	for _, k := range l.expected {
		o.hope[k], o.lent[k] = 0, false
		if i := o.place[k]; i >= 0 {
			o.up(l, int(i))
		}
	}
	l.expected = l.expected[:0]
	l.rows = float64(max(1, rows))
	grow := math.Exp2(l.rows / o.life)
	if l.weight*grow > maxWeight {
		o.scale(at, 1/(l.weight*grow))
		l.weight = 1
	} else {
		l.weight *= grow
	}
	l.gain = l.weight * (1 - 1/grow)
	o.look(at)
}

// scale multiplies a layer's scores. Small ones may become 0 and so equal, hence the new heap.
func (o *Order) scale(at int, by float64) {
	l := &o.layers[at]
	for k := at * o.experts; k < (at+1)*o.experts; k++ {
		o.score[k] *= by
	}
	for i := len(l.heap)/2 - 1; i >= 0; i-- {
		o.down(l, i)
	}
}

// Use says that so many of the rows of its layer's last visit picked the expert, whether or not it may leave or is in memory at all.
func (o *Order) Use(key, rows int) {
	at := key / o.experts
	l := &o.layers[at]
	o.score[key] += l.gain * min(1, float64(rows)/l.rows)
	o.raised(at, key)
}

// Expect says that the expert will be wanted soon with this chance, 0 to 1. It counts as that much until Remove or its layer's next Visit, and
// then as if nothing had been said. That keeps an expert that was read ahead until its turn, and one that a later wave of a prompt
// wants until that wave has it.
func (o *Order) Expect(key int, chance float64) {
	at := key / o.experts
	l := &o.layers[at]
	if !(chance > 0) {
		return
	}
	if !o.lent[key] {
		o.lent[key] = true
		l.expected = append(l.expected, int32(key))
	}
	o.hope[key] = max(o.hope[key], min(1, chance)*l.weight)
	o.raised(at, key)
}

// Seed sets what is known of an expert to a chance of use, 0 to 1, that an earlier run has left; that ages like all else.
func (o *Order) Seed(key int, chance float64) {
	at := key / o.experts
	l := &o.layers[at]
	if !(chance >= 0) {
		chance = 0
	}
	o.score[key] = min(1, chance) * l.weight
	if i := o.place[key]; i >= 0 {
		o.up(l, int(i))
	}
	o.raised(at, key)
}

// Chance returns the estimate that the next row of the expert's layer picks it, 0 to 1.
func (o *Order) Chance(key int) float64 {
	return min(1, o.value(int32(key))/o.layers[key/o.experts].weight)
}

// Len returns how many experts may leave.
func (o *Order) Len() int { return o.n }

// Add says that the expert may leave: its slot holds it and nobody uses it. One that may leave already stays as it is.
func (o *Order) Add(key int) {
	if o.place[key] >= 0 {
		return
	}
	at := key / o.experts
	l := &o.layers[at]
	o.place[key] = int32(len(l.heap))
	l.heap = append(l.heap, int32(key))
	o.n++
	o.up(l, len(l.heap)-1)
	o.look(at)
}

// Remove says that the expert must stay, or is gone, and that nothing is expected of it any longer.
func (o *Order) Remove(key int) {
	i := int(o.place[key])
	hoped := o.hope[key] > 0
	o.hope[key] = 0
	if i < 0 {
		return
	}
	at := key / o.experts
	l := &o.layers[at]
	if hoped {
		o.up(l, i) // where it belongs without
		i = int(o.place[key])
	}
	last := len(l.heap) - 1
	moved := l.heap[last]
	l.heap = l.heap[:last]
	o.place[key] = -1
	o.n--
	if i < last {
		l.heap[i], o.place[moved] = moved, int32(i)
		o.down(l, i)
		o.up(l, int(o.place[moved]))
	}
	o.look(at)
}

// Evict removes the expert that should leave and returns its key; false if none may.
func (o *Order) Evict() (key int, ok bool) {
	best, longest := -1, -1.0
	// The layers after the one visited last have their turn first; that one itself waits a whole pass.
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
	key = int(o.layers[best].heap[0])
	o.Remove(key)
	return key, true
}

// raised puts an expert right whose value has grown.
func (o *Order) raised(at, key int) {
	if i := o.place[key]; i >= 0 {
		o.down(&o.layers[at], int(i))
		o.look(at)
	}
}

// look brings a layer's wait up to date.
func (o *Order) look(at int) {
	l := &o.layers[at]
	if len(l.heap) == 0 {
		o.wait[at] = -1
		return
	}
	p := min(1, o.value(l.heap[0])/l.weight)
	o.wait[at] = 1/max(p, least) - 1
}

func (o *Order) value(key int32) float64 { return max(o.score[key], o.hope[key]) }

// before reports whether a leaves before b of the same layer.
func (o *Order) before(a, b int32) bool {
	va, vb := o.value(a), o.value(b)
	return va < vb || va == vb && a < b
}

func (o *Order) up(l *layer, i int) {
	h, k := l.heap, l.heap[i]
	for i > 0 && o.before(k, h[(i-1)/2]) {
		h[i] = h[(i-1)/2]
		o.place[h[i]] = int32(i)
		i = (i - 1) / 2
	}
	h[i], o.place[k] = k, int32(i)
}

func (o *Order) down(l *layer, i int) {
	h, k := l.heap, l.heap[i]
	for 2*i+1 < len(h) {
		c := 2*i + 1
		if c+1 < len(h) && o.before(h[c+1], h[c]) {
			c++
		}
		if !o.before(h[c], k) {
			break
		}
		h[i] = h[c]
		o.place[h[i]] = int32(i)
		i = c
	}
	h[i], o.place[k] = k, int32(i)
}
