package whatif

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testenv"
	"github.com/moeflux/moeflux-actor/io/synth"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/tracing/record"
)

// beside is a text that decodes, first alone and then beside a prompt, on the stages in simulated
// time, with the routing of a model of real shape: 24 layers of qwen3-30b-a3b with slots for half
// of the experts, on two slow cores, as bench --mixed measures it.
type beside struct {
	model  *synth.Model
	meta   record.Meta
	readNS float64 // of a record
	chain  []int32 // what the texts have not taken yet
	tokens map[int32]*step
	script script
}

const (
	besideLayers = 24
	besidePrompt = 1792 // rows
	besideBegin  = 32   // tokens that the text decodes before it is looked at
	besideAlone  = 128  // and then alone
)

func newBeside(t *testing.T, seed uint64, readNS float64) *beside {
	t.Helper()
	shape, err := synth.Named("qwen3-30b-a3b")
	if err != nil {
		t.Fatal(err)
	}
	m, err := synth.New(synth.Options{Shape: shape, Layers: besideLayers, Seed: seed, Route: synth.Mild})
	if err != nil {
		t.Fatal(err)
	}
	c := m.Config()
	b := &beside{model: m, readNS: readNS, chain: m.Chain(3*besidePrompt + 2000), tokens: make(map[int32]*step)}
	b.meta = record.Meta{
		Model: record.Model{Name: "simulated", Layers: besideLayers, Experts: c.NumExperts, TopK: c.NumExpertsPerTok, SlotBytes: 1 << 20, Vocab: 1},
		Engine: record.Engine{
			Slots: besideLayers * c.NumExperts * 53 / 100, WaveSlots: 64, RingDepth: 2, ReadWorkers: 4, QueuedReads: 8, LastToken: true, NextGate: true, Ahead: 2,
			AheadRows: 33, ScoresAhead: 2, ScoresAheadRows: 33, ChunkRows: 512, StepsInFlight: 2, PromptShare: 0.6, Preempts: true,
		},
		Stages: stageNames(), Messages: kindNames(),
	}
	for range besideLayers {
		b.meta.Model.Routed = append(b.meta.Model.Routed, true)
	}
	return b
}

// row returns the row of a token. Its routers predict without fail, as those of such models do.
func (b *beside) row(token int32) rowOf {
	s := b.tokens[token]
	if s == nil {
		s = &step{id: uint64(len(b.tokens) + 1), rows: 1, layers: make([]layer, besideLayers), headNS: 1}
		for i, r := range b.model.Routing(token) {
			l := &s.layers[i]
			for _, e := range r.Experts {
				l.picks = append(l.picks, int16(e))
			}
			for ahead := range l.ranks {
				l.ranks[ahead] = append(slices.Clone(l.picks), unknown(len(l.picks))...)
			}
		}
		b.tokens[token] = s
	}
	return rowOf{step: s}
}

// ask has a sequence evaluate the next rows of the chain after another request.
func (b *beside) ask(seq stages.SeqID, rows int, after *ask) *ask {
	a := &ask{id: uint64(len(b.script.asks) + 1), seq: seq, logits: true, after: after, delayNS: 50_000}
	for _, token := range b.chain[:rows] {
		a.rows = append(a.rows, b.row(token))
	}
	b.chain = b.chain[rows:]
	if after != nil {
		after.then = append(after.then, a)
	}
	b.script.asks = append(b.script.asks, a)
	return a
}

// laws are those of two cores that compute a token in 42 ms and 160 rows of a prompt in a second.
func (b *beside) laws() laws {
	w := world{disk: diskLaw{Each: b.readNS}}
	l := w.laws()
	l.op = func(o *operation) float64 {
		rows := float64(len(o.step.Batch.Rows))
		switch o.part {
		case record.Head:
			return 4e6
		case record.Ahead:
			return 20e3 * rows
		case record.Experts:
			return 110e3*float64(o.uses) + 20e3*float64(o.picks)
		}
		return 600e3 + 75e3*(rows-1)
	}
	return l
}

// besideResult is what it comes to. Gaps are milliseconds from token to token, in order.
type besideResult struct {
	alone, gaps         []float64
	promptAlone, prompt float64 // rows a second
}

func (b *beside) run(t *testing.T) (res besideResult) {
	t.Helper()
	first := b.ask(2, besidePrompt, b.ask(2, 512, nil))
	text := []*ask{b.ask(1, 16, first)}
	var prompt *ask
	for len(text) < 1000 {
		if len(text) == besideBegin+besideAlone+1 {
			prompt = b.ask(3, besidePrompt, text[len(text)-1])
		}
		text = append(text, b.ask(1, 1, text[len(text)-1]))
	}
	var same Settings
	set, err := same.apply(&record.Recording{Meta: b.meta})
	if err != nil {
		t.Fatal(err)
	}
	r, err := newReplay(&b.meta, set, &observed{laws: b.laws()}, &b.script)
	if err != nil {
		t.Fatal(err)
	}
	r.e.laws = b.laws()
	r.callers.begin()
	for prompt.endedNS == 0 {
		if len(r.e.events) == 0 || text[len(text)-1].endedNS > 0 {
			t.Fatalf("nothing happens, or the text ends, at %d ms before the prompt does", r.e.now/1e6)
		}
		if err := r.e.run(r.e.events[0].at); err != nil {
			t.Fatal(err)
		}
	}
	for i := besideBegin + 1; text[i].endedNS > 0; i++ {
		gap := float64(text[i].endedNS-text[i-1].endedNS) / 1e6
		if i <= besideBegin+besideAlone {
			res.alone = append(res.alone, gap)
		} else {
			res.gaps = append(res.gaps, gap)
		}
	}
	slices.Sort(res.alone)
	slices.Sort(res.gaps)
	speed := func(a *ask) float64 { return float64(len(a.rows)) / float64(a.endedNS-a.arrived) * 1e9 }
	res.promptAlone, res.prompt = speed(first), speed(prompt)
	return res
}

// percentile returns that of numbers in order.
func percentile(x []float64, p float64) float64 { return x[int(math.Ceil(p*float64(len(x)-1)))] }

// TestBeside lets a text decode beside a prompt, both with streamed experts. The 99th percentile of
// its gaps is that of tokens at which the subject changes. Alone they take so long because they
// miss a quarter of their experts, and beside the prompt hardly longer.
func TestBeside(t *testing.T) {
	var steps, alone, speed float64
	n := testenv.Rounds(1, 2, 16)
	for seed := range uint64(n) {
		r := newBeside(t, 1+seed, 2e6).run(t)
		median := percentile(r.alone, 0.5)
		t.Logf("seed %d: alone %.0f, %.0f ms (median, most of %d); beside %.0f, %.0f, %.0f ms (and 99 %%, of %d): %.1f steps; the prompt has %.1f of %.1f rows a second",
			1+seed, median, percentile(r.alone, 1), len(r.alone), percentile(r.gaps, 0.5), percentile(r.gaps, 0.99), percentile(r.gaps, 1), len(r.gaps), percentile(r.gaps, 0.99)/median, r.prompt, r.promptAlone)
		steps += percentile(r.gaps, 0.99) / median / float64(n)
		alone += percentile(r.alone, 1) / median / float64(n)
		speed += r.prompt / r.promptAlone / float64(n)
	}
	const mostSteps, mostAlone, leastSpeed = 2.9, 2.7, 0.58
	line := fmt.Sprintf("99 %% of gaps beside a prompt are within %.2f steps, want %v; the longest alone is %.2f, want %v; the prompt has %.2f of its speed, want %v", steps, mostSteps, alone, mostAlone, speed, leastSpeed)
	if steps > mostSteps || alone > mostAlone || speed < leastSpeed {
		t.Error(line)
	}
	t.Log(line)
}
