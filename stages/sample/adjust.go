package sample

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// view is the logits of one token with penalties and bias applied. Few tokens have any, so they lie
// apart.
type view struct {
	base     []float32   // [vocab]; -Inf for what is in adjusted
	adjusted []candidate // tokens with a penalty or a bias; weight is unused
	raw      []float32   // as the model gave them
}

// adjuster makes views. It keeps memory between them.
type adjuster struct {
	bias []candidate // by token, logit is the value to add

	base     []float32
	adjusted []candidate
	// [vocab] index in adjusted plus one, 0 for a token that is not there; all 0 between calls
	slot []int32
}

// sortedBias returns a bias as a list in the order of the ids.
func sortedBias(bias map[int32]float64) []candidate {
	var list []candidate
	for _, token := range slices.Sorted(maps.Keys(bias)) {
		list = append(list, candidate{token: token, logit: bias[token]})
	}
	return list
}

// view applies the options to logits. The result is valid until the next call; without anything to
// apply it is the logits themselves.
func (a *adjuster) view(logits []float32, prompt, sampled []int32, o *Options) (view, error) {
	if !o.repeats() && !o.counts() && len(a.bias) == 0 {
		return view{base: logits, raw: logits}, nil
	}
	if len(a.slot) < len(logits) {
		a.slot = make([]int32, len(logits))
	}
	a.adjusted = a.adjusted[:0]
	err := a.apply(logits, prompt, sampled, o)
	a.base = append(a.base[:0], logits...)
	for _, c := range a.adjusted {
		a.slot[c.token] = 0
		a.base[c.token] = float32(math.Inf(-1))
		if err == nil {
			err = checkLogit(int(c.token), logits[c.token])
		}
	}
	return view{base: a.base, adjusted: a.adjusted, raw: logits}, err
}

// apply fills a.adjusted.
func (a *adjuster) apply(logits []float32, prompt, sampled []int32, o *Options) error {
	if o.repeats() {
		if err := a.repeat(logits, prompt, sampled, o); err != nil {
			return err
		}
	}
	if o.counts() {
		for i, t := range sampled {
			c, _, err := a.touch(logits, t)
			if err != nil {
				return fmt.Errorf("sampled token %d at index %d %w", t, i, err)
			}
			c.weight++ // the count, for now
		}
		for i := range a.adjusted {
			if c := &a.adjusted[i]; c.weight > 0 {
				c.logit -= c.weight*o.FrequencyPenalty + o.PresencePenalty
				c.weight = 0
			}
		}
	}
	for _, b := range a.bias {
		c, _, err := a.touch(logits, b.token)
		switch {
		case err != nil:
			return fmt.Errorf("logit bias of token %d, which %w", b.token, err)
		case b.logit == ExcludeBias:
			c.logit = math.Inf(-1)
		default:
			c.logit += b.logit
		}
	}
	return nil
}

// repeat applies the repeat penalty. It comes first: a token that is there already has it.
func (a *adjuster) repeat(logits []float32, prompt, sampled []int32, o *Options) error {
	skip := 0
	if w := o.RepeatWindow; w > 0 {
		skip = max(0, len(prompt)+len(sampled)-w)
	}
	index := skip
	for _, part := range [][]int32{prompt[min(skip, len(prompt)):], sampled[max(0, skip-len(prompt)):]} {
		for _, t := range part {
			c, fresh, err := a.touch(logits, t)
			switch {
			case err != nil:
				return fmt.Errorf("history token %d at index %d %w", t, index, err)
			case !fresh:
			case c.logit > 0:
				c.logit /= o.RepeatPenalty
			default:
				c.logit *= o.RepeatPenalty
			}
			index++
		}
	}
	return nil
}

// touch returns the entry of a token in a.adjusted, made if necessary. It is valid until
// the next call.
func (a *adjuster) touch(logits []float32, token int32) (c *candidate, fresh bool, err error) {
	if token < 0 || int(token) >= len(logits) {
		return nil, false, fmt.Errorf("is outside the vocabulary of %d", len(logits))
	}
	if n := a.slot[token]; n > 0 {
		return &a.adjusted[n-1], false, nil
	}
	a.adjusted = append(a.adjusted, candidate{token: token, logit: float64(logits[token])})
	a.slot[token] = int32(len(a.adjusted))
	return &a.adjusted[len(a.adjusted)-1], true, nil
}

// best checks the logits and returns the lowest id among the largest.
func (v view) best() (candidate, error) {
	i, err := argmax(v.base)
	if err != nil {
		return candidate{}, err
	}
	best := candidate{token: -1, logit: math.Inf(-1)}
	if i >= 0 {
		best = candidate{token: int32(i), logit: float64(v.base[i])}
	}
	for _, c := range v.adjusted {
		if c.before(best) && !math.IsInf(c.logit, -1) {
			best = c
		}
	}
	if best.token >= 0 {
		return best, nil
	}
	if i, err := argmax(v.raw); i >= 0 || err != nil {
		return candidate{}, cmp.Or(err, ErrAllExcluded)
	}
	return candidate{}, ErrNoFiniteLogit
}
