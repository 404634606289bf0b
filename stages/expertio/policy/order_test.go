package policy_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/stages/expertio/policy"
)

func newTest(tb testing.TB, c policy.Config) *policy.Order {
	tb.Helper()
	o, err := policy.New(c)
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

// A used expert leaves after an unused one, and an old use counts less than a new one.
func ExampleOrder() {
	o, err := policy.New(policy.Config{Layers: 2, Experts: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	for row := range 3 {
		for layer := range 2 {
			o.Visit(policy.Urgent, layer, 1)
			o.Use(layer*4+row, 1) // experts 0, 1 and 2 one after the other
			o.Use(layer*4+3, 1)   // and 3 each time
		}
	}
	for _, key := range []int{0, 1, 2, 3} {
		o.Add(key)
	}
	o.Remove(1) // its slot is in use
	for key, ok := o.Evict(); ok; key, ok = o.Evict() {
		fmt.Printf("%d, chance of the next row to use it %.2f\n", key, o.Chance(key))
	}
	// Output:
	// 0, chance of the next row to use it 0.09
	// 2, chance of the next row to use it 0.11
	// 3, chance of the next row to use it 0.29
}

// plain is the definition, computed slowly: it keeps everything that happened, and computes every
// estimate from that.
type plain struct {
	layers, experts int
	lives           [2]float64
	by              int // the estimate that counts
	loss            [2]float64
	now             int
	rows            []float64    // [layers]: rows so far
	last            []float64    // [layers]: rows of the last visit
	uses            [][]happened // [keys]
	hope            [2][]float64 // [sides][keys]
	in              []bool
	beside          bool
	past            []passed // all visits
	popular         *plain   // counts all visits, with one half-life; nil for itself
}

// passed is a visit: whose, and of which layer.
type passed struct {
	side  policy.Side
	layer int
}

// happened is a use after some rows, by a share of the rows of its visit.
type happened struct{ at, rows, share float64 }

func newPlain(c policy.Config) *plain {
	n := c.Layers * c.Experts
	p := &plain{
		layers: c.Layers, experts: c.Experts, lives: [2]float64{c.Short, c.Long}, now: c.Layers - 1,
		rows: make([]float64, c.Layers), last: make([]float64, c.Layers), uses: make([][]happened, n), hope: [2][]float64{make([]float64, n), make([]float64, n)}, in: make([]bool, n),
	}
	if c.Popular > 0 {
		p.popular = newPlain(policy.Config{Layers: c.Layers, Experts: c.Experts, Short: c.Popular, Long: c.Popular})
	}
	return p
}

// counts says whether the visit that has come last counts: no ordinary one does from the moment at
// which urgent visits come between two layers of an ordinary step. It ends with a pass of ordinary
// visits without an urgent one, and with 32 passes of urgent ones without an ordinary one.
func (p *plain) counts() bool {
	last := len(p.past) - 1
	v := p.past[last]
	alike := 0 // visits on that side at the end
	for alike <= last && p.past[last-alike].side == v.side {
		alike++
	}
	if v.side == policy.Urgent {
		p.beside = p.beside && alike <= 32*p.layers
		return true
	}
	before := last - 1
	for before >= 0 && p.past[before].side == policy.Urgent {
		before--
	}
	switch quiet := alike - 1; {
	case alike == last+1: // no urgent visit yet
		p.beside = false
	case quiet >= p.layers:
		p.beside = false
	case quiet == 0 && before >= 0 && v.layer > p.past[before].layer:
		p.beside = true
	}
	return !p.beside
}

// visit includes the picks: a share of the rows for each expert of the layer.
func (p *plain) visit(side policy.Side, layer, rows int, shares []float64) {
	if layer <= p.now && p.loss[1-p.by] < 0.99*p.loss[p.by] {
		p.by = 1 - p.by
	}
	p.now = layer
	for e := range shares {
		p.hope[side][layer*p.experts+e] = 0
	}
	p.past = append(p.past, passed{side, layer})
	if p.popular != nil {
		p.popular.used(layer, rows, shares)
	}
	if !p.counts() {
		return
	}
	for i := range p.loss {
		p.loss[i] *= 1 - 1/float64(64*p.layers)
		for e, share := range shares {
			d := p.estimate(i, layer*p.experts+e) - share
			p.loss[i] += d * d
		}
	}
	p.used(layer, rows, shares)
}

// used notes the picks of a visit that counts.
func (p *plain) used(layer, rows int, shares []float64) {
	p.rows[layer] += float64(rows)
	p.last[layer] = float64(rows)
	for e, share := range shares {
		k := layer*p.experts + e
		if share > 0 {
			p.uses[k] = append(p.uses[k], happened{p.rows[layer], float64(rows), share})
		}
	}
}

func (p *plain) seed(key int, chance float64) {
	p.uses[key] = []happened{{p.rows[key/p.experts], math.Inf(1), chance}}
	if p.popular != nil {
		p.popular.seed(key, chance)
	}
}

// estimate is the sum over all uses of share·(1 - 2^(-rows/life))·2^(-age/life).
func (p *plain) estimate(by, key int) float64 {
	sum := 0.0
	for _, u := range p.uses[key] {
		sum += u.share * (1 - math.Exp2(-u.rows/p.lives[by])) * math.Exp2((u.at-p.rows[key/p.experts])/p.lives[by])
	}
	return sum
}

func (p *plain) chance(key int) float64 {
	return max(p.estimate(p.by, key), 0.1*p.popular.estimate(0, key), p.hope[0][key], p.hope[1][key])
}

// wait is the passes until the expert is expected to be used.
func (p *plain) wait(key int) float64 {
	d := key/p.experts - p.now
	if d <= 0 {
		d += p.layers
	}
	return 1/min(1, max(1e-9, p.chance(key))) - 1 + float64(d)/float64(p.layers)
}

// longest returns the longest wait of all that may leave.
func (p *plain) longest() (wait float64, ok bool) {
	wait = -1
	for k, in := range p.in {
		if in {
			wait, ok = max(wait, p.wait(k)), true
		}
	}
	return wait, ok
}

// After any calls, Evict returns an expert that may leave and that waits longest by the definition.
// Chances agree, and nothing leaves twice or unasked.
func TestAgainstDefinition(t *testing.T) {
	changes, together := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		c := policy.Config{Layers: 1 + r.IntN(5), Experts: 1 + r.IntN(12+30*int(seed%2)), Short: []float64{0.5, 8, 100}[r.IntN(3)], Long: []float64{1, 8, 500}[r.IntN(3)], Popular: []float64{50, 1000}[r.IntN(2)]}
		o, p := newTest(t, c), newPlain(c)
		keys := c.Layers * c.Experts
		n, side := 0, policy.Ordinary
		for step := range 1500 {
			key := r.IntN(keys)
			switch op := r.IntN(12); op {
			case 0, 1:
				layer, rows := r.IntN(c.Layers), 1
				if r.IntN(3) == 0 {
					side = policy.Side(r.IntN(2))
				}
				if r.IntN(2) == 0 {
					layer = (p.now + 1) % c.Layers
				}
				if r.IntN(4) == 0 {
					rows = 1 + r.IntN(300)
				}
				shares := make([]float64, c.Experts)
				o.Visit(side, layer, rows)
				for _, e := range r.Perm(c.Experts)[:r.IntN(c.Experts+1)] {
					by := 1 + r.IntN(rows)
					o.Use(layer*c.Experts+e, by)
					shares[e] = float64(by) / float64(rows)
				}
				before := p.by
				p.visit(side, layer, rows, shares)
				if p.beside && side == policy.Ordinary {
					together++
				}
				if p.by != before {
					changes++
				}
			case 2, 3, 4:
				o.Add(key)
				if !p.in[key] {
					n++
				}
				p.in[key] = true
			case 5, 6:
				if p.in[key] {
					n--
				}
				p.in[key] = false
				if op == 5 {
					o.Remove(key)
					p.hope[0][key], p.hope[1][key] = 0, 0
				} else {
					o.Hold(side, key)
					p.hope[side][key] = 0
				}
			case 7:
				chance := r.Float64()
				o.Expect(side, key, chance)
				p.hope[side][key] = max(p.hope[side][key], chance)
			case 8:
				if r.IntN(10) == 0 {
					chance := r.Float64()
					o.Seed(key, chance)
					p.seed(key, chance)
				}
			default:
				got, ok := o.Evict()
				want, any := p.longest()
				if ok != any {
					t.Fatalf("seed %d step %d: Evict says %v, want %v", seed, step, ok, any)
				}
				if !ok {
					continue
				}
				if !p.in[got] {
					t.Fatalf("seed %d step %d: expert %d leaves, which may not", seed, step, got)
				}
				if w := p.wait(got); math.Abs(w-want) > 1e-7*want {
					t.Fatalf("seed %d step %d: expert %d leaves with a wait of %g, another has %g", seed, step, got, w, want)
				}
				p.in[got], p.hope[0][got], p.hope[1][got] = false, 0, 0
				n--
			}
			if o.Len() != n {
				t.Fatalf("seed %d step %d: %d may leave, want %d", seed, step, o.Len(), n)
			}
			if got, want := o.Chance(key), min(1, p.chance(key)); math.Abs(got-want) > 1e-9 {
				t.Fatalf("seed %d step %d: chance of expert %d is %g, want %g", seed, step, key, got, want)
			}
		}
	}
	if together < 1000 {
		t.Errorf("%d visits beside others, too few to tell", together)
	}
	if changes < 50 {
		t.Errorf("the estimate changed %d times, too few to tell", changes)
	}
}

// The same calls have the same outcome.
func TestSameAgain(t *testing.T) {
	tr := randomTrace(7, 300)
	first := evictions(t, tr)
	if len(first) < 100 {
		t.Fatalf("%d experts left, too few to tell", len(first))
	}
	for i, k := range evictions(t, tr) {
		if k != first[i] {
			t.Fatalf("expert %d leaves at turn %d, %d the time before", k, i, first[i])
		}
	}
}

// recorded records what leaves.
type recorded struct {
	*order
	gone []int32
}

func (r *recorded) evict(k int32, held []bool) int32 {
	out := r.order.evict(k, held)
	r.gone = append(r.gone, out)
	return out
}

func evictions(t *testing.T, tr *trace) []int32 {
	c := &recorded{order: newOrder(tr, 0)}
	simulate(tr, 20, nil, c)
	return c.gone
}

// randomTrace has single rows and prompts without any pattern.
func randomTrace(seed uint64, steps int) *trace {
	r := rand.New(rand.NewPCG(seed, 2))
	t := &trace{name: "random", layers: 4, experts: 16, topK: 3}
	for range steps {
		rows := 1
		if r.IntN(5) == 0 {
			rows = 1 + r.IntN(40)
		}
		one := &trace{layers: t.layers, experts: t.experts}
		for range rows {
			for layer := range t.layers {
				var picks []int32
				for _, e := range r.Perm(t.experts)[:t.topK] {
					picks = append(picks, int32(e))
				}
				one.add(layer, picks)
			}
		}
		t.visits = append(t.visits, one.together()...)
	}
	return t
}

// A prompt that uses every expert of every layer equally does not evict those that were used
// before.
func TestPromptDoesNotWashOut(t *testing.T) {
	tr := &trace{layers: 8, experts: 64, topK: 4}
	hot := []int32{3, 9, 20, 41}
	for range 32 {
		for layer := range tr.layers {
			tr.add(layer, hot)
		}
	}
	slots := tr.keys() / 4
	decode := len(tr.visits)
	for range 4 {
		for layer := range tr.layers {
			v := visit{layer: layer, rows: 2}
			for e := range tr.experts {
				v.uses = append(v.uses, use{int32(layer*tr.experts + e), 1})
			}
			tr.visits = append(tr.visits, v)
		}
	}
	tr.visits = append(tr.visits, tr.visits[:tr.layers]...) // one token after
	after := func(c contender) int {
		before := *tr
		before.visits = tr.visits[:len(tr.visits)-tr.layers]
		o := simulate(tr, slots, nil, c)
		first := (decode - tr.layers) * len(hot)
		return o.decodeHits - first
	}
	if got, want := after(newOrder(tr, 0)), tr.layers*len(hot); got != want {
		t.Errorf("after the prompt %d uses hit, want all %d", got, want)
	}
	if got := after(newLRU()); got > tr.layers*len(hot)/4 {
		t.Errorf("LRU hits %d times after the prompt: this trace shows nothing", got)
	}
}

func TestConfig(t *testing.T) {
	for _, c := range []policy.Config{
		{}, {Layers: 1}, {Experts: 1}, {Layers: -1, Experts: 4}, {Layers: 1 << 20, Experts: 1 << 20},
		{Layers: 1, Experts: 1, Short: -1}, {Layers: 1, Experts: 1, Long: math.NaN()},
		{Layers: 1, Experts: 1, Short: math.Inf(1)}, {Layers: 1, Experts: 1, Long: 0.01}, {Layers: 1, Experts: 1, Popular: -1},
	} {
		if o, err := policy.New(c); err == nil || o != nil {
			t.Errorf("%+v: %v, %v, want an error", c, o, err)
		}
	}
}

// With unusual numbers, chances stay between 0 and 1 and everything can leave.
func TestOddNumbers(t *testing.T) {
	o := newTest(t, policy.Config{Layers: 2, Experts: 3, Short: 0.125})
	for i, chance := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 2, 0} {
		o.Seed(i, chance)
		o.Expect(policy.Urgent, i, chance)
		o.Add(i)
	}
	for _, rows := range []int{0, -5, 1 << 40, 1, 1000} {
		o.Visit(policy.Ordinary, 1, rows)
		o.Use(4, rows)
		o.Use(4, rows)
	}
	for i := range 6 {
		if c := o.Chance(i); !(c >= 0 && c <= 1) {
			t.Errorf("chance of expert %d is %g", i, c)
		}
	}
	for range 6 {
		if _, ok := o.Evict(); !ok {
			t.Error("nothing leaves, want six")
		}
	}
	if key, ok := o.Evict(); ok {
		t.Errorf("expert %d leaves an empty order", key)
	}
}

// Nothing is allocated after New.
func TestNoAllocation(t *testing.T) {
	tr := randomTrace(3, 50)
	o := newOrder(tr, 0)
	if n := testing.AllocsPerRun(20, func() { token(tr, o) }); n != 0 {
		t.Errorf("%v allocations for a token, want none", n)
	}
}

// token makes the calls for a trace's visits, with a miss for every third use.
func token(tr *trace, o *order) {
	for i := range tr.visits {
		v := &tr.visits[i]
		o.visit(v)
		o.hold(v.uses, nil)
		for j := range v.uses {
			if j%3 == 0 {
				o.Evict()
			}
		}
		o.release(v.uses)
		o.Expect(o.side, int(v.uses[0].key), 0.5)
	}
}

// BenchmarkToken makes the calls of one token that misses a third of its experts. ns/op divided by
// the uses is the cost of one.
func BenchmarkToken(b *testing.B) {
	for _, s := range []struct {
		name                 string
		layers, experts, top int
	}{{"qwen3-30b-a3b", 48, 128, 8}, {"qwen3.5-35b-a3b", 40, 256, 8}} {
		b.Run("shape="+s.name, func(b *testing.B) {
			r := rand.New(rand.NewPCG(1, 1))
			tr := &trace{layers: s.layers, experts: s.experts, topK: s.top}
			for range 64 * s.layers {
				var picks []int32
				for _, e := range r.Perm(s.experts)[:s.top] {
					picks = append(picks, int32(e))
				}
				tr.add(len(tr.visits)%s.layers, picks)
			}
			o := newOrder(tr, 0)
			for k := range tr.keys() / 4 {
				o.Add(k * 4)
			}
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				token(tr.part(i, i+1), o)
				i = (i + 1) % 64
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.layers*s.top), "ns/use")
		})
	}
}

// However many were removed, the others leave in the order of their chances.
func TestDrain(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for round := range 50 {
		const experts = 100
		o := newTest(t, policy.Config{Layers: 1, Experts: experts})
		for k := range experts {
			o.Seed(k, r.Float64())
			o.Add(k)
		}
		for _, k := range r.Perm(experts)[:50] {
			o.Remove(k)
		}
		before, n := 0.0, 0
		for k, ok := o.Evict(); ok; k, ok = o.Evict() {
			if c := o.Chance(k); c < before {
				t.Fatalf("round %d: a chance of %g leaves after one of %g", round, c, before)
			} else {
				before = c
			}
			n++
		}
		if n != 50 {
			t.Fatalf("round %d: %d left, want 50", round, n)
		}
	}
}
