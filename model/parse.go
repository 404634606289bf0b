package model

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Bounds of single fields. No product of sizes that the engine forms overflows 63 bits within them: the largest is
// experts · 3 matrices · width · width · 4 bytes, below 2^60.
const (
	maxWidth      = 1 << 20 // hidden and intermediate sizes
	maxLayers     = 1 << 12
	maxVocab      = 1 << 24
	maxPositions  = 1 << 31
	maxHeads      = 1 << 14
	maxHeadDim    = 1 << 13
	maxExperts    = 1 << 16
	maxConvKernel = 1 << 6
)

// ConfigError reports one key of a configuration file that is missing or impossible.
type ConfigError struct {
	File string // "config.json" or "generation_config.json"
	Key  string // with the path to it, e.g. "text_config.rope_parameters.rope_theta"; "" for the whole file
	Why  string
	Err  error // cause, if another error is one
}

func (e *ConfigError) Error() string {
	if e.Key == "" {
		return fmt.Sprintf("model: %s: %s", e.File, e.Why)
	}
	return fmt.Sprintf("model: %s: %s: %s", e.File, e.Key, e.Why)
}

func (e *ConfigError) Unwrap() error { return e.Err }

// ParseConfig reads config.json and, where there is one, generation_config.json (nil if not). The error joins
// one *ConfigError for each field that is missing or impossible, or is an *UnknownArchError.
func ParseConfig(config, generation []byte) (*Config, error) {
	var errs []error
	top := newReader("config.json", "", config, &errs)
	if top == nil {
		return nil, errors.Join(errs...)
	}
	r, f, err := findText(top)
	if err != nil {
		return nil, errors.Join(append(errs, err)...)
	}
	c := &Config{Arch: f.arch}
	parseCommon(r, top, c)
	f.parse(r, f, c)
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
			return nil, nil, &UnknownArchError{ModelType: outer, Known: Known()}
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
		return nil, nil, &UnknownArchError{ModelType: inner, Known: Known()}
	}
	return text, f, nil
}

// parseCommon reads what every family has.
func parseCommon(r, top *reader, c *Config) {
	c.HiddenSize = r.int("hidden_size", 1, maxWidth)
	c.NumHiddenLayers = r.int("num_hidden_layers", 1, maxLayers)
	c.VocabSize = r.int("vocab_size", 1, maxVocab)
	c.MaxPositionEmbeddings = r.int("max_position_embeddings", 1, maxPositions)
	c.RMSNormEps = float32(r.float("rms_norm_eps", 1e-30, 1))
	if r.has("tie_word_embeddings") {
		c.TieWordEmbeddings = r.bool("tie_word_embeddings", false)
	} else {
		c.TieWordEmbeddings = top.bool("tie_word_embeddings", false)
	}
	if raw, ok := r.get("hidden_act"); ok {
		if s, ok := r.string("hidden_act", raw); ok && s != "silu" {
			r.fail("hidden_act", "%q is not supported, only \"silu\"", s)
		}
	}
}

// parseSpecialTokens gathers the ids that end a text from every place that names some, and takes the id
// that begins one from the first place that does.
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

// reader reads keys of one JSON object and gathers what is wrong with them.
type reader struct {
	file, path string // path ends in a dot or is empty
	obj        map[string]json.RawMessage
	errs       *[]error
}

// newReader returns nil, with the error gathered, if data is not a JSON object.
func newReader(file, path string, data []byte, errs *[]error) *reader {
	r := &reader{file: file, path: path, errs: errs}
	if err := json.Unmarshal(data, &r.obj); err != nil {
		*errs = append(*errs, &ConfigError{File: file, Key: trimDot(path), Why: "not a JSON object: " + err.Error(), Err: err})
		return nil
	}
	if r.obj == nil {
		*errs = append(*errs, &ConfigError{File: file, Key: trimDot(path), Why: "not a JSON object: null"})
		return nil
	}
	return r
}

func trimDot(path string) string {
	if path == "" {
		return ""
	}
	return path[:len(path)-1]
}

func (r *reader) fail(key, format string, args ...any) {
	*r.errs = append(*r.errs, &ConfigError{File: r.file, Key: r.path + key, Why: fmt.Sprintf(format, args...)})
}

// get returns a key's value; null counts as absent.
func (r *reader) get(key string) (json.RawMessage, bool) {
	raw, ok := r.obj[key]
	return raw, ok && string(raw) != "null"
}

func (r *reader) has(key string) bool {
	_, ok := r.get(key)
	return ok
}

// object returns a reader of a nested object, nil if it is absent or no object.
func (r *reader) object(key string) *reader {
	raw, ok := r.get(key)
	if !ok {
		return nil
	}
	return newReader(r.file, r.path+key+".", raw, r.errs)
}

// decode fills v from a value, with an error that shows the value.
func (r *reader) decode(key string, raw json.RawMessage, v any, want string) bool {
	if err := json.Unmarshal(raw, v); err != nil {
		r.fail(key, "%s is not %s", excerpt(raw), want)
		return false
	}
	return true
}

// excerpt bounds what an error shows of a value.
func excerpt(raw []byte) string {
	if len(raw) > 40 {
		return string(raw[:40]) + "…"
	}
	return string(raw)
}

// int returns a required integer in [lo, hi], 0 if it is not one.
func (r *reader) int(key string, lo, hi int) int {
	raw, ok := r.get(key)
	if !ok {
		r.fail(key, "missing")
		return 0
	}
	var n int64
	if !r.decode(key, raw, &n, "a whole number of at most 63 bits") {
		return 0
	}
	if n < int64(lo) || n > int64(hi) {
		r.fail(key, "%d is outside %d to %d", n, lo, hi)
		return 0
	}
	return int(n)
}

// float returns a required number in (lo, hi], 0 if it is not one.
func (r *reader) float(key string, lo, hi float64) float64 {
	raw, ok := r.get(key)
	if !ok {
		r.fail(key, "missing")
		return 0
	}
	var x float64
	if !r.decode(key, raw, &x, "a number") {
		return 0
	}
	if !(x > lo && x <= hi) {
		r.fail(key, "%v is outside (%v, %v]", x, lo, hi)
		return 0
	}
	return x
}

func (r *reader) bool(key string, absent bool) bool {
	raw, ok := r.get(key)
	if !ok {
		return absent
	}
	var b bool
	r.decode(key, raw, &b, "true or false")
	return b
}

// require refuses any value of an optional flag but the one that the engine implements.
func (r *reader) require(key string, want bool) {
	if r.bool(key, want) != want && len(r.obj[key]) > 0 {
		r.fail(key, "%s is not supported", excerpt(r.obj[key]))
	}
}

func (r *reader) string(key string, raw json.RawMessage) (string, bool) {
	var s string
	ok := r.decode(key, raw, &s, "a string")
	return s, ok
}

func (r *reader) strings(key string, raw json.RawMessage) ([]string, bool) {
	var s []string
	ok := r.decode(key, raw, &s, "a list of strings")
	return s, ok
}

func (r *reader) ints(key string, raw json.RawMessage) []int64 {
	var n []int64
	r.decode(key, raw, &n, "a list of whole numbers")
	return n
}

// tokens returns the ids under key: one number, a list, or nothing.
func (r *reader) tokens(key string, vocab int) []int32 {
	raw, ok := r.get(key)
	if !ok {
		return nil
	}
	var ids []int64
	if raw[0] == '[' {
		ids = r.ints(key, raw)
	} else {
		var id int64
		if !r.decode(key, raw, &id, "a token id") {
			return nil
		}
		ids = []int64{id}
	}
	var out []int32
	for _, id := range ids {
		if id < 0 || vocab > 0 && id >= int64(vocab) || id > maxVocab {
			r.fail(key, "token %d is outside the vocabulary of %d", id, vocab)
			continue
		}
		out = append(out, int32(id))
	}
	return out
}
