package synth

import (
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// The wire is what the first channels of the hidden state carry. Groups of 64 channels are
// quantisation groups.
const (
	tokenAt, tokenBits = 0, 64
	commonAt, commonN  = 64, 8
	topicAt, topicBits = 72, 32
	tieAt, tieN        = 128, 8
	ballastAt          = 192
	ballastN           = 64

	// wireValue is the magnitude on the wire, 7 steps of 1/8.
	wireValue = 0.875
	// maxExperts is how many different numbers the channels that break ties can hold, 127 each.
	maxExperts = 127 * tieN

	// ballastValue is the value of each ballast channel, 7 steps of 4096. The squares of all other
	// channels together change a norm by some 1e-7. It is exact in half precision.
	ballastStep  = 4096
	ballastValue = 7 * ballastStep
)

// wireChannels returns how many channels no layer writes to.
func wireChannels(c *model.Config) int {
	if c.Scoring == model.SigmoidScores {
		return ballastAt + ballastN
	}
	return ballastAt
}

// Model is the configuration and the laws of a synthetic model. It does not change after New and
// may be used from many goroutines.
type Model struct {
	o                  Options
	config, generation []byte // the content of the files; generation may be nil
	cfg                *model.Config

	order []int32 // the chain
	place []int32 // [vocab]: index of each token in the chain, -1 outside it
	// routers are those of the layers with experts.
	routers []router
	layout  model.ExpertLayout

	// normWeight is the mean weight of the norms of the hidden state. factor is what they multiply
	// a channel's value by, 0 if that depends on all channels.
	normWeight float32
	factor     float64
}

// New returns the model that the options describe. Errors are *OptionError, *model.ConfigError,
// *model.UnknownArchError or JSON errors.
func New(o Options) (*Model, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Model{o: o, normWeight: 1}
	if m.config, m.generation, m.cfg, err = o.build(); err != nil {
		return nil, err
	}
	if err := checkShape(m.cfg); err != nil {
		return nil, err
	}
	f := quant.Affine(4, groupSize)
	h, i := m.cfg.HiddenSize, m.cfg.MoEIntermediateSize
	narrow, wide := f.In(o.layout(), i), f.In(o.layout(), h)
	m.layout = model.NewExpertLayout(h, i, narrow, narrow, wide)
	if m.cfg.Scoring == model.SigmoidScores {
		rms := ballastValue * math.Sqrt(float64(ballastN)/float64(m.cfg.HiddenSize))
		// The weight cancels the ballast and scales the wire to ±1.
		m.normWeight = quant.BF16ToF32(quant.F32ToBF16(float32(rms / wireValue)))
		m.factor = float64(m.normWeight) / rms
	}
	m.layChain()
	m.makeRouters()
	return m, nil
}

// Config returns the model's configuration. The caller must not change it.
func (m *Model) Config() *model.Config { return m.cfg }

// Options returns the options in use, after defaults.
func (m *Model) Options() Options { return m.o }

func (m *Model) key(name string) key { return newKey(m.o.Seed, name) }

// tokenCode and topicCode are what a token writes to the wire, one bit for each channel.
func (m *Model) tokenCode(token int32) uint64 { return mix(uint64(m.key("token")) + uint64(token)) }

func (m *Model) topicCode(topic int) uint64 { return mix(uint64(m.key("topic")) + uint64(topic)) }

func (m *Model) topic(token int32) int { return int(token) % m.o.Topics }

// layChain orders all tokens but the special ones in runs of one topic each. The runs come in
// random order.
func (m *Model) layChain() {
	special := specialTokens(m.cfg)
	byTopic := make([][]int32, m.o.Topics)
	for t := range int32(m.cfg.VocabSize) {
		if !slices.Contains(special, t) {
			byTopic[m.topic(t)] = append(byTopic[m.topic(t)], t)
		}
	}
	r := m.key("chain").stream()
	var runs [][]int32
	for _, tokens := range byTopic {
		shuffle(r, tokens)
		for run := range slices.Chunk(tokens, m.o.Run) {
			runs = append(runs, run)
		}
	}
	shuffle(r, runs)
	m.order = slices.Concat(runs...)
	m.place = make([]int32, m.cfg.VocabSize)
	for i := range m.place {
		m.place[i] = -1
	}
	for i, t := range m.order {
		m.place[t] = int32(i)
	}
}

// before returns the token before t in the chain, -1 if t is not in the chain.
func (m *Model) before(t int32) int32 {
	p := int(m.place[t])
	if p < 0 {
		return -1
	}
	return m.order[(p+len(m.order)-1)%len(m.order)]
}

// Chain returns the first n tokens of the chain: greedy decoding after the first emits the others.
// The chain holds every token that neither begins nor ends a text once, and starts again after the
// last.
func (m *Model) Chain(n int) []int32 {
	out := make([]int32, max(0, n))
	for i := range out {
		out[i] = m.order[i%len(m.order)]
	}
	return out
}

// Next returns the token that greedy decoding emits after t, whatever came before. It returns false
// for tokens outside the chain, whose successors are undefined.
func (m *Model) Next(t int32) (int32, bool) {
	if t < 0 || int(t) >= len(m.place) || m.place[t] < 0 {
		return 0, false
	}
	return m.order[(int(m.place[t])+1)%len(m.order)], true
}
