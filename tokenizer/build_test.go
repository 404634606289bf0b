package tokenizer

import (
	"encoding/json"
	"testing"
)

// spec describes a small tokenizer.json. The zero value has the 256 bytes as tokens 0 to 255, no
// merges, no splits. Merges make tokens 256 and up; added tokens have the ids they say.
type spec struct {
	merges        [][2]string // in the byte alphabet
	added         []map[string]any
	normalizer    any
	preTokenizers []any // before ByteLevel
	byteLevel     map[string]any
	postProcessor any
	modelKeys     map[string]any // further keys of model, or other values
	topKeys       map[string]any
}

func (s spec) json(tb testing.TB) []byte {
	tb.Helper()
	vocab := map[string]int{}
	for b, c := range byteToChar {
		vocab[string(c)] = b
	}
	for _, m := range s.merges {
		if _, ok := vocab[m[0]+m[1]]; !ok {
			vocab[m[0]+m[1]] = len(vocab)
		}
	}
	model := map[string]any{"type": "BPE", "vocab": vocab, "merges": append([][2]string{}, s.merges...)}
	for k, v := range s.modelKeys {
		model[k] = v
	}
	byteLevel := map[string]any{"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}
	for k, v := range s.byteLevel {
		byteLevel[k] = v
	}
	top := map[string]any{
		"version": "1.0", "truncation": nil, "padding": nil, "added_tokens": s.added, "normalizer": s.normalizer,
		"pre_tokenizer":  map[string]any{"type": "Sequence", "pretokenizers": append(append([]any{}, s.preTokenizers...), byteLevel)},
		"post_processor": s.postProcessor,
		"decoder":        map[string]any{"type": "ByteLevel"},
		"model":          model,
	}
	for k, v := range s.topKeys {
		top[k] = v
	}
	data, err := json.Marshal(top)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func (s spec) build(tb testing.TB) *Tokenizer {
	tb.Helper()
	t, err := Parse(s.json(tb))
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// obj is short for a JSON object.
type obj = map[string]any
