package actors_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/refmodel"
	"github.com/moeflux/moeflux-actor/stages"
)

// TestProbe computes parts of the models of all families on numbers from outside, and wants what a
// float64 computation says: single layers after a text and without one, experts, embedding, head.
func TestProbe(t *testing.T) { testProbe(t, device(t, 2), fixtures.All()) }

// prober compares probes of an engine with a float64 computation.
type prober struct {
	e     *actors.Engine
	ref   *refmodel.Model
	given []float32 // [rows, hidden]
}

const proberRows = 3

func testProbe(t *testing.T, dev gpu.Device, names []string) {
	for _, name := range names {
		for _, cfg := range []actors.Config{
			{ExpertIO: actors.ExpertIOMmap, Resident: actors.ResidentOn, ChunkRows: 64}, {ExpertIO: actors.ExpertIOBuffered, Resident: actors.ResidentOff, ChunkRows: 2},
		} {
			t.Run(name, func(t *testing.T) {
				cfg.Model, cfg.Device = fixtures.Packed(t, name, 0), dev
				ref, err := refmodel.Open(cfg.Model)
				if err != nil {
					t.Fatal(err)
				}
				p := &prober{e: open(t, cfg), ref: ref}
				r := rand.New(rand.NewPCG(3, 4))
				for range proberRows * p.e.Model().HiddenSize {
					p.given = append(p.given, float32(r.NormFloat64()))
				}
				p.layers(t, []int32{5, 1, 8})
				p.layers(t, nil)
				p.experts(t)
				p.ends(t)
			})
		}
	}
}

// row returns a row of what is given.
func (p *prober) row(i int) (x []float64) {
	n := p.e.Model().HiddenSize
	for _, v := range p.given[i*n : (i+1)*n] {
		x = append(x, float64(v))
	}
	return x
}

// eval evaluates a chunk of a sequence that is empty, and is unusable afterwards.
func (p *prober) eval(t *testing.T, c actors.Chunk) *actors.Evaluated {
	t.Helper()
	s := sequence(t, p.e)
	r, err := s.EvalChunk(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !errors.Is(s.Err(), stages.ErrProbed) {
		t.Errorf("after a probe the sequence's error is %v", s.Err())
	}
	if _, err := s.Eval(t.Context(), []int32{1}); !errors.Is(err, stages.ErrProbed) {
		t.Errorf("a probed sequence goes on: %v", err)
	}
	if err := s.Reset(t.Context()); err != nil || s.Err() != nil {
		t.Errorf("reset: %v, %v", err, s.Err())
	}
	return r
}

// nearRow compares a row of a tensor within a part of its largest number.
func nearRow(t *testing.T, r *actors.Evaluated, w actors.Want, row int, want []float64) {
	t.Helper()
	x := stages.FindTensor(r.Dump, w)
	if x == nil || x.Width != len(want) {
		t.Fatalf("%v: %+v, want %d numbers", w, x, len(want))
	}
	got, most := numbersOf(x), 0.0
	if !w.Quantity.OfChunk() {
		got = got[row*x.Width : (row+1)*x.Width]
	}
	for _, v := range want {
		most = max(most, math.Abs(v))
	}
	for i, v := range got {
		if d := math.Abs(float64(v) - want[i]); !(d <= 1e-4*max(most, 1e-3)) {
			t.Fatalf("%v, row %d: number %d is %v, want %v", w, row, i, v, want[i])
		}
	}
}

// layers runs the first and the last layer by themselves, on the same numbers, after a text.
func (p *prober) layers(t *testing.T, text []int32) {
	last := len(p.e.Model().Layers) - 1
	at := slices.Compact([]int{0, last})
	run := at
	if len(text) > 0 {
		run = allLayers(p.e)
	}
	wants := actors.WantsOf(p.e.Model(), at)
	r := p.eval(t, actors.Chunk{
		Tokens: append(slices.Clone(text), make([]int32, proberRows)...), Logits: actors.NoLogits, Dump: wants,
		Probe: &actors.Probe{Layers: run, At: at, Given: p.given},
	})
	s := p.ref.NewState()
	for _, id := range text {
		s.Step(id)
	}
	for row := range proberRows {
		for _, layer := range at {
			inside := s.Layer(layer, p.row(row))
			for _, w := range wants {
				switch {
				case w.Layer != layer || w.Quantity.OfFoldedForm() || w.Quantity.Before():
				case w.Quantity.OfChunk() && row < proberRows-1:
				default:
					nearRow(t, r, w, len(text)+row, inside[w.Quantity.String()])
				}
			}
		}
		s.Next()
	}
}

// experts applies experts of one layer that the router would not choose.
func (p *prober) experts(t *testing.T) {
	m, k := p.e.Model(), p.e.Info().TopK
	layer := m.MoELayers()[len(m.MoELayers())-1]
	probe := &actors.Probe{Layers: []int{layer}, At: []int{layer}, Given: p.given, Experts: true}
	for i := range proberRows * k {
		probe.Picks = append(probe.Picks, int32(m.NumExperts-1-(i+i/k)%m.NumExperts))
		probe.Weights = append(probe.Weights, float32(i+1)/8)
	}
	var wants []actors.Want
	for _, w := range actors.WantsOf(m, []int{layer}) {
		switch w.Quantity {
		case stages.DumpExperts, stages.DumpRouted, stages.DumpShared, stages.DumpSharedGate, stages.DumpSum:
			wants = append(wants, w)
		}
	}
	r := p.eval(t, actors.Chunk{Tokens: make([]int32, proberRows), Logits: actors.NoLogits, Dump: wants, Probe: probe})
	for row := range proberRows {
		var route refmodel.Route
		for i := row * k; i < (row+1)*k; i++ {
			route.Picks, route.Weights = append(route.Picks, int(probe.Picks[i])), append(route.Weights, float64(probe.Weights[i]))
		}
		inside := p.ref.Experts(layer, p.row(row), route)
		for _, w := range wants {
			want := inside[w.Quantity.String()]
			if w.Quantity == stages.DumpExperts { // there the heaviest is first, here the last
				n := m.HiddenSize
				turned := make([]float64, 0, len(want))
				for i := k - 1; i >= 0; i-- {
					turned = append(turned, want[i*n:(i+1)*n]...)
				}
				want = turned
			}
			nearRow(t, r, w, row, want)
		}
	}
}

// ends looks tokens up, and takes hidden states to logits.
func (p *prober) ends(t *testing.T) {
	m := p.e.Model()
	end, tokens := len(m.Layers), []int32{3, 0, 9}
	input := actors.Want{Quantity: stages.DumpInput, Layer: end}
	r := p.eval(t, actors.Chunk{Tokens: tokens, Logits: actors.NoLogits, Dump: []actors.Want{input}, Probe: &actors.Probe{}})
	for row, id := range tokens {
		nearRow(t, r, input, row, p.ref.Embedding(id))
	}
	norm := actors.Want{Quantity: stages.DumpFinalNorm, Layer: end}
	r = p.eval(t, actors.Chunk{Tokens: tokens, Logits: actors.AllLogits, Dump: []actors.Want{norm}, Probe: &actors.Probe{At: []int{end}, Given: p.given}})
	for row := range tokens {
		want, logits := p.ref.Head(p.row(row))
		nearRow(t, r, norm, row, want)
		for i, v := range logits {
			if d := math.Abs(float64(r.Logits[row*m.VocabSize+i]) - v); !(d <= 1e-4*max(1, math.Abs(v))) {
				t.Fatalf("logit %d of row %d is %v, want %v", i, row, r.Logits[row*m.VocabSize+i], v)
			}
		}
	}
}

// Probes that do not fit the model are refused, and change nothing.
func TestProbeRefused(t *testing.T) {
	e := open(t, actors.Config{Model: fixtures.Packed(t, fixtures.DeepseekV3Q4, 0)})
	s, n, k := sequence(t, e), e.Model().HiddenSize, e.Info().TopK
	for i, p := range []actors.Probe{
		{Layers: []int{1, 0}}, {Layers: []int{0, 0}}, {Layers: []int{-1}}, {Layers: []int{99}}, {At: []int{0}}, {Given: make([]float32, n)},
		{Layers: []int{0}, At: []int{0}, Given: make([]float32, n-1)}, {Layers: []int{0}, At: []int{0}, Given: make([]float32, 3*n)},
		{Layers: []int{0}, At: []int{1}, Given: make([]float32, n)}, {Layers: []int{1}, At: []int{1}, Given: make([]float32, n), Experts: true},
		{Layers: []int{1}, At: []int{1}, Given: make([]float32, 2*n), Picks: make([]int32, 2*k), Weights: make([]float32, 2*k)},
		{Layers: []int{1}, At: []int{1}, Given: make([]float32, 2*n), Experts: true, Picks: make([]int32, k), Weights: make([]float32, k)},
		{Layers: []int{0}, At: []int{0}, Given: make([]float32, 2*n), Experts: true, Picks: make([]int32, 2*k), Weights: make([]float32, 2*k)},
	} {
		if _, err := s.EvalChunk(t.Context(), actors.Chunk{Tokens: []int32{1, 2}, Probe: &p}); err == nil || s.Err() != nil {
			t.Errorf("probe %d: %v, %v, want an error that changes nothing", i, err, s.Err())
		}
	}
	if _, err := s.EvalChunk(t.Context(), actors.Chunk{Tokens: []int32{1}, Dump: []actors.Want{{Quantity: stages.DumpPicks, Layer: 0}}}); err == nil {
		t.Error("a dense layer has picks")
	}
	eval(t, s, 1)
}

// A dump of operations one by one has the bits of the joined ones.
func TestPlain(t *testing.T) { testPlain(t, device(t, 2), fixtures.All()) }

func testPlain(t *testing.T, dev gpu.Device, names []string) {
	for _, name := range names {
		e := open(t, actors.Config{Model: fixtures.Packed(t, name, 0), Device: dev, ExpertIO: actors.ExpertIOMmap})
		s, wants := sequence(t, e), actors.WantsOf(e.Model(), allLayers(e))
		var told [2]*actors.Evaluated
		for i := range told {
			var err error
			if told[i], err = s.EvalChunk(t.Context(), actors.Chunk{Tokens: []int32{4, 7}, Dump: wants, Plain: i == 1}); err != nil {
				t.Fatal(err)
			}
			if err := s.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i := range told[0].Dump {
			a, b := &told[0].Dump[i], &told[1].Dump[i]
			same := func(x, y float32) bool { return x == y || x != x && y != y }
			if !slices.EqualFunc(a.Floats, b.Floats, same) || !slices.Equal(a.Ints, b.Ints) {
				t.Errorf("%s: %v is not the same one by one", name, a.Want)
			}
		}
	}
}
