package policy_test

import (
	"container/heap"
	"fmt"
	"math"
	"time"
)

// use is an expert that some rows of a visit picked.
type use struct{ key, rows int32 }

// visit is one layer's routing of one step.
type visit struct {
	layer, rows int
	uses        []use // by key
}

// trace holds what routers picked, layer by layer and token by token.
type trace struct {
	name                  string
	layers, experts, topK int
	visits                []visit
}

func (t *trace) keys() int { return t.layers * t.experts }

// part returns the visits of tokens from to to, which must be single rows.
func (t *trace) part(from, to int) *trace {
	p := *t
	p.visits = t.visits[from*t.layers : to*t.layers]
	return &p
}

// contender is a policy under test. simulate keeps track of what is resident. For each wave it
// calls visit (first wave only) and hold; then for each use hit, or insert after an evict if all
// slots are full; then release. evict must never return a held expert.
type contender interface {
	visit(v *visit)
	hold(wave, later []use)
	hit(key int32)
	// evict removes a resident expert that is not held, to make room for another.
	evict(wanted int32, held []bool) int32
	insert(key int32)
	release(wave []use)
}

// outcome counts uses and hits: of all rows, and of single rows only.
type outcome struct {
	hits, uses, decodeHits, decodeUses int
	perUse                             time.Duration
}

func share(part, of int) float64  { return 100 * float64(part) / float64(max(1, of)) }
func (o outcome) all() float64    { return share(o.hits, o.uses) }
func (o outcome) decode() float64 { return share(o.decodeHits, o.decodeUses) }
func (o outcome) prompt() float64 { return share(o.hits-o.decodeHits, o.uses-o.decodeUses) }

// simulate runs a trace with the given slots, some of which are filled with warm before it starts.
// A visit is cut into waves of at most 64 experts or half the slots. The experts of a wave are held
// until it is done.
func simulate(t *trace, slots int, warm []int32, c contender) outcome {
	var r outcome
	resident, held := make([]bool, t.keys()), make([]bool, t.keys())
	full := 0
	for _, k := range warm {
		resident[k] = true
		full++
		c.insert(k)
		c.release([]use{{key: k}})
	}
	size := min(64, slots/2)
	began := time.Now()
	for i := range t.visits {
		v := &t.visits[i]
		c.visit(v)
		for at := 0; at < len(v.uses); at += size {
			end := min(at+size, len(v.uses))
			wave := v.uses[at:end]
			for _, u := range wave {
				held[u.key] = true
			}
			c.hold(wave, v.uses[end:])
			for _, u := range wave {
				r.uses++
				if v.rows == 1 {
					r.decodeUses++
				}
				if resident[u.key] {
					r.hits++
					if v.rows == 1 {
						r.decodeHits++
					}
					c.hit(u.key)
					continue
				}
				if full == slots {
					k := c.evict(u.key, held)
					if !resident[k] || held[k] {
						panic(fmt.Sprintf("%T threw out expert %d, resident %v, held %v", c, k, resident[k], held[k]))
					}
					resident[k] = false
					full--
				}
				full++
				resident[u.key] = true
				c.insert(u.key)
			}
			for _, u := range wave {
				held[u.key] = false
			}
			c.release(wave)
		}
	}
	r.perUse = time.Since(began) / time.Duration(r.uses)
	return r
}

// optimum knows the future: it evicts the expert whose next use is farthest away.
type optimum struct {
	nothing
	now  int
	next [][]int // [visits][uses]: the visit of the same expert's next use
	soon []int   // [keys]: its next use, or the present visit while its wave is to come
	in   []bool
	far  futures
}

func newOptimum(t *trace) *optimum {
	o := &optimum{now: -1, next: make([][]int, len(t.visits)), soon: make([]int, t.keys()), in: make([]bool, t.keys())}
	for k := range o.soon {
		o.soon[k] = math.MaxInt
	}
	for i := len(t.visits) - 1; i >= 0; i-- {
		for _, u := range t.visits[i].uses {
			o.next[i] = append(o.next[i], o.soon[u.key])
			o.soon[u.key] = i
		}
	}
	return o
}

func (o *optimum) visit(v *visit) { o.now++ }

// hold finds the next use of each expert of the wave. Before its wave, an expert's next use is the
// present visit.
func (o *optimum) hold(wave, later []use) {
	next := o.next[o.now]
	next = next[len(next)-len(wave)-len(later):]
	for i, u := range wave {
		o.soon[u.key] = next[i]
		if o.in[u.key] {
			heap.Push(&o.far, future{u.key, next[i]})
		}
	}
}

func (o *optimum) insert(key int32) {
	o.in[key] = true
	heap.Push(&o.far, future{key, o.soon[key]})
}

func (o *optimum) evict(_ int32, held []bool) int32 {
	var back []future
	for {
		f := heap.Pop(&o.far).(future)
		switch {
		case !o.in[f.key] || o.soon[f.key] != f.visit: // outdated
		case held[f.key]:
			back = append(back, f)
		default:
			for _, b := range back {
				heap.Push(&o.far, b)
			}
			o.in[f.key] = false
			return f.key
		}
	}
}

// future is when an expert is used next.
type future struct {
	key   int32
	visit int
}

// futures is a heap, the farthest first.
type futures []future

func (f futures) Len() int { return len(f) }
func (f futures) Less(i, j int) bool {
	return f[i].visit > f[j].visit || f[i].visit == f[j].visit && f[i].key < f[j].key
}
func (f futures) Swap(i, j int) { f[i], f[j] = f[j], f[i] }
func (f *futures) Push(x any)   { *f = append(*f, x.(future)) }
func (f *futures) Pop() any {
	last := (*f)[len(*f)-1]
	*f = (*f)[:len(*f)-1]
	return last
}
