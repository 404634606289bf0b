package sample

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// ErrNoFiniteLogit reports logits of which none is a finite number.
var ErrNoFiniteLogit = errors.New("sample: no finite logit; the weights or the sequence's state are damaged")

// LogitError reports a logit that cannot be: NaN or positive infinity. Negative infinity is a token that is ruled out.
type LogitError struct {
	Token int
	Value float32
}

func (e *LogitError) Error() string {
	return fmt.Sprintf("sample: logit of token %d is %v; the weights or the sequence's state are damaged", e.Token, e.Value)
}

// Sampler chooses the tokens of one text. It is not for concurrent use.
type Sampler struct {
	opts    Options
	invalid error // what Validate says of opts
	rng     *rand.Rand

	logits []float64   // [vocab] after the penalty; only used with one
	cands  []candidate // what may still be drawn
	seen   map[int32]struct{}
}

// candidate is a token and its weight relative to the most likely token, exp((logit-max)/temperature).
type candidate struct {
	logit  float64
	weight float64
	token  int32
}

// before orders candidates: most likely first, then the lower id.
func (a candidate) before(b candidate) bool {
	return a.logit > b.logit || a.logit == b.logit && a.token < b.token
}

// New returns a sampler at the beginning of the random stream of o.Seed. Options that do not validate make every Next fail.
func New(o Options) *Sampler {
	return &Sampler{
		opts: o, invalid: o.Validate(), seen: map[int32]struct{}{},
		rng: rand.New(rand.NewPCG(o.Seed, 0x6d6f65666c7578)), // the second word only has to stay the same
	}
}

// Next returns the next token. logits are [vocab] and are left alone; history is the text so far, of which the repeat
// penalty looks at the end. A drawn token uses one number of the random stream, a greedy one none. Errors: *LogitError,
// ErrNoFiniteLogit, options that do not validate, a history token outside the vocabulary.
func (s *Sampler) Next(logits []float32, history []int32) (int32, error) {
	if s.invalid != nil {
		return 0, s.invalid
	}
	best, err := argmax(logits)
	if err != nil {
		return 0, err
	}
	if !s.opts.penalises() {
		if s.opts.Temperature == 0 {
			return best, nil
		}
		return s.draw(collect(s.cands, logits), float64(logits[best])), nil
	}
	if best, err = s.penalise(logits, history); err != nil || s.opts.Temperature == 0 {
		return best, err
	}
	return s.draw(collect(s.cands, s.logits), s.logits[best]), nil
}

// argmax checks logits and returns the lowest id among the largest.
func argmax(logits []float32) (int32, error) {
	best, bestLogit := -1, float32(math.Inf(-1))
	for i, l := range logits {
		if l > bestLogit {
			best, bestLogit = i, l
		}
		if l != l || l > math.MaxFloat32 {
			return 0, &LogitError{Token: i, Value: l}
		}
	}
	if best < 0 {
		return 0, ErrNoFiniteLogit
	}
	return int32(best), nil
}

// penalise fills s.logits and returns the lowest id among the largest of them.
func (s *Sampler) penalise(logits []float32, history []int32) (int32, error) {
	s.logits = s.logits[:0]
	for _, l := range logits {
		s.logits = append(s.logits, float64(l))
	}
	begin := 0
	if w := s.opts.RepeatWindow; w > 0 && w < len(history) {
		begin = len(history) - w
	}
	clear(s.seen)
	for i, t := range history[begin:] {
		if t < 0 || int(t) >= len(logits) {
			return 0, fmt.Errorf("sample: history token %d at index %d is outside the vocabulary of %d", t, begin+i, len(logits))
		}
		if _, again := s.seen[t]; again {
			continue
		}
		s.seen[t] = struct{}{}
		if s.logits[t] > 0 {
			s.logits[t] /= s.opts.RepeatPenalty
		} else {
			s.logits[t] *= s.opts.RepeatPenalty
		}
	}
	best := 0
	for i, l := range s.logits {
		if l > s.logits[best] {
			best = i
		}
	}
	return int32(best), nil
}

// collect returns the tokens that are not ruled out, in the order of their ids, in dst's memory.
func collect[F float32 | float64](dst []candidate, logits []F) []candidate {
	dst = dst[:0]
	for i, l := range logits {
		if x := float64(l); !math.IsInf(x, -1) {
			dst = append(dst, candidate{logit: x, token: int32(i)})
		}
	}
	return dst
}

// draw makes the cuts and draws one candidate. best is the largest logit.
func (s *Sampler) draw(c []candidate, best float64) int32 {
	s.cands = c // keep the memory
	c = cut(c, best, s.opts)
	u := s.rng.Float64() * total(c)
	for _, x := range c {
		if u -= x.weight; u < 0 {
			return x.token
		}
	}
	return c[len(c)-1].token // rounding used u up
}

// cut weighs the candidates and applies top-k, top-p and min-p. The result shares c's memory, has at least one element,
// and no weight is 0.
func cut(c []candidate, best float64, o Options) []candidate {
	if o.TopK > 0 && o.TopK < len(c) {
		c = moveBest(c, func(taken int, _ candidate) bool { return taken < o.TopK })
	}
	minWeight := 0.0
	if !o.cutsByMass() {
		minWeight = o.MinP // nothing needs the sum over the tokens that it drops
	}
	n := 0
	for _, x := range c {
		x.weight = math.Exp((x.logit - best) / o.Temperature)
		if x.weight > 0 && x.weight >= minWeight {
			c[n] = x
			n++
		}
	}
	c = c[:n]
	if !o.cutsByMass() {
		return c
	}
	want, sum := o.TopP*total(c), 0.0
	c = moveBest(c, func(_ int, last candidate) bool {
		sum += last.weight
		return sum < want
	})
	n = len(c)
	for n > 1 && c[n-1].weight < o.MinP {
		n--
	}
	return c[:n]
}

func total(c []candidate) float64 {
	sum := 0.0
	for _, x := range c {
		sum += x.weight
	}
	return sum
}
