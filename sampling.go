package moeflux

import (
	"math/rand/v2"

	"github.com/moeflux/moeflux-actor/io/modelfiles"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages/sample"
)

// Sampling says how tokens are chosen. A nil field is as the model's makers say in its
// generation_config.json, and off where they say nothing: so the zero value is how the model is
// meant to be used, and a model without that file takes the most likely tokens. With a Temperature
// of 0, in Go new(0.0), nothing is taken from that file.
type Sampling struct {
	// Temperature divides the logits. 0 takes the most likely token; only penalties and LogitBias
	// matter then.
	Temperature *float64
	// TopK keeps the K most likely tokens. 0 keeps all.
	TopK *int
	// TopP keeps the most likely tokens until their probabilities sum to TopP. 0 and 1 keep all.
	TopP *float64
	// MinP drops tokens that are less than MinP times as likely as the most likely one.
	MinP *float64
	// RepeatPenalty makes tokens of the text less likely, from 0.01 to 100. 0 and 1 mean none.
	RepeatPenalty *float64
	// PresencePenalty is subtracted once from the logit of every new token that came before. From
	// -2 to 2.
	PresencePenalty float64
	// FrequencyPenalty is subtracted for each time that a new token came before. From -2 to 2.
	FrequencyPenalty float64
	// LogitBias adds to the logits of tokens, by id. From -100 to 100; -100 excludes the token.
	LogitBias map[int32]float64
	// Seed chooses the random stream: the same request with the same seed gives the same text. nil
	// draws one, which End.Seed tells.
	Seed *uint64
}

// Defaults returns what the generation_config.json of a model directory says about sampling, and
// which of its keys ask for something that this engine does not do and ignores. Without such a file
// all is nil.
func Defaults(dir string) (s Sampling, ignored []string, err error) {
	own, err := modelfiles.Generation(dir)
	if own == nil || err != nil {
		return s, nil, err
	}
	if own.Sample {
		ignored = own.Ignored
	}
	return defaultsOf(own), ignored, nil
}

// defaultsOf returns what a model's makers want. Where they do not sample, only their penalty
// counts; where they do and name no temperature, it is 1.
func defaultsOf(own *model.Generation) Sampling {
	s := Sampling{RepeatPenalty: own.RepetitionPenalty}
	if !own.Sample {
		return s
	}
	s.Temperature, s.TopK, s.TopP, s.MinP = own.Temperature, own.TopK, own.TopP, own.MinP
	if s.Temperature == nil {
		s.Temperature = new(1.0)
	}
	return s
}

// sampling returns how tokens of a request are chosen.
func (m *Model) sampling(s Sampling) (sample.Options, error) {
	var own Sampling
	if s.Temperature == nil || *s.Temperature != 0 {
		var err error
		if own, err = m.own(); err != nil {
			return sample.Options{}, err
		}
	}
	o := s.over(own)
	switch {
	case s.Seed != nil:
		o.Seed = *s.Seed
	case o.Temperature > 0:
		o.Seed = rand.Uint64() >> 11 // 53 bits survive every JSON reader
	}
	return o, nil
}

// Validate reports every value that no model can serve. A request is checked without it.
func (s Sampling) Validate() error { return s.over(Sampling{}).Validate() }

// over returns s, and the values of own where s has none. The seed is left open.
func (s Sampling) over(own Sampling) sample.Options {
	return sample.Options{
		Temperature: first(s.Temperature, own.Temperature), TopK: first(s.TopK, own.TopK), TopP: first(s.TopP, own.TopP),
		MinP: first(s.MinP, own.MinP), RepeatPenalty: first(s.RepeatPenalty, own.RepeatPenalty),
		PresencePenalty: s.PresencePenalty, FrequencyPenalty: s.FrequencyPenalty, LogitBias: s.LogitBias,
	}
}

// first returns the first value that is there, else the zero value.
func first[T any](values ...*T) (zero T) {
	for _, v := range values {
		if v != nil {
			return *v
		}
	}
	return zero
}
