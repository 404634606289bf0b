package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/tokenizer/jinja"
)

// NoTemplateError reports a model directory without a chat template.
type NoTemplateError struct {
	Dir string
}

func (e *NoTemplateError) Error() string {
	return fmt.Sprintf("chat: %s has no chat template: no chat_template.jinja, and no chat_template in tokenizer_config.json; "+
		"it may be no chat model, else put the template into that directory as chat_template.jinja", e.Dir)
}

// Template renders conversations as one model wants them. It never changes: any number of
// goroutines may use it.
type Template struct {
	plain     *jinja.Template
	withTools *jinja.Template // for conversations with tools; often the same
	bos, eos  string
	now       func() time.Time
	source    string       // of withTools
	shape     func() shape // asked once, when first needed
}

// Options are what a template needs beside its text.
type Options struct {
	// BOS and EOS are the special tokens as text. Load takes an empty one from
	// tokenizer_config.json.
	BOS, EOS string
	// Now gives the time to templates that print the date. Nil makes them fail.
	Now func() time.Time
}

// Parse makes a Template of a text. name is for errors, which are *jinja.Error.
func Parse(name, text string, o Options) (*Template, error) {
	t, err := jinja.Parse(name, text)
	if err != nil {
		return nil, err
	}
	out := &Template{plain: t, withTools: t, bos: o.BOS, eos: o.EOS, now: o.Now, source: text}
	out.shape = sync.OnceValue(out.ask)
	return out, nil
}

// Source returns the text of the template, of that for conversations with tools if there are two.
// What it writes tells how its model calls functions and how it reasons.
func (t *Template) Source() string { return t.source }

// Load finds the chat template of a model directory: chat_template.jinja, else chat_template in
// tokenizer_config.json, else that in chat_template.json. In the latter two it is one text, or a
// list of named ones: "default", and "tool_use" for conversations with tools. The error is a
// *NoTemplateError if there is none.
func Load(dir string, o Options) (*Template, error) {
	config, err := readObject(filepath.Join(dir, "tokenizer_config.json"))
	if err != nil {
		return nil, err
	}
	if err := o.tokens(config); err != nil {
		return nil, fmt.Errorf("chat: %s: %w", filepath.Join(dir, "tokenizer_config.json"), err)
	}
	path := filepath.Join(dir, "chat_template.jinja")
	text, err := os.ReadFile(path)
	if err == nil {
		return Parse(path, string(text), o)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("chat: %w", err)
	}
	for _, name := range []string{"tokenizer_config.json", "chat_template.json"} {
		path := filepath.Join(dir, name)
		object := config
		if name != "tokenizer_config.json" {
			if object, err = readObject(path); err != nil {
				return nil, err
			}
		}
		raw := object["chat_template"]
		if raw == nil || string(raw) == "null" {
			continue
		}
		t, err := parseNamed(path, raw, o)
		if err != nil {
			return nil, fmt.Errorf("chat: %s: %w", path, err)
		}
		return t, nil
	}
	return nil, &NoTemplateError{Dir: dir}
}

// FromConfig makes the template that the content of a tokenizer_config.json has; name is what
// errors call it. The error is a *NoTemplateError if there is none.
func FromConfig(name string, config []byte, o Options) (*Template, error) {
	var object map[string]json.RawMessage
	err := json.Unmarshal(config, &object)
	if err == nil {
		err = o.tokens(object)
	}
	raw := object["chat_template"]
	if err == nil && (raw == nil || string(raw) == "null") {
		return nil, &NoTemplateError{Dir: name}
	}
	var t *Template
	if err == nil {
		t, err = parseNamed(name, raw, o)
	}
	if err != nil {
		return nil, fmt.Errorf("chat: %s: %w", name, err)
	}
	return t, nil
}

// readObject reads a file that holds a JSON object; one that does not exist is empty.
func readObject(path string) (map[string]json.RawMessage, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("chat: %w", err)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(data, &object); err != nil {
		return nil, fmt.Errorf("chat: %s is not a JSON object: %w", path, err)
	}
	return object, nil
}

// tokens takes the special tokens that are not given from a tokenizer_config.json.
func (o *Options) tokens(config map[string]json.RawMessage) error {
	for _, token := range []struct {
		key  string
		text *string
	}{{"bos_token", &o.BOS}, {"eos_token", &o.EOS}} {
		raw := config[token.key]
		if *token.text != "" || raw == nil || string(raw) == "null" || json.Unmarshal(raw, token.text) == nil {
			continue
		}
		var object struct{ Content *string }
		if err := json.Unmarshal(raw, &object); err != nil || object.Content == nil {
			return fmt.Errorf(`%s is %.40s, which is neither a string nor an object with "content"`, token.key, raw)
		}
		*token.text = *object.Content
	}
	return nil
}

// parseNamed makes a Template of a text or a list of named ones.
func parseNamed(path string, raw json.RawMessage, o Options) (*Template, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return Parse(path, text, o)
	}
	var list []struct{ Name, Template *string }
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, errors.New(`chat_template is neither a text nor a list of objects with "name" and "template"`)
	}
	named, names := map[string]*Template{}, []string{}
	for i, item := range list {
		if item.Name == nil || item.Template == nil {
			return nil, fmt.Errorf(`item %d of chat_template lacks "name" or "template"`, i)
		}
		t, err := Parse(path+" "+*item.Name, *item.Template, o)
		if err != nil {
			return nil, err
		}
		named[*item.Name], names = t, append(names, *item.Name)
	}
	t := named["default"]
	if t == nil {
		return nil, fmt.Errorf("chat_template is a list without one named default; it has %s", strings.Join(names, ", "))
	}
	if tools := named["tool_use"]; tools != nil {
		t.withTools, t.source = tools.plain, tools.source
	}
	return t, nil
}

// Render returns the prompt of a conversation whose values are given as they are; Prompt makes them
// as the template wants them. The error is a *jinja.Error.
func (t *Template) Render(c jinja.Chat) (string, error) {
	template := t.plain
	if c.Tools != nil {
		template = t.withTools
	}
	return (&jinja.ChatTemplate{Template: template, BOS: t.bos, EOS: t.eos, Now: t.now}).Render(c)
}

// TurnEnd returns the text that the template puts after what the assistant says, "" if that cannot
// be told. Its first token, if a special one, is how the model ends its turn, even where other
// files of the model forgot to say so.
func (t *Template) TurnEnd() string {
	const mark = "moeflux" // any word will do
	text, err := t.Render(jinja.Chat{Messages: Values([]Message{{Role: User, Content: "?"}, {Role: Assistant, Content: mark}})})
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(text, mark)
	return after
}
