package schedule_test

import (
	"math/rand/v2"
	"testing"

	"github.com/moeflux/moeflux-actor/stages/schedule"
)

// steady is a device that takes 10 ms for a row, and 13 to 25 ms for 16.
func steady(r *rand.Rand) costs {
	return costs{layer: concave(1.2e6, 1.2e6*(1+20*(1+r.Float64()))), head: 0.4e6, think: 30e3, noise: 0.05}
}

// apart returns how many steps the tokens of all sequences came in since a moment, and how many
// there were.
func (r *rig) apart(since int64) (steps, tokens int) {
	at := map[int64]bool{}
	for _, all := range r.tokens {
		for _, t := range all {
			if t > since {
				tokens, at[t] = tokens+1, true
			}
		}
	}
	return len(at), tokens
}

// TestTogether lets sequences begin to decode at random moments. Within a few tokens they share
// all steps, be they two or many, quick with their next request or slow, beside a prompt or not.
func TestTogether(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 5))
		c := steady(r)
		c.think = int64(20e3 + 2e6*r.Float64())
		n := []int{2, 3, 4, 16}[r.IntN(4)]
		g := newRig(schedule.Config{Rows: 512, Steps: 1 + r.IntN(2), Layers: 8, Share: 0.65, Preempts: r.IntN(4) > 0}, c, seed)
		for i := range n {
			g.decoder(i, int64(50e6*r.Float64()))
		}
		g.run(t, func() bool { return g.least() >= 8 })
		since := g.now
		if r.IntN(2) == 0 {
			g.prompt(100, g.now, 2000)
		}
		g.run(t, func() bool { return g.least() >= 40 })
		if steps, tokens := g.apart(since); tokens < n*steps*9/10 {
			t.Errorf("seed %d: %d sequences that ask again within %d µs got %d tokens in %d steps, %+v, prompt %v", seed, n, c.think/1000, tokens, steps, g.cfg, g.prompts)
		}
	}
}

// TestNobodyWaitsForTheSlow lets a sequence decode beside one whose caller takes long. It has its
// tokens as if it were alone, but for steps that the other has.
func TestNobodyWaitsForTheSlow(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 6))
		c := steady(r)
		slow := int64(15e6 + 100e6*r.Float64())
		run := func(beside bool) (middle int64) {
			g := newRig(schedule.Config{Rows: 512, Steps: 2, Layers: 8, Share: 0.65, Preempts: true}, c, seed)
			g.decoder(1, 0)
			if beside {
				g.slow = map[int]int64{2: slow}
				g.decoder(2, 5e6)
			}
			g.run(t, func() bool { return len(g.tokens[1]) >= 60 })
			gaps := g.gaps(1, g.tokens[1][20], g.now)
			return gaps[len(gaps)/2]
		}
		if alone, beside := run(false), run(true); beside > alone*11/10 {
			t.Errorf("seed %d: %d µs from token to token, %d beside a sequence that asks again after %d ms", seed, alone/1000, beside/1000, slow/1e6)
		}
	}
}

// couple is a schedule with two sequences that decode.
type couple struct {
	t   *testing.T
	s   schedule.Schedule[*chunk]
	now int64
	id  uint64
}

// newCouple returns one that knows what steps of one and of two rows take.
func newCouple(t *testing.T, one, two int64) *couple {
	p := &couple{t: t, s: schedule.New[*chunk](schedule.Config{Rows: 8, Steps: 1, Layers: 1, Share: 0.5, Preempts: true})}
	p.pass(1)
	for range 20 {
		p.step(one, 1)
		p.step(two, 1, 2)
	}
	return p
}

func (p *couple) pass(ns int64) {
	p.now += ns
	p.s.Now(p.now)
}

// step has a step of some sequences take some time.
func (p *couple) step(ns int64, all ...int) {
	p.t.Helper()
	for _, seq := range all {
		p.s.Back(uint64(seq))
		p.s.Add(&chunk{id: seq, left: 1})
	}
	p.id++
	if _, shares := p.s.Next(p.id); len(shares) != len(all) {
		p.t.Fatalf("a step of %d, want %d", len(shares), len(all))
	}
	p.s.Begun(p.id, 1)
	p.s.Asked(p.id)
	p.pass(ns)
	p.s.Retired(p.id, 1)
	p.s.Ended(p.id)
}

// takes has the second sequence ask some time after its token.
func (p *couple) takes(ns int64) {
	p.s.Expect(2)
	p.pass(ns)
	p.s.Back(2)
}

// waits returns how long the first sequence waits for the second, which has got its token now.
func (p *couple) waits() (ns int64) {
	p.s.Expect(2)
	c := &chunk{id: 1, left: 1}
	p.s.Add(c)
	p.id++
	if _, shares := p.s.Next(p.id); len(shares) > 0 {
		p.s.Ended(p.id)
		return 0
	}
	round, at := p.s.Timer()
	if round == 0 {
		p.t.Fatal("a wait without an end")
	}
	p.s.WaitOver(round)
	p.s.Remove(c)
	return at - p.now
}

// TestCompanyPays waits for a sequence as long as a step of two rows takes less than two steps.
func TestCompanyPays(t *testing.T) {
	for _, c := range []struct{ takes, waits int64 }{ // of the second sequence until it asks again; of the first
		{0, 625_000}, {400_000, 625_000}, // a sixteenth of a step
		{600_000, 750_000}, {4_000_000, 5_000_000}, {4_700_000, 5_875_000}, {4_900_000, 0}, {50_000_000, 0},
	} {
		p := newCouple(t, 10_000_000, 14_000_000)
		p.takes(c.takes)
		if got := p.waits(); got != c.waits {
			t.Errorf("after %d µs it waits %d µs, want %d", c.takes/1000, got/1000, c.waits/1000)
		}
	}
	p := newCouple(t, 10_000_000, 19_600_000)
	if got := p.waits(); got != 400_000 {
		t.Errorf("where two rows save 400 µs it waits %d", got/1000)
	}
	p = newCouple(t, 10_000_000, 19_900_000)
	if got := p.waits(); got != 0 {
		t.Errorf("where two rows take as long as two steps it waits %d µs", got/1000)
	}
}

// TestCompanyOfGrownTexts measures steps of one and of three rows while texts are short, and steps
// of four rows once they are longer. A text that is ready first must still wait for the others:
// four rows take longer than one and three took back then, but not longer than they take now.
func TestCompanyOfGrownTexts(t *testing.T) {
	p := newCouple(t, 6_000_000, 8_000_000)
	for range 40 {
		p.step(10_000_000, 1, 2, 3)
	}
	for range 10 {
		p.step(18_000_000, 1, 2, 3, 4)
	}
	p.s.Expect(3)
	p.s.Expect(4)
	if got := p.waits(); got != 500_000 {
		t.Errorf("it waits %d µs, want 500, a sixteenth of a step", got/1000)
	}
}

// TestTakesFade holds that a caller that took long once is soon expected as early as before.
func TestTakesFade(t *testing.T) {
	p := newCouple(t, 10_000_000, 14_000_000)
	p.takes(4_000_000)
	before := p.waits()
	for i := range 30 {
		p.takes(50_000)
		now := p.waits()
		if now > before || i > 0 && now == before && now > 625_000 {
			t.Errorf("after %d quick tokens it waits %d µs, before that %d", i+1, now/1000, before/1000)
		}
		before = now
	}
	if before != 625_000 {
		t.Errorf("after 30 quick tokens it waits %d µs, want a sixteenth of a step", before/1000)
	}
	p.takes(4_000_000)
	p.s.Unexpect(2)
	if got := p.waits(); got != 625_000 {
		t.Errorf("for one that was forgotten it waits %d µs, want a sixteenth of a step", got/1000)
	}
}
