package sample

import (
	"errors"
	"math"
)

// ErrNoneAllowed reports a place of a text at which a constraint allows no token.
var ErrNoneAllowed = errors.New("the constraint allows no token of the vocabulary here")

// Constraint says which tokens may come at one place of a text.
type Constraint interface {
	// Allows reports whether a token may come.
	Allows(token int32) bool
	// Forbid makes the logits [vocab] of all tokens that may not come negative infinity.
	Forbid(logits []float32)
}

// NextWithin is Next among the tokens that a constraint allows, with the probabilities that they
// have among themselves. A token is drawn from all first, which mostly is allowed: only one that is
// not makes NextWithin ask about the whole vocabulary, and draw again. Cuts see all tokens at first
// and allowed ones then. Errors beside those of Next: ErrNoneAllowed.
func (s *Sampler) NextWithin(c Constraint, logits []float32, prompt, sampled []int32) (int32, error) {
	token, err := s.Next(logits, prompt, sampled)
	if err != nil || c.Allows(token) {
		return token, err
	}
	s.allowed = append(s.allowed[:0], logits...)
	c.Forbid(s.allowed)
	for _, l := range s.allowed {
		if l > float32(math.Inf(-1)) {
			return s.Next(s.allowed, prompt, sampled)
		}
	}
	return 0, ErrNoneAllowed
}
