package refmodel

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/moeflux/moeflux-actor/model"
)

// Model is a packed model with every weight widened to float64. It does not change after Open and
// may be used by many goroutines.
type Model struct {
	cfg    *model.Config
	embed  *matrix
	head   *matrix // the embedding itself where it is tied
	norm   []float64
	layers []layer
}

// layer is one decoder layer: one of the three mixers, and mlp or moe.
type layer struct {
	inputNorm, postNorm []float64
	linear              *deltaNet
	full                *fullAttention
	latent              *latentAttention
	mlp                 *mlp
	moe                 *moe
}

// Config returns the model's configuration, shared, read-only.
func (m *Model) Config() *model.Config { return m.cfg }

// State is a sequence in progress. Only one goroutine may use it at a time.
type State struct {
	m         *Model
	positions int
	layers    []layerState
	noise     *noise // nil: exact
	inside    Inside // of the layer that is being computed; nil: not wanted
	chosen    []int  // positions, by the nearest indexer below, for the position that is being computed
}

// Inside is what a layer took, made on the way and gave at one position, by the names of
// stages.Quantity: each a row of what is said there, heads and states one after the other. States
// are those before and after the position.
type Inside map[string][]float64

// see notes what a layer makes, if somebody wants to know.
func (s *State) see(name string, x ...[]float64) {
	if s.inside != nil {
		s.inside[name] = slices.Concat(x...)
	}
}

// layerState is what one layer remembers of the positions so far.
type layerState struct {
	keys, values [][]float64   // [position]: of all heads
	latents      [][]float64   // [position]: likewise, of latent attention
	indexKeys    [][]float64   // [position]: of the indexer
	scores       [][]float64   // [position]: of the indexer, of all positions up to it
	choices      [][]int       // [position]: what the indexer chose
	blocks       [][][]int     // [position][key-value head]: likewise, of an indexer of blocks
	recent       [][]float64   // [position]: the last inputs of the convolution, oldest first
	recurrent    [][][]float64 // [value head][value dim][key dim]; nil before the first position
}

// NewState returns an empty sequence.
func (m *Model) NewState() *State { return &State{m: m, layers: make([]layerState, len(m.layers))} }

// Position is what the model computed at one position. The slices are the caller's.
type Position struct {
	// [layers+1][hidden]: the embedding, then the residual stream after each layer
	Hidden    [][]float64
	Mixer     [][]float64 // [layers][hidden]: the mixer's output, before it is added
	FFN       [][]float64 // [layers][hidden]: the feed-forward part's output, before it is added
	FinalNorm []float64   // [hidden]
	Logits    []float64   // [vocab]
	Routes    []Route     // [layers with experts]
	Inside    []Inside    // [layers], of StepInside
}

// StepInside is Step that also tells what happens inside the layers.
func (s *State) StepInside(token int32) *Position {
	s.inside = Inside{}
	defer func() { s.inside = nil }()
	return s.Step(token)
}

// Step feeds one token. It panics on a token outside the vocabulary.
func (s *State) Step(token int32) *Position {
	m := s.m
	if token < 0 || int(token) >= m.cfg.VocabSize {
		panic(fmt.Sprintf("refmodel: token %d is outside the vocabulary of %d", token, m.cfg.VocabSize))
	}
	eps := float64(m.cfg.RMSNormEps)
	x := append([]float64(nil), m.embed.row(int(token))...)
	p := &Position{Hidden: [][]float64{x}}
	for i := range m.layers {
		x = s.layer(i, x, p)
	}
	p.FinalNorm = rmsNorm(x, m.norm, eps)
	p.Logits = s.mul(m.head, p.FinalNorm)
	s.positions++
	return p
}

// layer takes the residual stream through a layer and notes in p what came of it.
func (s *State) layer(i int, x []float64, p *Position) []float64 {
	l, eps := &s.m.layers[i], float64(s.m.cfg.RMSNormEps)
	s.see("input", x)
	a := rmsNorm(x, l.inputNorm, eps)
	s.see("input_norm", a)
	mixed := s.mixer(l, &s.layers[i], a)
	s.see("attn", mixed)
	x = add(x, mixed)
	s.see("residual", x)
	b := rmsNorm(x, l.postNorm, eps)
	s.see("post_norm", b)
	var out []float64
	if l.moe != nil {
		var r Route
		out, r = l.moe.apply(s, b)
		p.Routes = append(p.Routes, r)
	} else {
		out = l.mlp.apply(s, b)
	}
	s.see("sum", out)
	x = add(x, out)
	s.see("output", x)
	p.Mixer, p.FFN, p.Hidden = append(p.Mixer, mixed), append(p.FFN, out), append(p.Hidden, x)
	if s.inside != nil {
		p.Inside = append(p.Inside, s.inside)
		s.inside = Inside{}
	}
	return x
}

// Layer takes a hidden state from outside through one layer at the sequence's next position. Every
// layer may be given one there; Next moves on.
func (s *State) Layer(i int, x []float64) Inside {
	s.inside = Inside{}
	defer func() { s.inside = nil }()
	p := new(Position)
	s.layer(i, x, p)
	return p.Inside[0]
}

// Next moves on to the next position.
func (s *State) Next() { s.positions++ }

// Embedding returns the embedding of a token.
func (m *Model) Embedding(token int32) []float64 { return m.embed.row(int(token)) }

// Head returns the final norm of a hidden state, and its logits.
func (m *Model) Head(x []float64) (norm, logits []float64) {
	norm = rmsNorm(x, m.norm, float64(m.cfg.RMSNormEps))
	return norm, m.NewState().mul(m.head, norm)
}

// Experts applies experts of a layer, and the shared one, to what they would read.
func (m *Model) Experts(layer int, x []float64, route Route) Inside {
	s := m.NewState()
	s.inside = Inside{}
	s.see("sum", m.layers[layer].moe.combine(s, x, route))
	return s.inside
}

func (s *State) mixer(l *layer, kept *layerState, a []float64) []float64 {
	switch {
	case l.linear != nil:
		return l.linear.mix(s, kept, a)
	case l.full != nil:
		return l.full.mix(s, kept, a, s.positions)
	default:
		return l.latent.mix(s, kept, a, s.positions)
	}
}

// Forward feeds tokens to an empty sequence. It panics on a token outside the vocabulary.
func (m *Model) Forward(tokens []int32) *Trace { return m.NewState().forward(tokens) }

// ForwardNoisy is Forward with the rounding errors of a less exact engine: every product of a
// matrix row and a vector is off by a normally distributed number of standard deviation size times
// the root of the sum of its squared terms. The distance from Forward's result says how much the
// model amplifies such errors, and so which tolerance a comparison needs. float32 arithmetic is
// about size 2^-23.
func (m *Model) ForwardNoisy(tokens []int32, size float64, seed uint64) *Trace {
	return m.NewNoisyState(size, seed).forward(tokens)
}

// NewNoisyState returns an empty sequence with the rounding errors of ForwardNoisy.
func (m *Model) NewNoisyState(size float64, seed uint64) *State {
	s := m.NewState()
	s.noise = &noise{size: size, rng: rand.New(rand.NewPCG(seed, 0))}
	return s
}

func (s *State) forward(tokens []int32) *Trace {
	t := newTrace(s.m.cfg)
	for _, token := range tokens {
		t.add(token, s.Step(token))
	}
	return t
}
