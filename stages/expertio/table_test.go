package expertio

import (
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/stages"
)

// placing is a stage of which every use is asked for. Hosts answer at once.
type placing struct {
	t    *testing.T
	c    *Core
	out  stages.Outbox
	asks []stages.Ask // of the last message
}

const (
	placedLayers, placedExperts, placedPicks = 2, 16, 4
)

func newPlacing(t *testing.T, hosts int) *placing {
	c, err := New(Config{Layers: placedLayers, Experts: placedExperts, ExpertBytes: 1, Slots: 2, WaveSlots: 1, RingDepth: 2, Hosts: hosts, AskPicks: 100})
	if err != nil {
		t.Fatal(err)
	}
	return &placing{t: t, c: c}
}

// step gives the core a message, reads what is to be read here and computes it at once, and returns
// what hosts are told of placements.
func (p *placing) step(m stages.Message) (shares []stages.HostShare) {
	p.t.Helper()
	p.asks = nil
	for todo := []stages.Message{m}; len(todo) > 0; todo = todo[1:] {
		if err := p.c.Step(todo[0], &p.out); err != nil {
			p.t.Fatal(err)
		}
		for _, g := range p.out.Reads {
			for _, r := range g.Reads {
				todo = append(todo, &stages.ExpertsRead{Results: []stages.ReadResult{{Slot: r.Slot, Gen: r.Gen}}})
			}
		}
		for _, s := range p.out.Sends {
			if w, ok := s.Msg.(*stages.WaveResident); ok && len(w.Slots) > 0 {
				todo = append(todo, &stages.SlotsReleased{Step: w.Step, Wave: w.Wave, Slots: slices.Clone(w.Slots)})
			}
		}
		p.asks, shares = append(p.asks, p.out.Asks...), append(shares, p.out.Shares...)
		p.out.Reset()
	}
	return shares
}

// layer routes a layer of a step of one row.
func (p *placing) layer(id, layer, first int) []stages.HostShare {
	p.t.Helper()
	plan := &stages.RoutePlan{TopK: placedPicks}
	for i := range int32(placedPicks) {
		plan.Uses = append(plan.Uses, stages.ExpertUse{Expert: int32(first) + i, Pairs: []int32{i}})
	}
	batch := &stages.Batch{Rows: make([]stages.Row, 1), Segments: []stages.Segment{{Rows: 1}}, Costs: make([]stages.Cost, 1), Urgent: true}
	return p.step(&stages.LayerRouted{Step: stages.Step{ID: stages.StepID(id), Layer: layer, Batch: batch}, Plan: plan})
}

// answer answers the asks of the last message; a host takes so long for each use.
func (p *placing) answer(took map[int]int64) (shares []stages.HostShare) {
	p.t.Helper()
	for _, a := range slices.Clone(p.asks) {
		m := &stages.ExpertsAnswered{Ask: a.ID, ComputedNS: took[a.Host] * int64(len(a.Uses))}
		for _, u := range a.Uses {
			m.Uses = append(m.Uses, stages.AnsweredUse{Use: u, Rows: make([]float32, 1)})
		}
		shares = append(shares, p.step(m)...)
	}
	return shares
}

// TestPlacementBetweenSteps has a host join amid a step: the step goes on by the old placement, the
// next one goes by the new, and hosts hear of it in between.
func TestPlacementBetweenSteps(t *testing.T) {
	p := newPlacing(t, 2)
	host := func(h, experts int) []stages.HostShare {
		return p.step(&stages.HostChanged{Host: h, Experts: experts, Asks: 8})
	}
	if s := host(0, 1000); len(s) != 1 || s[0].Host != 0 || s[0].Epoch != 1 || len(s[0].Keys) < 28 {
		t.Fatalf("a host that joins is told %+v", s)
	}
	p.layer(1, 0, 0)
	for _, a := range p.asks {
		if a.Host != 0 || a.Epoch != 1 {
			t.Fatalf("an ask %+v", a)
		}
	}
	asks := p.asks
	if s := host(1, 1000); len(s) != 0 {
		t.Errorf("amid a step hosts are told %+v", s)
	}
	p.asks = asks
	p.answer(nil)
	p.layer(1, 1, 0)
	if len(p.asks) != 1 || p.asks[0].Host != 0 || p.asks[0].Epoch != 1 {
		t.Errorf("the step goes on with %+v", p.asks)
	}
	s := p.answer(nil)
	if len(s) != 2 || s[0].Epoch != 2 || s[1].Epoch != 2 || len(s[1].Keys) < 10 {
		t.Errorf("after the step hosts are told %+v", s)
	}
	seen := map[int]bool{}
	for first := 0; first < placedExperts; first += placedPicks {
		p.layer(2+first, 0, first)
		for _, a := range p.asks {
			seen[a.Host] = true
			if a.Epoch != 2 {
				t.Errorf("an ask of the next steps %+v", a)
			}
		}
	}
	if !seen[0] || !seen[1] {
		t.Errorf("the next steps ask hosts %v", seen)
	}
}

// TestPlacementBySpeed has a host that is slow. Where each has memory for half of the experts, the
// slow one comes to have those that nobody uses. Where both have all, the quick one is asked for
// nearly all from the first answers on.
func TestPlacementBySpeed(t *testing.T) {
	for _, tc := range []struct {
		room   int
		before int // the fewest experts that the slow host computes at first
		epoch  uint32
	}{{placedLayers * placedExperts / 2, 60, 3}, {placedLayers * placedExperts, 1, 2}} {
		placedBySpeed(t, tc.room, tc.before, tc.epoch)
	}
}

func placedBySpeed(t *testing.T, room, least int, epoch uint32) {
	t.Helper()
	p := newPlacing(t, 2)
	for h := range 2 {
		p.step(&stages.HostChanged{Host: h, Experts: room, Asks: 8})
	}
	uses := func(from, steps int) (of [2]int) {
		for id := from; id < from+steps; id++ {
			for layer := range placedLayers {
				p.layer(id, layer, placedPicks*(id%2)) // half of the experts are never used
				for _, a := range p.asks {
					of[a.Host] += len(a.Uses)
				}
				p.answer(map[int]int64{0: 9000, 1: 1000})
			}
		}
		return of
	}
	before := uses(1, 40)
	uses(41, 400)
	after := uses(441, 40)
	if before[0] < least || 10*after[0] > after[1] || p.c.away.table.Epoch < epoch {
		t.Errorf("with memory for %d hosts compute %v experts at first and %v later, in epoch %d", room, before, after, p.c.away.table.Epoch)
	}
}

// TestHeldUp has a host take very long for its first answers, or for many later ones, and then as
// long as the other: it is asked for its part again, and soon if a few answers were all, or if the
// other one was held up, too.
func TestHeldUp(t *testing.T) {
	slow, both, quick := map[int]int64{0: 1e5, 1: 1000}, map[int]int64{0: 1e5, 1: 3e4}, map[int]int64{0: 1000, 1: 1000}
	for _, tc := range []struct {
		name         string
		took         map[int]int64
		before, held int     // steps in which hosts are quick, and then as took says
		most         float64 // the most of the asks that it gets in the next 20 steps
		within       int     // steps until it has its part
	}{
		{"first answer", slow, 0, 1, 1, 0}, {"first answers", slow, 0, 4, 1, 0}, {"later answers", slow, 100, 4, 1, 0},
		{"many first answers", slow, 0, 200, 0.3, 100}, {"many later answers", slow, 100, 200, 0.3, 100},
		{"all first answers", both, 0, 1, 1, 0}, {"many of all", both, 0, 200, 1, 0},
	} {
		p := newPlacing(t, 2)
		for h := range 2 {
			p.step(&stages.HostChanged{Host: h, Experts: placedLayers * placedExperts, Asks: 8})
		}
		id := 0
		uses := func(steps int, took map[int]int64) float64 { // the first host's share
			of := [2]int{}
			for range steps {
				id++
				for layer := range placedLayers {
					p.layer(id, layer, placedPicks*(id%2))
					for _, a := range p.asks {
						of[a.Host] += len(a.Uses)
					}
					p.answer(took)
				}
			}
			return float64(of[0]) / float64(of[0]+of[1])
		}
		if tc.before > 0 {
			uses(tc.before, quick)
		}
		uses(tc.held, tc.took)
		share := uses(20, quick)
		uses(tc.within, quick)
		if later := uses(20, quick); share > tc.most || later < 0.25 {
			t.Errorf("%s: a host that was held up gets %.2f of the asks, and then %.2f", tc.name, share, later)
		}
	}
}

// TestGone has a slow host leave for good and a quick one get its number: nothing of the first
// one's speed is known of it. That it has gone while it could not be asked moves nothing.
func TestGone(t *testing.T) {
	p := newPlacing(t, 2)
	join := func(h int) {
		p.step(&stages.HostChanged{Host: h, Experts: placedLayers * placedExperts, Asks: 8})
	}
	join(0)
	join(1)
	for id := 1; id < 40; id++ {
		p.layer(id, 0, 0)
		p.answer(map[int]int64{0: 9000, 1: 1000})
	}
	if cost := p.c.away.hosts[0].cost; cost < 3000 {
		t.Fatalf("the slow host is taken to need %v ns", cost)
	}
	p.step(&stages.HostChanged{Host: 0})
	epoch := p.c.away.table.Epoch
	p.step(&stages.HostChanged{Host: 0, Gone: true})
	if cost := p.c.away.hosts[0].cost; cost != 0 || p.c.away.table.Epoch != epoch {
		t.Errorf("of one that has gone it is known that it needs %v ns; the epoch goes from %d to %d", cost, epoch, p.c.away.table.Epoch)
	}
	p.step(&stages.HostChanged{Host: 1, Gone: true}) // at once, without a word before
	if c := &p.c.away; c.some || c.hosts[1].cost != 0 || c.table.Epoch == epoch {
		t.Errorf("both have gone, and %+v", c.hosts)
	}
}
