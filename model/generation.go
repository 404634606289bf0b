package model

import (
	"encoding/json"
	"errors"
	"math"
)

// Generation is how the makers of a checkpoint want its tokens chosen: what its
// generation_config.json says of sampling. A nil value means that the file does not say.
type Generation struct {
	// Sample is do_sample: false means that the most likely token is taken, and that of the
	// values below only RepetitionPenalty counts.
	Sample            bool
	Temperature       *float64
	TopK              *int // 0 keeps all
	TopP              *float64
	MinP              *float64
	RepetitionPenalty *float64
	// Ignored are keys that ask for something this engine does not do, in the order of
	// unsupportedSampling.
	Ignored []string
}

// unsupportedSampling are the keys of generation_config.json that change which tokens are chosen
// and that the engine does not know, with the value that changes nothing.
var unsupportedSampling = []struct {
	key     string
	neutral float64
}{
	{"typical_p", 1}, {"epsilon_cutoff", 0}, {"eta_cutoff", 0}, {"no_repeat_ngram_size", 0}, {"encoder_repetition_penalty", 1}, {"penalty_alpha", 0},
	{"num_beams", 1}, {"num_beam_groups", 1}, {"guidance_scale", 1}, {"min_length", 0}, {"min_new_tokens", 0},
}

// ParseGeneration reads generation_config.json. The error joins one *ConfigError for each key that
// is impossible. Keys that say nothing of sampling are not looked at.
func ParseGeneration(data []byte) (*Generation, error) {
	var errs []error
	r := newReader("generation_config.json", "", data, &errs)
	if r == nil {
		return nil, errors.Join(errs...)
	}
	g := &Generation{
		Sample:            r.bool("do_sample", false),
		Temperature:       r.within("temperature", 0, math.MaxFloat64),
		TopP:              r.within("top_p", 0, 1),
		MinP:              r.within("min_p", 0, 1),
		RepetitionPenalty: r.within("repetition_penalty", 0.01, 100),
	}
	if r.has("top_k") {
		k := max(0, r.int("top_k", -1, maxVocab)) // -1 keeps all in some programs
		g.TopK = &k
	}
	for _, u := range unsupportedSampling {
		raw, ok := r.get(u.key)
		if !ok {
			continue
		}
		var x float64
		if json.Unmarshal(raw, &x) != nil || x != u.neutral {
			g.Ignored = append(g.Ignored, u.key)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return g, nil
}

// within returns an optional number in [lo, hi], nil if it is absent or refused.
func (r *reader) within(key string, lo, hi float64) *float64 {
	raw, ok := r.get(key)
	if !ok {
		return nil
	}
	var x float64
	if !r.decode(key, raw, &x, "a number") {
		return nil
	}
	if !(x >= lo && x <= hi) {
		if hi == math.MaxFloat64 {
			r.fail(key, "%v is below %v", x, lo)
		} else {
			r.fail(key, "%v is outside %v to %v", x, lo, hi)
		}
		return nil
	}
	return &x
}
