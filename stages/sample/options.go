package sample

import (
	"errors"
	"fmt"
	"math"
)

// ExcludeBias is the logit bias that excludes a token outright; less negative ones only make it
// less likely.
const ExcludeBias = -100

// Options say how a token is chosen. The zero value is greedy without a penalty. The fields take
// effect in the order RepeatPenalty, FrequencyPenalty and PresencePenalty, LogitBias, Temperature,
// TopK, TopP, MinP; each cut sees the distribution that the one before it left.
type Options struct {
	// Temperature divides the logits. 0 takes the largest logit, and of the others only penalties
	// and bias matter then.
	Temperature float64
	// TopK keeps the K most likely tokens. 0 keeps all. Of equal ones the lower ids are kept.
	TopK int
	// TopP keeps the most likely tokens until their probabilities sum to TopP. 0 and 1 keep all.
	TopP float64
	// MinP drops tokens that are less than MinP times as likely as the most likely one. 0 keeps
	// all.
	MinP float64
	// RepeatPenalty makes tokens of the history less likely: positive logits are divided by it,
	// others multiplied. 0 and 1 mean none; below 1 repetition is favoured. From 0.01 to 100.
	RepeatPenalty float64
	// RepeatWindow is how many tokens at the end of the history RepeatPenalty looks at. 0 means all
	// of them.
	RepeatWindow int
	// PresencePenalty is subtracted once from the logit of every token that was sampled before; the
	// prompt does not count. From -2 to 2. 0 means none; below 0 repetition is favoured.
	PresencePenalty float64
	// FrequencyPenalty is subtracted from a token's logit for each time that it was sampled before;
	// the prompt does not count. From -2 to 2. 0 means none; below 0 repetition is favoured.
	FrequencyPenalty float64
	// LogitBias adds a value to the logit of a token, by its id. From -100 to 100; -100 excludes
	// the token.
	LogitBias map[int32]float64
	// Seed chooses the random stream. The same seed, logits and options give the same tokens.
	Seed uint64
}

// Validate reports all invalid fields in one error.
func (o Options) Validate() error {
	var errs []error
	bad := func(cond bool, format string, args ...any) {
		if cond {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	// Written so that NaN fails.
	bad(!(o.Temperature >= 0) || math.IsInf(o.Temperature, 0), "Options.Temperature is %v, but must be 0 or more", o.Temperature)
	bad(o.TopK < 0, "Options.TopK is %d, but must be 0 or more", o.TopK)
	bad(!(o.TopP >= 0 && o.TopP <= 1), "Options.TopP is %v, but must be 0 to 1", o.TopP)
	bad(!(o.MinP >= 0 && o.MinP <= 1), "Options.MinP is %v, but must be 0 to 1", o.MinP)
	bad(o.RepeatPenalty != 0 && !(o.RepeatPenalty >= 0.01 && o.RepeatPenalty <= 100), "Options.RepeatPenalty is %v, but must be 0 (none) or 0.01 to 100", o.RepeatPenalty)
	bad(o.RepeatWindow < 0, "Options.RepeatWindow is %d, but must be 0 or more", o.RepeatWindow)
	bad(!(o.PresencePenalty >= -2 && o.PresencePenalty <= 2), "Options.PresencePenalty is %v, but must be -2 to 2", o.PresencePenalty)
	bad(!(o.FrequencyPenalty >= -2 && o.FrequencyPenalty <= 2), "Options.FrequencyPenalty is %v, but must be -2 to 2", o.FrequencyPenalty)
	for _, b := range sortedBias(o.LogitBias) {
		bad(b.token < 0, "Options.LogitBias names token %d, but ids are 0 or more", b.token)
		bad(!(b.logit >= ExcludeBias && b.logit <= 100), "Options.LogitBias is %v for token %d, but must be -100 to 100", b.logit, b.token)
	}
	return errors.Join(errs...)
}

// repeats reports whether the repeat penalty changes anything.
func (o Options) repeats() bool { return o.RepeatPenalty != 0 && o.RepeatPenalty != 1 }

// counts reports whether it matters how often a token was sampled.
func (o Options) counts() bool { return o.PresencePenalty != 0 || o.FrequencyPenalty != 0 }

// cutsByMass reports whether top-p drops anything.
func (o Options) cutsByMass() bool { return o.TopP > 0 && o.TopP < 1 }
