package modelfiles

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/io/ggufmodel"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/tokenizer"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// Tokenizer returns the tokenizer of the model at a path; nil, without an error, if it has none.
func Tokenizer(path string) (*tokenizer.Tokenizer, error) {
	if !gguf.Is(path) {
		text, ok := weights.TextDir(path)
		if !ok {
			return nil, nil
		}
		return tokenizer.LoadDir(text)
	}
	text, err := textOf(path)
	switch {
	case err != nil:
		return nil, err
	case text.Refused != nil:
		return nil, fmt.Errorf("%s: %w", path, text.Refused)
	}
	return text.Tokenizer, nil
}

// Template returns the chat template of the model at a path. Errors are those of chat.Load.
func Template(path string, o chat.Options) (*chat.Template, error) {
	if !gguf.Is(path) {
		return chat.Load(path, o)
	}
	text, err := textOf(path)
	if err != nil {
		return nil, err
	}
	return chat.FromConfig(path, text.ConfigJSON, o)
}

func textOf(path string) (*ggufmodel.Text, error) {
	m, err := ggufmodel.Open(path)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	return m.Text()
}

// Generation reads how the model's makers want tokens chosen, nil if they do not say. GGUF files
// have nothing of that.
func Generation(path string) (*model.Generation, error) {
	if gguf.Is(path) {
		return nil, nil
	}
	return weights.ReadGeneration(path)
}
