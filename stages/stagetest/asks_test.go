package stagetest_test

import (
	"cmp"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/numcmp"
	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/dispatch"
)

// lender computes asks as an expert host does, with records straight from the files.
type lender struct {
	*dispatch.Lender
	p     *pack
	bench *dispatch.Bench
	slot  gpu.Buffer
}

func newLender(t *testing.T, p *pack) *lender {
	t.Helper()
	queue, err := p.dev.NewQueue()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { queue.Close() })
	l, err := dispatch.NewLender(p.cfg, p.experts.LayoutOf, p.dev, queue, p.weights)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	slot, err := p.dev.NewBuffer(p.experts.Layout().Bytes)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(slot.Release)
	b := l.NewBench()
	t.Cleanup(b.Release)
	return &lender{l, p, b, slot}
}

// answer computes one use.
func (l *lender) answer(a stages.Ask, use int32) ([]float32, error) {
	u, n := &a.Plan.Uses[use], l.p.cfg.HiddenSize
	work := &dispatch.Lent{Layer: a.Step.Layer, Experts: []dispatch.LentExpert{{Expert: int(u.Expert), View: gpu.View{Buf: l.slot}}}}
	for i, pair := range u.Pairs {
		row := int(pair) / a.Plan.TopK
		work.Inputs = append(work.Inputs, a.Plan.Inputs[row*n:(row+1)*n]...)
		work.Experts[0].Rows = append(work.Experts[0].Rows, int32(i))
	}
	out := make([]float32, len(u.Pairs)*n)
	if err := l.p.experts.ReadExpert(a.Step.Layer, int(u.Expert), l.slot.Bytes()); err != nil {
		return nil, err
	}
	var cmd gpu.Commands
	if err := l.bench.Encode(&cmd, work, out); err != nil {
		return nil, err
	}
	return out, l.p.dev.Run(&cmd)
}

// TestHosts plays the conversations of TestOrders with expert hosts that come and go at random
// moments, and answer late, in parts, twice or never: the bits are those of each conversation held
// alone.
func TestHosts(t *testing.T) {
	p := openPack(t, "qwen3_5_moe/bf16")
	all := scripts(p.cfg.VocabSize)
	want := p.alone(t, all)
	l := newLender(t, p)
	asked, hedged, shared, away, misses := 0, 0, 0, int64(0), int64(0)
	n := testenv.Rounds(40, 50, 1000)
	for i := range n {
		sd := uint64(i) + 1
		if *seed != 0 {
			sd = *seed
		}
		r := rand.New(rand.NewPCG(sd, 9))
		tu := randomTuning(r, p.cfg.NumExperts, len(p.cfg.Layers))
		tu.hosts, tu.askPicks = 1+r.IntN(4), 1+r.IntN(40)
		s := p.simulate(t, tu, r, faults{answer: l.answer})
		got, errs, err := s.play(all)
		if err = errors.Join(append(errs, err)...); err == nil {
			err = sameBits(got, want)
		}
		if err != nil {
			t.Fatalf("seed %d, %+v: %v", sd, tu, err)
		}
		st, err := s.stats()
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range st.Layers {
			away, misses = away+x.Away, misses+x.Misses
		}
		asked, hedged, shared = asked+s.Asked, hedged+s.Hedged, shared+s.Shared
		s.close()
		if *seed != 0 {
			return
		}
	}
	if 10*away < misses || away == misses {
		t.Errorf("hosts have computed %d of %d uses that were not in memory, the test shows little of them", away, misses)
	}
	if shared < 2*n {
		t.Errorf("hosts were told of placements %d times in %d orders", shared, n)
	}
	if hedged == 0 {
		t.Error("no host was asked because another one was late")
	}
	t.Logf("%d orders, %d asks, %d of them for what another host was late with, %d shares; hosts have computed %d of %d uses that were not in memory; equal bits in all", n, asked, hedged, shared, away, misses)
}

// sum gives the heaviest pick that a row has in an ask the sum of the row's outputs, divided by
// that pick's weight, and the others zeros.
func sum(a stages.Ask, all []stages.AnsweredUse) {
	type pick struct {
		weight float64
		output []float32
	}
	rows := map[int][]pick{}
	for i := range all {
		pairs := a.Plan.Uses[all[i].Use].Pairs
		hidden := len(all[i].Rows) / len(pairs)
		for k, pair := range pairs {
			row := int(pair) / a.Plan.TopK
			rows[row] = append(rows[row], pick{float64(a.Plan.Weights[pair]), all[i].Rows[k*hidden:][:hidden]})
		}
	}
	for _, picks := range rows {
		heaviest := slices.MaxFunc(picks, func(a, b pick) int { return cmp.Compare(a.weight, b.weight) })
		for c := range heaviest.output {
			total := 0.0
			for _, p := range picks {
				total += p.weight / heaviest.weight * float64(p.output[c])
				p.output[c] = 0
			}
			heaviest.output[c] = float32(total)
		}
	}
}

// TestHostsSum is TestHosts with hosts that answer with sums: each use counts once, whoever answers
// what and when, so that logits are those of the conversation alone but for rounding.
func TestHostsSum(t *testing.T) {
	p := openPack(t, "qwen3_5_moe/bf16")
	all := scripts(p.cfg.VocabSize)
	want := p.alone(t, all)
	l := newLender(t, p)
	asked, hedged, worst := 0, 0, 0.0
	n := testenv.Rounds(20, 30, 1000)
	for i := range n {
		sd := uint64(i) + 1
		if *seed != 0 {
			sd = *seed
		}
		r := rand.New(rand.NewPCG(sd, 11))
		tu := randomTuning(r, p.cfg.NumExperts, len(p.cfg.Layers))
		tu.hosts, tu.askPicks = 1+r.IntN(4), 1+r.IntN(40)
		s := p.simulate(t, tu, r, faults{answer: l.answer, sum: sum})
		got, errs, err := s.play(all)
		if err = errors.Join(append(errs, err)...); err != nil {
			t.Fatalf("seed %d, %+v: %v", sd, tu, err)
		}
		for c := range want {
			if len(got[c]) != len(want[c]) {
				t.Fatalf("seed %d, conversation %d: %d answers, want %d", sd, c, len(got[c]), len(want[c]))
			}
			for j := range want[c] {
				worst = max(worst, numcmp.MaxRelative(got[c][j], want[c][j]))
			}
		}
		asked, hedged = asked+s.Asked, hedged+s.Hedged
		s.close()
		if *seed != 0 {
			return
		}
	}
	// A sum of some outputs in float32 errs by 2^-24 of them for each; layers make it more. An
	// output that is counted twice, or not at all, is off by far more.
	if worst > 1e-4 || worst == 0 || hedged == 0 {
		t.Errorf("logits differ by %.2g of the largest, %d asks, %d hedged", worst, asked, hedged)
	}
	t.Logf("%d orders, %d asks, %d hedged; logits differ by %.2g of the largest", n, asked, hedged, worst)
}

// TestHostsDisk plays conversations with a disk whose reads fail or hang now and then. Hosts
// compute most of what cannot be read here, to the same bits; without them it is lost.
func TestHostsDisk(t *testing.T) {
	p := openPack(t, "qwen3_5_moe/bf16")
	all := scripts(p.cfg.VocabSize)
	want := p.alone(t, all)
	l := newLender(t, p)
	n := testenv.Rounds(20, 40, 500)
	lost := [2]int{} // without hosts, and with some
	for i := range 2 * n {
		sd, hosts := uint64(i/2)+1, i%2
		if *seed != 0 {
			sd = *seed
		}
		r := rand.New(rand.NewPCG(sd, 10))
		tu := randomTuning(r, p.cfg.NumExperts, len(p.cfg.Layers))
		tu.resident, tu.hosts, tu.steady, tu.askPicks = false, 3*hosts, true, 100
		fails := func(stages.Read) error {
			if r.IntN(50) == 0 {
				return errDisk
			}
			return nil
		}
		s := p.simulate(t, tu, r, faults{answer: l.answer, read: fails, late: fails})
		got, errs, err := s.play(all)
		if err != nil {
			t.Fatalf("seed %d, %+v: %v", sd, tu, err)
		}
		for i, e := range errs {
			switch {
			case errors.Is(e, errDisk):
				lost[hosts]++
			case e != nil:
				t.Fatalf("seed %d, conversation %d: %v", sd, i, e)
			default:
				if err := sameBits(got[i:i+1], want[i:i+1]); err != nil {
					t.Fatalf("seed %d, conversation %d: %v", sd, i, err)
				}
			}
		}
		s.close()
	}
	if lost[0] < n || 10*lost[1] > lost[0] {
		t.Errorf("of %d conversations %d are lost without hosts and %d with some", n*len(all), lost[0], lost[1])
	}
	t.Logf("of %d conversations %d are lost without hosts and %d with some", n*len(all), lost[0], lost[1])
}
