package sample

import (
	"fmt"
	"math"
	"slices"
)

// LogProb is the natural logarithm of a token's probability.
type LogProb struct {
	Token   int32
	LogProb float64
}

// LogProbs are the log-probabilities at one place of a text. They are of the model's own
// distribution, the softmax of its logits: before penalties, bias, temperature and cuts.
type LogProbs struct {
	Chosen LogProb
	// the most likely tokens, most likely first; of equal ones the lower id. Ruled-out ones are not
	// among them
	Top []LogProb
}

// LogProbs returns the log-probability of the token that was chosen and those of the top most
// likely tokens, of logits [vocab]. It changes nothing of the random stream. Errors: *LogitError,
// ErrNoFiniteLogit, a token outside the vocabulary.
func (s *Sampler) LogProbs(logits []float32, chosen int32, top int) (LogProbs, error) {
	best, err := argmax(logits)
	switch {
	case err != nil:
		return LogProbs{}, err
	case best < 0:
		return LogProbs{}, ErrNoFiniteLogit
	case chosen < 0 || int(chosen) >= len(logits):
		return LogProbs{}, fmt.Errorf("token %d is outside the vocabulary of %d", chosen, len(logits))
	}
	sum, peak := 0.0, float64(logits[best])
	for _, l := range logits {
		sum += math.Exp(float64(l) - peak)
	}
	norm := peak + math.Log(sum)
	p := LogProbs{Chosen: LogProb{chosen, float64(logits[chosen]) - norm}}
	if top <= 0 {
		return p, nil
	}
	s.cands = view{base: logits}.topK(s.cands, min(top, len(logits)))
	slices.SortFunc(s.cands, func(a, b candidate) int {
		if a.before(b) {
			return -1
		}
		return 1
	})
	for _, c := range s.cands {
		p.Top = append(p.Top, LogProb{c.token, c.logit - norm})
	}
	return p, nil
}
