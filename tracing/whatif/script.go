package whatif

import (
	"cmp"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// script is what callers ask for, in order of arrival.
type script struct{ asks []*ask }

// ask is a request for rows.
type ask struct {
	id     uint64 // of the request
	seq    stages.SeqID
	rows   []rowOf
	logits bool // somebody wants the last row's
	// It comes delayNS after the end of another request, whose answer its caller had awaited, or
	// at a time.
	after   *ask
	delayNS int64
	last    bool // of its sequence
	// forget says that it asks for something else: that experts are forgotten
	forget bool

	then             []*ask // that come after it
	arrived, endedNS int64  // in the replay
}

// rowOf names a row of the recording.
type rowOf struct {
	step *step
	row  int32
}

// step is a step of the recording.
type step struct {
	id     uint64
	rows   int32
	layers []layer // [layers]
	headNS float64 // 0: it had no head
}

// layer is what a step's layer picked and what it took; times are 0 where they are not known.
type layer struct {
	picks   []int16    // [rows, top-k], heaviest first
	ranks   [2][]int16 // of the layer's router, from one and two layers before, [rows, width]
	mixNS   float64    // its first half, or a whole layer without routed experts
	aheadNS float64
	shareNS float64 // the shared expert
	waves   []wave
	restNS  float64 // by what its experts took more than the law says, as a factor
}

// wave is a recorded wave.
type wave struct {
	uses, picks int32
	last        bool
	ns          float64
}

// newScript reads what callers asked for. Requests that never came into a step are left out.
func newScript(r *record.Recording, steps map[uint64]*step) *script {
	rows := rowsOf(r, steps)
	s := new(script)
	requests := append(slices.Clone(r.Requests), forgets(r)...)
	slices.SortStableFunc(requests, func(a, b record.Request) int { return cmp.Compare(a.ArrivedNS, b.ArrivedNS) })
	asks := make([]*ask, len(requests))
	newest := make(map[uint64]*ask)
	for i, q := range requests {
		a := &ask{id: q.Request, seq: stages.SeqID(q.Seq), rows: rows[q.Request], delayNS: q.ArrivedNS, last: true, forget: q.Request == forgetting}
		switch n := len(a.rows); {
		case n > 0:
			a.logits = a.rows[n-1].step.headNS > 0
		case !a.forget:
			continue
		}
		if j := before(requests[:i], asks, &q); j >= 0 {
			a.after, a.delayNS = asks[j], q.ArrivedNS-requests[j].EndedNS
			asks[j].then = append(asks[j].then, a)
		}
		if n := newest[q.Seq]; n != nil && !a.forget {
			n.last = false
		}
		if asks[i] = a; !a.forget {
			newest[q.Seq] = a
		}
		s.asks = append(s.asks, a)
	}
	return s
}

// forgetting is the number of requests that are to forget experts, which no others have.
const forgetting = 1<<64 - 1

// forgets returns when somebody had experts forgotten, in the form of requests.
func forgets(r *record.Recording) (all []record.Request) {
	kind := slices.Index(r.Meta.Messages, stages.KindForgetExperts.String())
	router, io := slices.Index(r.Meta.Stages, stages.Router.String()), slices.Index(r.Meta.Stages, stages.ExpertIO.String())
	for i := range r.Handled {
		h := &r.Handled[i]
		switch {
		case int(h.Message) != kind:
		case int(h.Stage) == router:
			all = append(all, record.Request{Request: forgetting, ArrivedNS: h.SentNS, EndedNS: h.EndedNS})
		case int(h.Stage) == io && len(all) > 0:
			all[len(all)-1].EndedNS = h.EndedNS
		}
	}
	return all
}

// begins returns when the run that counts began: when experts were forgotten last.
func begins(r *record.Recording) int64 {
	if f := forgets(r); len(f) > 0 {
		return f[len(f)-1].EndedNS
	}
	return 0
}

// before returns which request a caller had awaited before the next one: the last one of the same
// sequence, or else the last one of all that had ended by then.
func before(earlier []record.Request, asks []*ask, q *record.Request) int {
	best := -1
	for i := range earlier {
		e := &earlier[i]
		switch {
		case asks[i] == nil || e.EndedNS > q.ArrivedNS:
		case e.Seq == q.Seq && (best < 0 || earlier[best].Seq != q.Seq || e.EndedNS >= earlier[best].EndedNS):
			best = i
		case best < 0 || earlier[best].Seq != q.Seq && e.EndedNS >= earlier[best].EndedNS:
			best = i
		}
	}
	return best
}

// rowsOf returns the rows of each request, in order.
func rowsOf(r *record.Recording, steps map[uint64]*step) map[uint64][]rowOf {
	rows := make(map[uint64][]rowOf)
	for _, g := range r.Segments {
		s := steps[g.Step]
		if s == nil {
			continue
		}
		for i := range g.Rows {
			rows[g.Request] = append(rows[g.Request], rowOf{s, g.Row + i})
		}
	}
	return rows
}

// stepsOf reads the steps that the recording has in full: those whose end it knows and that did not
// fail.
func stepsOf(r *record.Recording) map[uint64]*step {
	m := &r.Meta.Model
	steps := make(map[uint64]*step)
	for _, s := range r.Steps {
		steps[s.Step] = &step{id: s.Step, rows: s.Rows, layers: make([]layer, m.Layers)}
	}
	ended := make(map[uint64]bool)
	for _, s := range r.StepsEnded {
		ended[s.Step] = s.Failed == 0
	}
	for id := range steps {
		if !ended[id] {
			delete(steps, id)
		}
	}
	readPicks(r, steps)
	readTimes(r, steps)
	return steps
}

// readPicks notes what each row picked, and what later routers ranked.
func readPicks(r *record.Recording, steps map[uint64]*step) {
	m := &r.Meta.Model
	k, wide := m.TopK, min(2*m.TopK, m.Experts)
	for i := range r.Picks {
		p := &r.Picks[i]
		s := steps[p.Step]
		if s == nil || int(p.Layer) >= m.Layers || p.Row >= s.rows || p.Ahead > 2 {
			continue
		}
		l := &s.layers[p.Layer]
		to, width := &l.picks, k
		if p.Ahead > 0 {
			to, width = &l.ranks[p.Ahead-1], wide
		}
		if *to == nil {
			*to = unknown(int(s.rows) * width)
		}
		if at := int(p.First); at < width {
			n := min(int(p.N), width-at, len(p.Experts))
			copy((*to)[int(p.Row)*width+at:], p.Experts[:n])
		}
	}
	counts := make(map[[2]uint64][]record.Use)
	for _, u := range r.Uses {
		key := [2]uint64{u.Step, uint64(u.Layer)}
		counts[key] = append(counts[key], u)
	}
	for key, uses := range counts {
		if s := steps[key[0]]; s != nil && int(key[1]) < m.Layers {
			fill(&s.layers[key[1]], uses, int(s.rows), k)
		}
	}
}

func unknown(n int) []int16 {
	v := make([]int16, n)
	for i := range v {
		v[i] = -1
	}
	return v
}

// fill gives the rows whose picks were not recorded experts that the layer's uses leave, so that
// each expert has as many rows as it had.
func fill(l *layer, uses []record.Use, rows, k int) {
	if l.picks == nil {
		l.picks = unknown(rows * k)
	}
	left := make(map[int16]int)
	for _, u := range uses {
		left[int16(u.Expert)] += int(u.Rows)
	}
	for _, e := range l.picks {
		if e >= 0 {
			left[e]--
		}
	}
	var spread []int16 // each expert as often as it is left, one after the other
	for _, u := range uses {
		for range max(0, left[int16(u.Expert)]) {
			spread = append(spread, int16(u.Expert))
		}
		left[int16(u.Expert)] = 0
	}
	// Dealing them out row by row gives no row an expert twice, as long as none has more rows than
	// there are.
	var open []int
	for row := range rows {
		if l.picks[row*k] < 0 {
			open = append(open, row)
		}
	}
	for i, e := range spread {
		if n := len(open); n > 0 && i/n < k {
			l.picks[open[i%n]*k+i/n] = e
		}
	}
}

// readTimes notes what the device took.
func readTimes(r *record.Recording, steps map[uint64]*step) {
	for i := range r.Submissions {
		b := &r.Submissions[i]
		s := steps[b.Step]
		if s == nil {
			continue
		}
		ns := float64(b.EndedNS - b.BeganNS - b.PausedNS)
		if b.BeganNS == 0 {
			ns = float64(b.DeviceNS)
		}
		if b.Part == record.Head {
			s.headNS = ns
			continue
		}
		if int(b.Layer) >= len(s.layers) {
			continue
		}
		switch l := &s.layers[b.Layer]; b.Part {
		case record.Mix, record.Layers:
			l.mixNS = ns
		case record.Ahead:
			l.aheadNS = ns
		case record.SharedExpert:
			l.shareNS = ns
		case record.Experts:
			l.waves = append(l.waves, wave{uses: b.Uses, picks: b.Picks, ns: ns})
		}
	}
	for _, s := range steps {
		for i := range s.layers {
			if w := s.layers[i].waves; len(w) > 0 {
				w[len(w)-1].last = true
			}
		}
	}
}
