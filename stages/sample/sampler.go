package sample

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// ErrNoFiniteLogit reports logits of which none is a finite number.
var ErrNoFiniteLogit = errors.New("no finite logit; the weights or the sequence's state are damaged")

// ErrAllExcluded reports that the logit bias excludes every token that could have been chosen.
var ErrAllExcluded = errors.New("the logit bias excludes every token; leave at least one")

// LogitError reports an invalid logit: NaN or positive infinity. Negative infinity is a token
// that is ruled out.
type LogitError struct {
	Token int
	Value float32
}

func (e *LogitError) Error() string {
	return fmt.Sprintf("logit of token %d is %v; the weights or the sequence's state are damaged", e.Token, e.Value)
}

// checkLogit reports an invalid logit.
func checkLogit(token int, l float32) error {
	if l != l || l > math.MaxFloat32 {
		return &LogitError{Token: token, Value: l}
	}
	return nil
}

// Sampler chooses the tokens of one text. It is not for concurrent use.
type Sampler struct {
	opts    Options
	invalid error // what Validate says of opts
	rng     *rand.Rand

	adjust  adjuster
	cands   []candidate // what may still be drawn
	left    []candidate // of these, what the cuts of the last draw left
	allowed []float32   // logits within a constraint
}

// candidate is a token and its weight relative to the most likely token,
// exp((logit-max)/temperature).
type candidate struct {
	logit  float64
	weight float64
	token  int32
}

// before orders candidates: most likely first, then the lower id.
func (a candidate) before(b candidate) bool {
	return a.logit > b.logit || a.logit == b.logit && a.token < b.token
}

// New returns a sampler at the beginning of the random stream of o.Seed. Options that do not
// validate make every Next fail. The sampler keeps nothing of o.LogitBias.
func New(o Options) *Sampler {
	s := &Sampler{
		opts: o, invalid: o.Validate(),
		// the second word only has to stay the same
		rng: rand.New(rand.NewPCG(o.Seed, 0x6d6f65666c7578)),
	}
	s.adjust.bias = sortedBias(o.LogitBias)
	s.opts.LogitBias = nil
	return s
}

// Next returns the next token of a text. logits are [vocab] and are left alone. The text so far is
// the prompt and, after it, the tokens sampled before; only penalties look at it. A drawn token
// uses one number of the random stream, a greedy one none. Errors: *LogitError, ErrNoFiniteLogit,
// ErrAllExcluded, options that do not validate, a token of the text or of the bias that is outside
// the vocabulary.
func (s *Sampler) Next(logits []float32, prompt, sampled []int32) (int32, error) {
	if s.invalid != nil {
		return 0, s.invalid
	}
	v, err := s.adjust.view(logits, prompt, sampled, &s.opts)
	if err != nil {
		return 0, err
	}
	best, err := v.best()
	if err != nil || s.opts.Temperature == 0 {
		return best.token, err
	}
	s.cands = v.collect(s.cands, best.logit, &s.opts)
	return s.draw(best.logit), nil
}

// argmax checks logits and returns the lowest id among the largest, -1 if none is finite.
func argmax(logits []float32) (int, error) {
	best, bestLogit := -1, float32(math.Inf(-1))
	for i, l := range logits {
		if l <= bestLogit { // false for NaN, and what is infinite is above
			continue
		}
		if err := checkLogit(i, l); err != nil {
			return 0, err
		}
		best, bestLogit = i, l
	}
	return best, nil
}
