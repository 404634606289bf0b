package sample

import (
	"errors"
	"math"
)

// ErrNoneAllowed reports a place of a text at which a constraint allows no token that can be
// chosen.
var ErrNoneAllowed = errors.New("the constraint allows none of the tokens that can be chosen here")

// Constraint says which tokens a text may have, from one to the next. Those that end a text are
// among them, where it may end.
type Constraint interface {
	// Accepts reports whether a token may come next.
	Accepts(token int32) bool
	// Mask returns all that may come next: bit t%64 of word t/64 is token t. Tokens past its end
	// may not. Nobody changes it, and it is valid until the next Advance.
	Mask() []uint64
	// Advance takes the token that comes. An error is one that may not.
	Advance(token int32) error
	// Complete reports whether nothing may follow but an end of the text, which need not come.
	Complete() bool
}

// NextWithin is Next within a constraint. The constraint comes last, after penalties, bias,
// temperature and cuts: of the tokens that the cuts leave, those that it refuses are dropped, and
// the others keep the proportions among themselves. If it refuses all that the cuts leave,
// everything is done again with the tokens that it allows alone. A greedy choice, which cuts do not
// concern, takes the best that is allowed. The caller tells the constraint of the token.
//
// It draws first and asks afterwards, which is exact. Let p be the distribution that the cuts leave
// and a the share of it that is allowed. A token x that is allowed comes at once with p(x). Another
// one comes with 1-a, and then a second draw, among those that are allowed, takes x with p(x)/a.
// Together that is p(x) + (1-a)·p(x)/a = p(x)/a.
//
// Each draw uses one number of the random stream. Errors: those of Next, and ErrNoneAllowed.
func (s *Sampler) NextWithin(c Constraint, logits []float32, prompt, sampled []int32) (int32, error) {
	token, err := s.Next(logits, prompt, sampled)
	if err != nil || c.Accepts(token) {
		return token, err
	}
	if s.opts.cuts(len(logits)) {
		if err := s.leave(logits, prompt, sampled); err != nil {
			return 0, err
		}
		if token, ok := s.redraw(c); ok {
			return token, nil
		}
	}
	token, err = s.Next(s.masked(c, logits), prompt, sampled)
	if errors.Is(err, ErrNoFiniteLogit) || errors.Is(err, ErrAllExcluded) {
		err = ErrNoneAllowed
	}
	return token, err
}

// cuts reports whether fewer tokens than the vocabulary's may be drawn.
func (o *Options) cuts(vocab int) bool {
	return o.Temperature > 0 && (o.TopK > 0 && o.TopK < vocab || o.cutsByMass() || o.MinP > 0)
}

// leave brings into s.cands what the cuts of the draw before left. If it is only top-k that cuts, a
// candidate may stay whose weight beside the best is too small for a float64, which the draw has
// dropped: so they are collected once more.
func (s *Sampler) leave(logits []float32, prompt, sampled []int32) error {
	if s.opts.cutsByMass() || s.opts.MinP > 0 {
		s.cands = s.left
		return nil
	}
	v, err := s.adjust.view(logits, prompt, sampled, &s.opts)
	if err != nil {
		return err
	}
	best, err := v.best()
	if err != nil {
		return err
	}
	s.cands = v.collect(s.cands, best.logit, &s.opts)
	return nil
}

// redraw draws among those of s.cands that are allowed, if there are any. Weights are beside the
// best of them.
func (s *Sampler) redraw(c Constraint) (int32, bool) {
	n, best := 0, math.Inf(-1)
	for _, x := range s.cands {
		if c.Accepts(x.token) {
			s.cands[n] = x
			best = max(best, x.logit)
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	allowed := s.cands[:n]
	for i := range allowed {
		allowed[i].weight = math.Exp((allowed[i].logit - best) / s.opts.Temperature)
	}
	return s.pick(allowed), true
}

// masked returns the logits with those of refused tokens ruled out, valid until the next call.
func (s *Sampler) masked(c Constraint, logits []float32) []float32 {
	mask, ruledOut := c.Mask(), float32(math.Inf(-1))
	s.allowed = append(s.allowed[:0], logits...)
	for i := range s.allowed {
		if w := i / 64; w >= len(mask) || mask[w]>>(i%64)&1 == 0 {
			s.allowed[i] = ruledOut
		}
	}
	return s.allowed
}
