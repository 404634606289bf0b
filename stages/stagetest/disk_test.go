package stagetest_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/model/route"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/expertio"
	"github.com/moeflux/moeflux-actor/stages/router"
)

// machine is router and expert-IO with a disk and a device that take simulated time: one read and
// one wave at a time. It decodes one row after the other.
type machine struct {
	router *router.Core
	io     *expertio.Core
	out    [2]stages.Outbox // of the two

	now      int64 // nanoseconds
	waiting  [2][]stages.Read
	recalled []stages.ReadResult // and not told yet
	reading  []stages.Read       // none or one
	readEnds int64
	waves    []*stages.WaveResident // with the device, in order
	waveEnds int64
	left     int // uses of the layer that are not computed

	readNS, useNS int64
	diskNS        int64
}

const simLayers, simExperts, simTopK = 24, 64, 6

func newMachine(t *testing.T, slots int, readNS, useNS int64, lastToken, nextGate bool, ahead int) *machine {
	t.Helper()
	m := &machine{readNS: readNS, useNS: useNS}
	m.router = router.New(router.Config{
		Layers: simLayers, Experts: simExperts, TopK: simTopK, Rule: router.Rule{Rule: route.Rule{NormTopK: true}}, LastToken: lastToken, NextGate: nextGate,
		Ahead: ahead, AheadRows: 1, PrefetchSlots: slots - simTopK,
	})
	var err error
	if m.io, err = expertio.New(expertio.Config{
		Layers: simLayers, Experts: simExperts, ExpertBytes: 1, Slots: slots, WaveSlots: simTopK, RingDepth: 2,
	}); err != nil {
		t.Fatal(err)
	}
	return m
}

// give lets a core handle a message, and does what it asks for.
func (m *machine) give(to stages.StageID, msg stages.Message) error {
	core, out := stages.Core(m.router), &m.out[0]
	if to == stages.ExpertIO {
		core, out = m.io, &m.out[1]
		if h := msg.Head(); h != nil {
			h.SentNS = m.now
		}
	}
	out.Reset()
	if err := core.Step(msg, out); err != nil {
		return err
	}
	for _, g := range out.Reads {
		class := 0
		if g.Rank.Speculative() {
			class = 1
		}
		m.waiting[class] = append(m.waiting[class], g.Reads...)
	}
	for _, h := range out.Hurries {
		if i := slices.IndexFunc(m.waiting[1], func(r stages.Read) bool { return r.Slot == h.Slot && r.Gen == h.Gen }); i >= 0 {
			m.waiting[0] = append(m.waiting[0], m.waiting[1][i])
			m.waiting[1] = slices.Delete(m.waiting[1], i, i+1)
		}
	}
	m.begin()
	for _, h := range slices.Clone(out.Recalls) {
		if i := slices.IndexFunc(m.waiting[1], func(r stages.Read) bool { return r.Slot == h.Slot && r.Gen == h.Gen }); i >= 0 {
			m.waiting[1] = slices.Delete(m.waiting[1], i, i+1)
			m.recalled = append(m.recalled, stages.ReadResult{Slot: h.Slot, Gen: h.Gen, Err: stages.ErrRecalled})
		}
	}
	for _, s := range slices.Clone(out.Sends) {
		switch msg := s.Msg.(type) {
		case *stages.WaveResident:
			m.waves = append(m.waves, msg)
			if len(m.waves) == 1 {
				m.waveEnds = m.now + m.useNS*int64(len(msg.Slots))
			}
		case *stages.StepFailed:
			return msg.Err
		default:
			if s.To == stages.ExpertIO {
				if err := m.give(s.To, msg); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// tell tells expert-IO of reads that were recalled.
func (m *machine) tell() error {
	for len(m.recalled) > 0 {
		all := m.recalled
		m.recalled = nil
		if err := m.give(stages.ExpertIO, &stages.ExpertsRead{Results: all}); err != nil {
			return err
		}
	}
	return nil
}

// begin lets the disk begin its next read.
func (m *machine) begin() {
	for class := range m.waiting {
		if len(m.reading) == 0 && len(m.waiting[class]) > 0 {
			m.reading = append(m.reading, m.waiting[class][0])
			m.waiting[class] = m.waiting[class][1:]
			m.readEnds = m.now + m.readNS
			m.diskNS += m.readNS
		}
	}
}

// event lets the next thing happen, if that is before a time.
func (m *machine) event(before int64) (bool, error) {
	disk, device := int64(math.MaxInt64), int64(math.MaxInt64)
	if len(m.reading) > 0 {
		disk = m.readEnds
	}
	if len(m.waves) > 0 {
		device = m.waveEnds
	}
	switch {
	case min(disk, device) >= before:
		return false, nil
	case disk <= device:
		m.now = disk
		r := m.reading[0]
		m.reading = m.reading[:0]
		m.begin()
		return true, m.give(stages.ExpertIO, &stages.ExpertsRead{Results: []stages.ReadResult{{Slot: r.Slot, Gen: r.Gen}}})
	default:
		m.now = device
		w := m.waves[0]
		m.waves = m.waves[1:]
		m.left -= len(w.Slots)
		if len(m.waves) > 0 {
			m.waveEnds = m.now + m.useNS*int64(len(m.waves[0].Slots))
		}
		return true, m.give(stages.ExpertIO, &stages.SlotsReleased{Step: w.Step, Wave: w.Wave, Slots: slices.Clone(w.Slots)})
	}
}

// pass lets time pass while the device computes something else than experts.
func (m *machine) pass(ns int64) error {
	until := m.now + ns
	for {
		if busy, err := m.event(until); err != nil || !busy {
			m.now = until
			return err
		}
	}
}

// token decodes one row. scores is [layers, experts]; one and two are the same as predicted one
// layer ahead and two.
func (m *machine) token(id int, scores, one, two [][]float32, mixNS, headNS int64) error {
	b := &stages.Batch{Rows: []stages.Row{{Seq: 1, Pos: int32(id)}}, Segments: []stages.Segment{{Seq: 1, Rows: 1, Pos: id}}, Costs: make([]stages.Cost, 1)}
	for layer := range scores {
		step := stages.Step{ID: stages.StepID(id + 1), Layer: layer, Batch: b}
		if err := m.give(stages.Router, &stages.BeginLayer{Step: step}); err != nil {
			return err
		}
		if err := m.pass(mixNS); err != nil {
			return err
		}
		var ahead []float32
		if layer+1 < len(scores) {
			ahead = append(ahead, one[layer+1]...)
		}
		if layer+2 < len(scores) {
			ahead = append(ahead, two[layer+2]...)
		}
		if err := m.tell(); err != nil {
			return err
		}
		m.left = simTopK
		chosen := &stages.PicksReady{Step: step, Picks: make([]int32, simTopK), Weights: make([]float32, simTopK)}
		new(route.Chooser).Choose(&route.Rule{NormTopK: true}, nil, scores[layer], chosen.Picks, chosen.Weights)
		if err := m.give(stages.Router, chosen); err != nil {
			return err
		}
		if len(ahead) > 0 {
			if err := m.give(stages.Router, &stages.ScoresAhead{Step: step, Scores: ahead}); err != nil {
				return err
			}
		}
		for m.left > 0 {
			busy, err := m.event(math.MaxInt64)
			if err != nil {
				return err
			}
			if !busy {
				return fmt.Errorf("row %d waits for ever in layer %d", id, layer)
			}
		}
	}
	return m.pass(headNS)
}

// routing draws scores of a text: of each expert a popularity, a part that stays from row to row
// for a while, and one that is new. What routers predict is the scores with noise added, twice as
// much two layers ahead.
type routing struct {
	r       *rand.Rand
	popular [][]float64
	lasting [][]float64
	noise   float64
}

func newRouting(seed uint64, noise float64) *routing {
	g := &routing{r: rand.New(rand.NewPCG(seed, 9)), noise: noise}
	for range simLayers {
		p, l := make([]float64, simExperts), make([]float64, simExperts)
		for e := range p {
			p[e], l[e] = 0.8*g.r.NormFloat64(), g.r.NormFloat64()
		}
		g.popular, g.lasting = append(g.popular, p), append(g.lasting, l)
	}
	return g
}

func (g *routing) next() (scores, one, two [][]float32) {
	const stays = 0.85
	for layer := range g.popular {
		var s, a, b []float32
		for e := range g.popular[layer] {
			g.lasting[layer][e] = stays*g.lasting[layer][e] + math.Sqrt(1-stays*stays)*g.r.NormFloat64()
			v := g.popular[layer][e] + g.lasting[layer][e] + 0.5*g.r.NormFloat64()
			s = append(s, float32(v))
			a = append(a, float32(v+g.noise*g.r.NormFloat64()))
			b = append(b, float32(v+2*g.noise*g.r.NormFloat64()))
		}
		scores, one, two = append(scores, s), append(one, a), append(two, b)
	}
	return scores, one, two
}

// TestSimulatedDisk decodes with slots for a quarter of the experts while reads and computing take
// simulated time, with routers that predict well, badly and not at all. Good predictors hide a
// good part of the waiting, bad ones cost next to nothing.
func TestSimulatedDisk(t *testing.T) {
	const (
		warm, tokens = 48, 96
		mixNS, useNS = 400_000, 80_000
		headNS       = 2_000_000
	)
	for _, noise := range []float64{0.25, 1, 50} {
		for _, readNS := range []int64{300_000, 1_000_000} {
			t.Run(fmt.Sprintf("noise=%g/readµs=%d", noise, readNS/1000), func(t *testing.T) {
				decode := func(lastToken, nextGate bool, ahead int) (ns float64, line string) {
					m := newMachine(t, simLayers*simExperts/4, readNS, useNS, lastToken, nextGate, ahead)
					g := newRouting(1, noise)
					var from, disk int64
					for i := range warm + tokens {
						if i == warm {
							from, disk = m.now, m.diskNS
						}
						scores, one, two := g.next()
						if err := m.token(i, scores, one, two, mixNS, headNS); err != nil {
							t.Fatal(err)
						}
					}
					st := &stages.Stats{}
					if err := m.give(stages.Router, &stages.CollectStats{Stats: st}); err != nil {
						t.Fatal(err)
					}
					if err := conserved(st); err != nil {
						t.Error(err)
					}
					var s stages.LayerStats
					for _, l := range st.Layers {
						s.Hits, s.Misses = s.Hits+l.Hits, s.Misses+l.Misses
						s.PrefetchHit, s.PrefetchLate, s.PrefetchWasted = s.PrefetchHit+l.PrefetchHit, s.PrefetchLate+l.PrefetchLate, s.PrefetchWasted+l.PrefetchWasted
						s.PrefetchDeclined, s.PrefetchPauses = s.PrefetchDeclined+l.PrefetchDeclined, s.PrefetchPauses+l.PrefetchPauses
						s.AheadHits, s.AheadPicks = s.AheadHits+l.AheadHits, s.AheadPicks+l.AheadPicks
						s.TwoAheadHits, s.TwoAheadPicks = s.TwoAheadHits+l.TwoAheadHits, s.TwoAheadPicks+l.TwoAheadPicks
						s.SamePicks, s.Picks = s.SamePicks+l.SamePicks, s.Picks+l.Picks
					}
					ns = float64(m.now-from) / tokens
					busy := float64(m.diskNS-disk) / tokens
					return ns, fmt.Sprintf("%6.1f ms a token, disk busy %4.1f %%; missing %d of %d; ahead: %d hits, %d late, %d wasted, %d declined, %d pauses; predicted %.2f, %.2f, row before %.2f",
						ns/1e6, 100*busy/ns, s.Misses, s.Hits+s.Misses, s.PrefetchHit, s.PrefetchLate, s.PrefetchWasted, s.PrefetchDeclined, s.PrefetchPauses,
						float64(s.AheadHits)/float64(s.AheadPicks), float64(s.TwoAheadHits)/float64(s.TwoAheadPicks), float64(s.SamePicks)/float64(s.Picks))
				}
				off, line := decode(false, false, 1)
				t.Logf("off            %s", line)
				for _, by := range []struct {
					name                string
					lastToken, nextGate bool
					ahead               int
				}{
					{"last-token, 1", true, false, 1}, {"last-token, 2", true, false, 2}, {"next-gate, 1", false, true, 1},
					{"next-gate, 2", false, true, 2}, {"both, 1", true, true, 1}, {"both, 2", true, true, 2},
				} {
					ns, line := decode(by.lastToken, by.nextGate, by.ahead)
					t.Logf("%-14s %s", by.name, line)
					if ns > 1.03*off {
						t.Errorf("%s: %.1f ms a token, %.1f without", by.name, ns/1e6, off/1e6)
					}
					if by.nextGate && noise < 1 && ns > 0.93*off {
						t.Errorf("%s: %.1f ms a token, %.1f without: too little is saved", by.name, ns/1e6, off/1e6)
					}
				}
			})
		}
	}
}
