package ggufmodel

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/tokenizer"
)

// templateKey is the key of a file's chat template. Further ones have a name behind it.
const templateKey = "tokenizer.chat_template"

// Text is what a file has of text.
type Text struct {
	// Tokenizer is nil if Refused says why it cannot be made.
	Tokenizer *tokenizer.Tokenizer
	Refused   error
	// TokenizerJSON is a tokenizer.json that makes the same ids; nil if Tokenizer is.
	TokenizerJSON []byte
	// ConfigJSON is a tokenizer_config.json: the ends of a text, and the chat templates, if there
	// are any.
	ConfigJSON []byte
}

// Text reads tokenizer and chat templates from the metadata. A tokenizer that is missing, damaged
// or of an unknown kind is Refused, since the model runs on ids without it.
func (m *Model) Text() (*Text, error) {
	t, config := &Text{}, map[string]any{}
	own := t.read(m.File.Metadata())
	if t.Refused == nil {
		if err := json.Unmarshal(own, &config); err != nil {
			return nil, fmt.Errorf("gguf: %w", err)
		}
	}
	if templates := m.templates(); templates != nil {
		config["chat_template"] = templates
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(config); err != nil {
		return nil, fmt.Errorf("gguf: %w", err)
	}
	t.ConfigJSON = b.Bytes()
	return t, nil
}

// read makes the tokenizer and returns its tokenizer_config.json, or says why there is none.
func (t *Text) read(m *gguf.Metadata) (config []byte) {
	v, err := m.Tokenizer()
	if err != nil {
		t.Refused = err
		return nil
	}
	tok, err := tokenizer.FromGGUF(v)
	if err == nil {
		t.TokenizerJSON, config, err = v.JSON()
	}
	if t.Refused = err; err == nil {
		t.Tokenizer = tok
	}
	return config
}

// templates returns the one chat template, or all named ones as tokenizer_config.json lists them;
// nil if there is none.
func (m *Model) templates() any {
	named := map[string]string{}
	for _, key := range m.File.Metadata().Keys() {
		name, more := strings.CutPrefix(key, templateKey+".")
		text, ok := m.File.Metadata().Text(key)
		switch {
		case ok && key == templateKey:
			named["default"] = text
		case ok && more:
			named[name] = text
		}
	}
	type item struct {
		Name     string `json:"name"`
		Template string `json:"template"`
	}
	if text, ok := named["default"]; ok && len(named) == 1 {
		return text
	}
	var list []item
	for _, name := range slices.Sorted(maps.Keys(named)) {
		list = append(list, item{name, named[name]})
	}
	if list == nil {
		return nil
	}
	return list
}
