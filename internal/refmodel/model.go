package refmodel

import (
	"fmt"
	"math/rand/v2"

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
}

// layerState is what one layer remembers of the positions so far.
type layerState struct {
	keys, values [][]float64   // [position]: of all heads
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
		l := &m.layers[i]
		mixed := s.mixer(l, &s.layers[i], rmsNorm(x, l.inputNorm, eps))
		x = add(x, mixed)
		b := rmsNorm(x, l.postNorm, eps)
		var out []float64
		if l.moe != nil {
			var r Route
			out, r = l.moe.apply(s, b)
			p.Routes = append(p.Routes, r)
		} else {
			out = l.mlp.apply(s, b)
		}
		x = add(x, out)
		p.Mixer, p.FFN, p.Hidden = append(p.Mixer, mixed), append(p.FFN, out), append(p.Hidden, x)
	}
	p.FinalNorm = rmsNorm(x, m.norm, eps)
	p.Logits = s.mul(m.head, p.FinalNorm)
	s.positions++
	return p
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
	s := m.NewState()
	s.noise = &noise{size: size, rng: rand.New(rand.NewPCG(seed, 0))}
	return s.forward(tokens)
}

func (s *State) forward(tokens []int32) *Trace {
	t := newTrace(s.m.cfg)
	for _, token := range tokens {
		t.add(token, s.Step(token))
	}
	return t
}
