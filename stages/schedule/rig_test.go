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
// callers who come back after a moment, and a timer.
type rig struct {
	s      schedule.Schedule[*chunk]
	cfg    schedule.Config
	rand   *rand.Rand
	costs  costs
	now    int64
	free   int64 // when the device is idle
	hasty  int64 // when it has done all decode steps, where those go first
	ring   [schedule.Kinds]int
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
}

const linger = 200_000

func newRig(cfg schedule.Config, c costs, seed uint64) *rig {
	return &rig{
		s: schedule.New[*chunk](cfg), cfg: cfg, rand: rand.New(rand.NewPCG(seed, 9)), costs: c,
		tokens: map[int][]int64{}, prompts: map[int]int64{}, done: map[int]int{},
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
		r.ring[st.kind]++
		st.begun += n
		r.s.Begun(st.id, n)
		r.submit(st.kind, float64(n)*r.costs.layer(st.rows), func() {
			r.ring[st.kind]--
			st.retired += n
			r.s.Retired(st.id, n)
		})
		if st.begun == r.cfg.Layers {
			r.s.Asked(st.id)
			r.submit(st.kind, r.costs.head, func() { st.computed = true })
		}
	}
}

// full reports whether the ring has no room for a kind.
func (r *rig) full(k schedule.Kind) bool {
	if r.cfg.Preempts {
		return r.ring[k] == 2
	}
	return r.ring[schedule.Decode]+r.ring[schedule.Prompt] == 2
}

// next returns the step that begins layers next: one that decodes first.
func (r *rig) next() (*rigStep, int) {
	for _, kind := range []schedule.Kind{schedule.Decode, schedule.Prompt} {
		for _, st := range r.steps {
			if st.kind != kind || st.begun == r.cfg.Layers || r.full(kind) {
				continue
			}
			together := min(max(1, st.begun), max(1, 64/st.rows), r.cfg.Layers-st.begun)
			if n := r.s.Layers(st.id, together); n > 0 {
				return st, n
			}
		}
	}
	return nil, 0
}

// submit lets the device work for some time, and then something happen.
func (r *rig) submit(k schedule.Kind, ns float64, then func()) {
	ns *= 1 + r.costs.noise*(2*r.rand.Float64()-1)
	took := int64(ns)
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
	r.at(r.now+max(r.costs.think, r.slow[c.id]), func() {
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
