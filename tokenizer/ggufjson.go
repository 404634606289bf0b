package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// jsonFile, and what is in it, is a tokenizer.json as it is written for a GGUF file.
type jsonFile struct {
	Version      string      `json:"version"`
	Truncation   any         `json:"truncation"`
	Padding      any         `json:"padding"`
	Added        []jsonAdded `json:"added_tokens"`
	Normalizer   any         `json:"normalizer"`
	PreTokenizer jsonSteps   `json:"pre_tokenizer"`
	Post         any         `json:"post_processor"`
	Decoder      byteLevel   `json:"decoder"`
	Model        jsonBPE     `json:"model"`
}

type jsonAdded struct {
	ID         int32  `json:"id"`
	Content    string `json:"content"`
	SingleWord bool   `json:"single_word"`
	Lstrip     bool   `json:"lstrip"`
	Rstrip     bool   `json:"rstrip"`
	Normalized bool   `json:"normalized"`
	Special    bool   `json:"special"`
}

type jsonSteps struct {
	Type  string `json:"type"`
	Steps []any  `json:"pretokenizers"`
}

type jsonSplit struct {
	Type     string            `json:"type"`
	Pattern  map[string]string `json:"pattern"`
	Behavior string            `json:"behavior"`
	Invert   bool              `json:"invert"`
}

type byteLevel struct {
	Type           string `json:"type"`
	AddPrefixSpace bool   `json:"add_prefix_space"`
	TrimOffsets    bool   `json:"trim_offsets"`
	UseRegex       bool   `json:"use_regex"`
}

type jsonBPE struct {
	Type         string           `json:"type"`
	IgnoreMerges bool             `json:"ignore_merges"`
	Vocab        map[string]int32 `json:"vocab"`
	Merges       []string         `json:"merges"`
}

// JSON returns a tokenizer.json, and a tokenizer_config.json without a template, that make the same
// ids as FromGGUF does. The error is that of FromGGUF, or names a token that is no text.
func (v *GGUF) JSON() (file, config []byte, err error) {
	if _, err := FromGGUF(v); err != nil { // checks everything
		return nil, nil, err
	}
	rule, _ := v.rule()
	vocab, added, _ := v.sort()
	level := byteLevel{Type: "ByteLevel"}
	bpe := jsonBPE{Type: "BPE", IgnoreMerges: rule.whole, Vocab: vocab, Merges: append([]string{}, v.Merges...)}
	f := jsonFile{Version: "1.0", Decoder: level, Model: bpe}
	f.Added = []jsonAdded{}
	for _, a := range added {
		f.Added = append(f.Added, jsonAdded{ID: a.id, Content: a.content, Special: a.special})
	}
	if rule.nfc {
		f.Normalizer = map[string]string{"type": "NFC"}
	}
	f.PreTokenizer.Type = "Sequence"
	for _, p := range rule.patterns {
		f.PreTokenizer.Steps = append(f.PreTokenizer.Steps, jsonSplit{Type: "Split", Pattern: map[string]string{"Regex": p}, Behavior: "Isolated"})
	}
	f.PreTokenizer.Steps = append(f.PreTokenizer.Steps, level)
	for i, token := range v.Tokens {
		if !utf8.ValidString(token) {
			return nil, nil, fmt.Errorf("tokenizer: token %d, %q, is not UTF-8, which JSON requires", i, excerpt(token))
		}
	}
	if file, err = encodeJSON(f); err == nil {
		config, err = encodeJSON(v.config())
	}
	return file, config, err
}

// config returns what goes around a text, as tokenizer_config.json has it.
func (v *GGUF) config() map[string]any {
	c := map[string]any{"add_bos_token": v.AddBOS, "add_eos_token": v.AddEOS}
	for key, id := range map[string]int32{"bos_token": v.BOS, "eos_token": v.EOS} {
		if id >= 0 {
			c[key] = v.Tokens[id]
		}
	}
	return c
}

// encodeJSON writes <, > and & as they are: tokens have many.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	return b.Bytes(), nil
}
