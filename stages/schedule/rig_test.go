package schedule_test

import (
	"cmp"

	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// rig is a pipeline in simulated time, as simple as one can be: a device that does one thing after
// another in order of submission, or decode steps amid prompt steps, a ring of two submissions,
// callers who come back after a moment, and a timer. Of several devices each has an equal part of
// the layers, its own order and its own ring.
type rig struct {
	s      schedule.Schedule[*chunk]
	cfg    schedule.Config
	rand   *rand.Rand
	costs  costs
	now    int64
	free   int64                 // when the device is idle
	frees  []int64               // when each of several is
	hasty  int64                 // when it has done all decode steps, where those go first
	rings  [][schedule.Kinds]int // of each device
	events []event
	steps  []*rigStep
	lastID uint64

	tokens  map[int][]int64 // when each decoding sequence got its tokens
	prompts map[int]int64   // when each prompt was read
	done    map[int]int     // rows of each prompt
	slow    map[int]int64   // what callers take who take longer than others
}

// costs is what things take, in nanoseconds.
type costs struct {
	layer func(rows int) float64 // of the device
	head  float64                // at the end of a step
	think int64                  // of a caller, from token to next request
	vary  float64                // how many times that it may take longer at most
	pause float64                // share of requests that come up to 3 ms later
	noise float64                // share
}

type event struct {
	at   int64
	do   func()
	late bool // it is put off by the time of decode steps that go first
}

type rigStep struct {
	id             uint64
	kind           schedule.Kind
	shares         []schedule.Share[*chunk]
	rows           int
	begun, retired int
	computed       bool
	at             int64 // when what has begun of it is done
}

const linger = 200_000

func newRig(cfg schedule.Config, c costs, seed uint64) *rig {
	return &rig{
		s: schedule.New[*chunk](cfg), cfg: cfg, rand: rand.New(rand.NewPCG(seed, 9)), costs: c,
		frees: make([]int64, cfg.Parts), rings: make([][schedule.Kinds]int, max(1, cfg.Parts)), tokens: map[int][]int64{}, prompts: map[int]int64{}, done: map[int]int{},
	}
}

func (r *rig) at(t int64, do func()) { r.events = append(r.events, event{at: t, do: do}) }

// run lets events happen until there are none, or until stop.
func (r *rig) run(t *testing.T, stop func() bool) {
	t.Helper()
	for n := 0; len(r.events) > 0 && !stop(); n++ {
		if n == 3e6 {
			t.Fatalf("it does not come to an end: %d µs, %d requests ready, tokens %d, prompts %v done %v, %+v", r.now/1000, r.s.Ready(), r.least(), r.prompts, r.done, r.cfg)
		}
		slices.SortStableFunc(r.events, func(a, b event) int { return cmp.Compare(a.at, b.at) })
		e := r.events[0]
		r.events = r.events[1:]
		r.now = e.at
		r.s.Now(r.now)
		e.do()
		r.handOver()
		r.form()
		r.begin()
		if round, at := r.s.Timer(); round != 0 {
			r.at(at, func() { r.s.WaitOver(round) })
		}
	}
	if len(r.events) == 0 && (r.s.Ready() > 0 || len(r.steps) > 0) {
		t.Fatalf("nothing happens any more, but %d requests are ready and %d steps are not over", r.s.Ready(), len(r.steps))
	}
}

func (r *rig) form() {
	for {
		kind, shares := r.s.Next(r.lastID + 1)
		if len(shares) == 0 {
			return
		}
		r.lastID++
		st := &rigStep{id: r.lastID, kind: kind, shares: slices.Clone(shares)}
		for _, sh := range shares {
			st.rows += sh.Rows
		}
		r.steps = append(r.steps, st)
	}
}

func (r *rig) begin() {
	for {
		st, n := r.next()
		if st == nil {
			return
		}
		part := r.part(st.begun)
		ring := &r.rings[part]
		ring[st.kind]++
		st.begun += n
		r.s.Begun(st.id, n)
		r.submit(st, part, float64(n)*r.costs.layer(st.rows), func() {
			ring[st.kind]--
			st.retired += n
			r.s.Retired(st.id, n)
		})
		if st.begun == r.cfg.Layers {
			r.s.Asked(st.id)
			r.submit(st, part, r.costs.head, func() { st.computed = true })
		}
	}
}

// part returns which of several devices computes a layer.
func (r *rig) part(layer int) int { return layer * max(1, r.cfg.Parts) / r.cfg.Layers }

// full reports whether the ring has no room for a step.
func (r *rig) full(st *rigStep) bool {
	ring := &r.rings[r.part(st.begun)]
	if r.cfg.Preempts || len(r.rings) > 1 {
		return ring[st.kind] == 2
	}
	return ring[schedule.Decode]+ring[schedule.Prompt] == 2
}

// next returns the step that begins layers next: one that decodes first.
func (r *rig) next() (*rigStep, int) {
	for _, kind := range []schedule.Kind{schedule.Decode, schedule.Prompt} {
		for _, st := range r.steps {
			if st.kind != kind || st.begun == r.cfg.Layers || r.full(st) {
				continue
			}
			together := min(max(1, st.begun), max(1, 64/st.rows), r.cfg.Layers-st.begun)
			for r.part(st.begun+together-1) != r.part(st.begun) {
				together--
			}
			if n := r.s.Layers(st.id, together); n > 0 {
				return st, n
			}
		}
	}
	return nil, 0
}

// submit lets a device work for some time, and then something happen.
func (r *rig) submit(st *rigStep, part int, ns float64, then func()) {
	ns *= 1 + r.costs.noise*(2*r.rand.Float64()-1)
	took, k := int64(ns), st.kind
	if len(r.frees) > 1 {
		st.at = max(st.at, r.frees[part], r.now) + took
		r.frees[part] = st.at
		r.at(st.at, then)
		return
	}
	if k == schedule.Prompt || !r.cfg.Preempts {
		r.free = max(r.free, r.hasty, r.now) + took
		r.events = append(r.events, event{r.free, then, r.cfg.Preempts})
		return
	}
	for i := range r.events {
		if r.events[i].late {
			r.events[i].at += took
		}
	}
	if r.free > r.now {
		r.free += took
	}
	r.hasty = max(r.hasty, r.now) + took
	r.at(r.hasty, then)
}

// handOver ends the steps that are computed and due.
func (r *rig) handOver() {
	for _, st := range slices.Clone(r.steps) {
		if st.computed && !r.s.Holds(st.id) {
			r.end(st)
		}
	}
}

func (r *rig) end(st *rigStep) {
	r.s.Ended(st.id)
	r.steps = slices.DeleteFunc(r.steps, func(o *rigStep) bool { return o == st })
	for _, sh := range st.shares {
		c := sh.Request
		r.done[c.id] += sh.Rows
		if c.left -= sh.Rows; c.left > 0 {
			r.s.Add(c)
			continue
		}
		if r.tokens[c.id] == nil {
			r.prompts[c.id] = r.now
		} else {
			r.token(c)
		}
	}
}

// token gives a decoding sequence a token; its caller comes back after a moment.
func (r *rig) token(c *chunk) {
	r.tokens[c.id] = append(r.tokens[c.id], r.now)
	r.s.Expect(uint64(c.id))
	think := max(r.costs.think, r.slow[c.id])
	if r.costs.vary > 0 {
		think += int64(float64(think) * r.costs.vary * r.rand.Float64() * r.rand.Float64())
	}
	if r.costs.pause > 0 && r.rand.Float64() < r.costs.pause {
		think += int64(3e6 * r.rand.Float64())
	}
	r.at(r.now+think, func() {
		r.s.Back(uint64(c.id))
		c.left = 1
		r.s.Add(c)
	})
}

// decoder adds a sequence that decodes.
func (r *rig) decoder(id int, at int64) {
	r.tokens[id] = []int64{}
	r.at(at, func() { r.s.Add(&chunk{id: id, left: 1}) })
}

// prompt adds a prompt.
func (r *rig) prompt(id int, at int64, rows int) {
	r.at(at, func() { r.s.Add(&chunk{id: id, left: rows}) })
}

// gaps returns the times from token to token of a sequence, from a moment to another, ascending.
func (r *rig) gaps(id int, from, to int64) (all []int64) {
	for i, t := range r.tokens[id] {
		if i > 0 && t > from && r.tokens[id][i-1] < to {
			all = append(all, t-r.tokens[id][i-1])
		}
	}
	slices.Sort(all)
	return all
}
