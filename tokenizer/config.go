package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// config is what tokenizer_config.json says about ids. Its other keys concern chat templates and
// other programs.
type config struct {
	addBOS, addEOS *bool  // nil: not said
	bos, eos       string // content of the token, "" if there is none
	class          string // tokenizer_class
	added          []*addedToken
}

// LoadDir reads tokenizer.json and, if present, tokenizer_config.json of a model directory. From
// the latter it takes bos_token and eos_token; tokens of added_tokens_decoder that tokenizer.json
// lacks; and add_bos_token and add_eos_token: if either is given, the two decide what goes around a
// text (one that is not given counts as false) and a template in tokenizer.json does not.
//
// Without a tokenizer.json it reads the tiktoken.model of Kimi K2 or the hy.tiktoken of
// Hunyuan-A13B instead, which need a tokenizer_config.json. With Kimi K2 the 256 ids after the
// vocabulary are special tokens; those without a name in added_tokens_decoder are
// <|reserved_token_ID|>. Hunyuan's are the 210 that its code names.
func LoadDir(dir string) (*Tokenizer, error) {
	data, err := os.ReadFile(filepath.Join(dir, jsonName))
	if errors.Is(err, fs.ErrNotExist) {
		t, rankedErr := loadRankedDir(dir)
		if !errors.Is(rankedErr, fs.ErrNotExist) {
			return t, rankedErr
		}
	}
	if err != nil {
		return nil, fmt.Errorf("tokenizer: %w", err)
	}
	cfg, err := loadConfig(dir)
	if err != nil {
		return nil, err
	}
	t, err := parse(data, cfg)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return t, nil
}

func parseConfig(data []byte) (*config, error) {
	o := newObject("tokenizer_config.json", data)
	cfg := &config{}
	o.into("add_bos_token", &cfg.addBOS)
	o.into("add_eos_token", &cfg.addEOS)
	cfg.class = o.text("tokenizer_class")
	cfg.bos, cfg.eos = o.tokenText("bos_token"), o.tokenText("eos_token")
	var added map[string]json.RawMessage
	o.into("added_tokens_decoder", &added)
	if o.err != nil {
		return nil, o.err
	}
	for name, raw := range added {
		key := fmt.Sprintf("tokenizer_config.json.added_tokens_decoder[%q]", excerpt(name))
		id, err := strconv.ParseInt(name, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("tokenizer: %s: the key is no token id: %w", key, err)
		}
		item := newObject(key, raw)
		tok := readAddedToken(item, int32(id))
		if item.err != nil {
			return nil, item.err
		}
		cfg.added = append(cfg.added, tok)
	}
	slices.SortFunc(cfg.added, func(a, b *addedToken) int { return int(a.id) - int(b.id) })
	return cfg, nil
}

// tokenText takes a token that is a string or an object with its content.
func (o *object) tokenText(name string) string {
	raw := o.take(name)
	if raw == nil {
		return ""
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	token := newObject(o.key(name), raw)
	text = token.text("content")
	if o.err == nil {
		o.err = token.err
	}
	return text
}

// applyConfig sets bos and eos and what goes around a text.
func (t *Tokenizer) applyConfig(cfg *config) error {
	if cfg == nil {
		return nil
	}
	for _, token := range []struct {
		key, content string
		id           *int32
	}{{"bos_token", cfg.bos, &t.bos}, {"eos_token", cfg.eos, &t.eos}} {
		if token.content == "" {
			continue
		}
		id, ok := t.ids[token.content]
		if !ok {
			return fmt.Errorf("tokenizer: tokenizer_config.json: %s is %q, which the tokenizer does not have", token.key, excerpt(token.content))
		}
		*token.id = id
	}
	if cfg.addBOS == nil && cfg.addEOS == nil {
		return nil
	}
	t.before, t.after = nil, nil
	for _, side := range []struct {
		key  string
		add  *bool
		id   int32
		list *[]int32
	}{{"bos", cfg.addBOS, t.bos, &t.before}, {"eos", cfg.addEOS, t.eos, &t.after}} {
		if side.add == nil || !*side.add {
			continue
		}
		if side.id == noToken {
			return fmt.Errorf("tokenizer: tokenizer_config.json: add_%s_token is true without a %s_token", side.key, side.key)
		}
		*side.list = []int32{side.id}
	}
	return nil
}
