package whatif

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// world is a simulated engine whose times are known: a law of its device and of its disk, and texts
// that pick experts by a law of their own. What it does is recorded, as a real engine's work is.
type world struct {
	meta  record.Meta
	texts int
	rows  int // of a prompt
	decode,
	at int // tokens, and how many texts at once
	seed     uint64
	noise    float64 // of times, as a share
	disk     diskLaw
	slowed   float64
	shared   bool
	thinksNS int64
	change   func(*laws) // of the world's laws; may be nil
	prompts  []int       // rows of each text's prompt; nil: rows
	still    []bool      // texts whose rows all pick the same; nil: none
	forget   bool        // experts are forgotten after the first text
}

func smallWorld() world {
	m := record.Meta{
		Model:  record.Model{Name: "simulated", Layers: 6, Routed: []bool{false, true, true, true, true, true}, Experts: 32, TopK: 4, SlotBytes: 1 << 20, Vocab: 1},
		Engine: record.Engine{Slots: 60, WaveSlots: 30, RingDepth: 2, ReadWorkers: 4, QueuedReads: 8, LastToken: true, NextGate: true, Ahead: 2, AheadRows: 12, ScoresAhead: 2, ScoresAheadRows: 12, FirstRouted: 1, ChunkRows: 64, StepsInFlight: 2, PromptShare: 0.65, Preempts: true},
	}
	m.Stages, m.Messages = stageNames(), kindNames()
	return world{meta: m, texts: 2, rows: 20, decode: 40, at: 1, seed: 1, disk: diskLaw{100_000, 500_000}, shared: true, thinksNS: 30_000}
}

// script makes texts: popular experts, some that stay from row to row, and routers that predict
// with some noise.
func (w *world) script() (*script, map[uint64]*step) {
	r := rand.New(rand.NewPCG(w.seed, 1))
	m := &w.meta.Model
	popular := make([][]float64, m.Layers)
	for l := range popular {
		for range m.Experts {
			popular[l] = append(popular[l], r.NormFloat64())
		}
	}
	s, steps := new(script), make(map[uint64]*step)
	var ends []*ask // of the last text of each place
	for t := range w.texts {
		var before *ask
		if t >= w.at {
			before = ends[t-w.at]
		}
		if w.forget && t == w.at {
			f := &ask{after: before, delayNS: w.thinksNS, forget: true}
			before.then = append(before.then, f)
			s.asks, before = append(s.asks, f), f
		}
		lasting := make([][]float64, m.Layers)
		for l := range lasting {
			lasting[l] = make([]float64, m.Experts)
		}
		for i := range 1 + w.decode {
			rows := 1
			if i == 0 {
				rows = w.rows
				if w.prompts != nil {
					rows = w.prompts[t]
				}
			}
			st := w.newStep(r, uint64(len(steps)+1), rows, popular, lasting)
			if w.still != nil && w.still[t] {
				st.stand(m.TopK)
			}
			steps[st.id] = st
			a := &ask{id: st.id, seq: stages.SeqID(t + 1), logits: true, after: before, delayNS: w.thinksNS, last: i == w.decode}
			for row := range rows {
				a.rows = append(a.rows, rowOf{st, int32(row)})
			}
			if before != nil {
				before.then = append(before.then, a)
			} else {
				a.delayNS = int64(t+1) * 1_000_000
			}
			s.asks = append(s.asks, a)
			before = a
		}
		ends = append(ends, before)
	}
	return s, steps
}

// newStep draws what rows pick.
func (w *world) newStep(r *rand.Rand, id uint64, rows int, popular, lasting [][]float64) *step {
	m := &w.meta.Model
	st := &step{id: id, rows: int32(rows), layers: make([]layer, m.Layers), headNS: 1}
	for l := range m.Layers {
		if !m.Routed[l] {
			continue
		}
		of := &st.layers[l]
		for range rows {
			score := make([]float64, m.Experts)
			for e := range score {
				lasting[l][e] = 0.8*lasting[l][e] + 0.6*r.NormFloat64()
				score[e] = 1.5*popular[l][e] + lasting[l][e]
			}
			of.picks = append(of.picks, best(score, m.TopK, r, 0)...)
			for ahead := range of.ranks {
				of.ranks[ahead] = append(of.ranks[ahead], best(score, 2*m.TopK, r, 0.5*float64(1+ahead))...)
			}
		}
	}
	return st
}

// stand makes all rows pick the same.
func (st *step) stand(topK int) {
	for l := range st.layers {
		for i := range st.layers[l].picks {
			st.layers[l].picks[i] = int16(i % topK)
		}
	}
}

// best returns the n best of some scores with noise added.
func best(score []float64, n int, r *rand.Rand, noise float64) []int16 {
	v := slices.Clone(score)
	all := make([]int16, len(v))
	for i := range v {
		v[i] += noise * r.NormFloat64()
		all[i] = int16(i)
	}
	slices.SortFunc(all, func(a, b int16) int { return cmp.Compare(v[b], v[a]) })
	return all[:n]
}

// laws are those of the world.
func (w *world) laws() laws {
	r := rand.New(rand.NewPCG(w.seed, 2))
	noisy := func(ns float64) float64 { return math.Round(ns * math.Exp(w.noise*r.NormFloat64())) }
	l := laws{disk: w.disk, device: [2]float64{2_000, 15_000}, wakes: [2]float64{20_000, 20_000}, slowed: w.slowed}
	for s := range l.message {
		for k := range l.message[s] {
			l.message[s][k] = float64(1_000 + 100*(s+k%7))
		}
	}
	l.op = func(o *operation) float64 {
		rows := float64(len(o.step.Batch.Rows))
		switch o.part {
		case record.Head:
			return noisy(700_000)
		case record.Ahead:
			return noisy(20_000 + 5_000*rows)
		case record.SharedExpert:
			return noisy(40_000 + 20_000*rows)
		case record.Experts:
			ns := 15_000 + 60_000*float64(o.uses) + 7_000*float64(o.picks)
			if o.last {
				ns += 9_000
			}
			return noisy(ns)
		}
		return noisy(150_000 + 10_000*float64(o.step.Layer) + 30_000*rows)
	}
	l.start = func(_ *operation, woken bool) float64 {
		if woken {
			return 15_000
		}
		return 2_000
	}
	l.lag = func(*reading, bool) float64 { return 20_000 }
	l.source = func(*stages.Step) uint64 { return 0 }
	l.work = func(*reading) float64 { return math.Exp(w.noise * r.NormFloat64()) }
	if w.change != nil {
		w.change(&l)
	}
	return l
}

// run plays the world with settings and records it.
func (w *world) run(t *testing.T, change Settings) (*record.Recording, Result) {
	t.Helper()
	s, steps := w.script()
	set, err := change.apply(&record.Recording{Meta: w.meta})
	if err != nil {
		t.Fatal(err)
	}
	o := &observed{steps: steps, laws: w.laws()}
	if w.shared {
		steps[1].layers[1].shareNS = 1
	}
	meta := w.meta
	meta.Engine = set.Engine
	r, err := newReplay(&meta, set, o, s)
	if err != nil {
		t.Fatal(err)
	}
	r.e.laws = o.laws
	c := newRecorder(r, &meta)
	if err := r.run(); err != nil {
		t.Fatal(err)
	}
	for r.e.err == nil && len(r.e.events) > 0 && r.e.events[0].at <= r.callers.last+10_000_000 {
		if err := r.e.run(r.e.events[0].at); err != nil {
			t.Fatal(err)
		}
	}
	res, err := r.result()
	if err != nil {
		t.Fatal(err)
	}
	return c.finish(), res
}

// recorder records what an engine in simulated time does: the stages write what they know, and this
// what shells and meter of an engine do.
type recorder struct {
	r   *replay
	log *record.Log // what the stages write
	rec *record.Recording
}

func newRecorder(r *replay, m *record.Meta) *recorder {
	c := &recorder{r: r, log: record.NewLog(64 << 20), rec: &record.Recording{Meta: *m}}
	for i := range r.e.out {
		r.e.out[i].Log = c.log
	}
	r.e.watch = watcher{
		handled: func(to stages.StageID, m stages.Message, at stages.Step, sent, began, ended int64) {
			c.rec.Handled = append(c.rec.Handled, record.Handled{
				Step: uint64(at.ID), SentNS: sent, BeganNS: began, EndedNS: ended, Layer: int32(at.Layer), Stage: uint8(to), Message: uint8(m.MessageKind()),
			})
		},
		computed: c.computed,
	}
	return c
}

func (c *recorder) computed(o *operation) {
	c.rec.Submissions = append(c.rec.Submissions, record.Submission{
		Step: uint64(o.step.ID), SubmittedNS: o.submittedNS, BeganNS: o.beganNS, EndedNS: o.endedNS, DeviceNS: o.DeviceNS(), PausedNS: o.pausedNS,
		Layer: int32(o.step.Layer), Wave: int32(o.wave), Rows: int32(len(o.step.Batch.Rows)), Uses: int32(o.uses), Picks: int32(o.picks), Part: o.part,
	})
}

// finish returns what was recorded.
func (c *recorder) finish() *record.Recording {
	all := c.log.Recording()
	all.Meta, all.Handled, all.Submissions = c.rec.Meta, c.rec.Handled, c.rec.Submissions
	return all
}
