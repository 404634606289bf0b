package model

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
)

// Bounds of single fields. No product of sizes that the engine forms overflows 63 bits within them:
// the largest is experts · 3 matrices · width · width · 4 bytes, below 2^60.
const (
	maxWidth      = 1 << 20 // hidden and intermediate sizes
	maxLayers     = 1 << 12
	maxVocab      = 1 << 24
	maxPositions  = 1 << 31
	maxHeads      = 1 << 14
	maxHeadDim    = 1 << 13
	maxExperts    = 1 << 16
	maxConvKernel = 1 << 6
	maxChosen     = 1 << 16 // positions that a row attends to
)

// ConfigError reports one key of a configuration file that is missing or impossible.
type ConfigError struct {
	File string // "config.json" or "generation_config.json"
	// with the path to it, e.g. "text_config.rope_parameters.rope_theta"; "" for the whole file
	Key string
	Why string
	Err error // cause, if another error is one
}

func (e *ConfigError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("model: %s: %s", e.File, e.Why)
	}
	return fmt.Sprintf("model: %s: %s: %s", e.File, e.Key, e.Why)
}

func (e *ConfigError) Unwrap() error { return e.Err }

// ParseConfig reads config.json and, where there is one, generation_config.json (nil if not). The
// error joins one *ConfigError for each field that is missing or impossible, or is an
// *UnknownArchError.
func ParseConfig(config, generation []byte) (*Config, error) {
	var errs []error
	top := newReader("config.json", "", config, &errs)
	if top == nil {
		return nil, errors.Join(errs...)
	}
	return parse(top, generation)
}

// parse reads what ParseConfig does from an object; further errors join those that its reader has
// gathered.
func parse(top *reader, generation []byte) (*Config, error) {
	errs := *top.errs
	top.errs = &errs
	r, f, err := findText(top)
	if err != nil {
		return nil, errors.Join(append(errs, err)...)
	}
	c := &Config{Arch: f.arch}
	parseCommon(r, top, f, c)
	f.parse(r, f, c)
	for _, place := range slices.Compact([]*reader{top, r}) {
		parseQuantization(place, c)
	}
	var gen *reader
	if generation != nil {
		gen = newReader("generation_config.json", "", generation, &errs)
	}
	places := []*reader{r}
	if top != r {
		places = append(places, top)
	}
	if gen != nil {
		places = append(places, gen)
	}
	parseSpecialTokens(places, c)
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return c, nil
}

// findText returns where the fields of the text model are and the family they belong to.
func findText(top *reader) (*reader, *family, error) {
	name := func(r *reader) string {
		raw, ok := r.get("model_type")
		if !ok {
			return ""
		}
		s, _ := r.string("model_type", raw)
		return s
	}
	outer := name(top)
	f := findFamily(outer)
	text := top.object("text_config")
	if text == nil {
		if f == nil {
			return nil, nil, unknownArch(top.file, outer)
		}
		return top, f, nil
	}
	// The nested type is the one that says what the layers are; the outer one names the wrapper.
	inner := name(text)
	if inner != "" {
		f = findFamily(inner)
	}
	if f == nil {
		if inner == "" {
			inner = outer
		}
		return nil, nil, unknownArch(top.file, inner)
	}
	return text, f, nil
}

// parseCommon reads what every family has.
func parseCommon(r, top *reader, f *family, c *Config) {
	c.HiddenSize = r.int("hidden_size", 1, maxWidth)
	c.NumHiddenLayers = r.int("num_hidden_layers", 1, maxLayers)
	c.VocabSize = r.int("vocab_size", 1, maxVocab)
	c.MaxPositionEmbeddings = r.int("max_position_embeddings", 1, maxPositions)
	c.RMSNormEps = float32(r.float(cmp.Or(f.norm, "rms_norm_eps"), 1e-30, 1))
	if r.has("tie_word_embeddings") {
		c.TieWordEmbeddings = r.bool("tie_word_embeddings", false)
	} else {
		c.TieWordEmbeddings = top.bool("tie_word_embeddings", false)
	}
	r.oneOf("hidden_act", cmp.Or(f.activation, "silu"))
}

// parseSpecialTokens gathers the ids that end a text from every place that names some, and takes
// the id that begins one from the first place that does.
func parseSpecialTokens(rs []*reader, c *Config) {
	c.BOSTokenID = -1
	for _, r := range rs {
		for _, id := range r.tokens("eos_token_id", c.VocabSize) {
			if !slices.Contains(c.EOSTokenIDs, id) {
				c.EOSTokenIDs = append(c.EOSTokenIDs, id)
			}
		}
		if bos := r.tokens("bos_token_id", c.VocabSize); len(bos) > 0 && c.BOSTokenID < 0 {
			c.BOSTokenID = bos[0]
		}
	}
	slices.Sort(c.EOSTokenIDs)
}
