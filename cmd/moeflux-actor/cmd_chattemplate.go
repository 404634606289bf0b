package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"unicode/utf8"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
	"github.com/moeflux/moeflux-actor/tokenizer/jinja"
)

type chatTemplateCmd struct {
	Model    string `placeholder:"DIR" help:"Use the chat template of this model directory. Default: the demo model."`
	Template string `placeholder:"FILE" help:"Use the chat template in this file."`
	BOS      string `name:"bos" placeholder:"TEXT" help:"The template's bos_token. Default: the model's; with --template, none."`
	EOS      string `name:"eos" placeholder:"TEXT" help:"The template's eos_token. Default: the model's; with --template, none."`
	CacheDir string `placeholder:"DIR" help:"Where the demo model is unpacked. Default: moeflux-actor in the user's cache folder."`
	JSON     bool   `name:"json" help:"Does nothing: the output is JSON lines in any case."`
}

// Help is shown by --help.
func (chatTemplateCmd) Help() string {
	return `Example:

    echo '{"messages": [{"role": "user", "content": "Hello"}], "add_generation_prompt": true}' |
        moeflux-actor chat-template --model DIR
    moeflux-actor chat-template --template chat_template.jinja --bos '<s>' < conversations.jsonl

Each line of stdin is a JSON object with "messages" and optionally "tools", "add_generation_prompt" and "kwargs" (further
variables of the template). Each gives one line on stdout: {"text": "..."}, or {"error": "..."} if the template refuses the
conversation or something is missing. A line that is not JSON ends the command with an error that names it.`
}

// Run renders stdin line by line.
func (c *chatTemplateCmd) Run(ctx context.Context, inv *invocation) error {
	if c.Model != "" && c.Template != "" {
		return usagef("--model and --template are both given; use one")
	}
	template, err := c.open(ctx, inv)
	if err != nil {
		return err
	}
	return translateLines(ctx, inv, func(line []byte) (any, error) { return renderLine(template, line) })
}

func (c *chatTemplateCmd) open(ctx context.Context, inv *invocation) (*chat.Template, error) {
	o := chat.Options{BOS: c.BOS, EOS: c.EOS, Now: inv.env.now}
	if c.Template != "" {
		text, err := os.ReadFile(c.Template)
		if err != nil {
			return nil, fmt.Errorf("the template cannot be read: %w", err)
		}
		return chat.Parse(c.Template, string(text), o)
	}
	dir, err := modelDir(ctx, inv, c.Model, c.CacheDir)
	if err != nil {
		return nil, err
	}
	return chat.Load(dir, o)
}

type errorLine struct {
	Error string `json:"error"`
}

// renderLine renders one conversation. The error is for a line that is not JSON; all else is a
// result.
func renderLine(template *chat.Template, line []byte) (any, error) {
	const form = `this is not a JSON object like {"messages": [...]}`
	if !utf8.Valid(line) {
		return nil, errors.New(form + ": it is not UTF-8")
	}
	if !json.Valid(line) {
		var discard json.RawMessage
		return nil, fmt.Errorf(form+": %w", noEOF(json.Unmarshal(line, &discard)))
	}
	text, err := renderChat(template, line)
	if refusal, ok := errors.AsType[*jinja.Error](err); ok && refusal.Kind == jinja.KindTemplate {
		return errorLine{refusal.Msg}, nil // in the template's own words
	}
	if err != nil {
		return errorLine{err.Error()}, nil
	}
	return textLine{text}, nil
}

// renderChat renders a conversation given as JSON.
func renderChat(template *chat.Template, line []byte) (string, error) {
	value, err := jinja.DecodeJSON(line)
	if err != nil {
		return "", err
	}
	object, ok := value.(*jinja.Dict)
	if !ok {
		return "", errors.New("this is not an object with messages")
	}
	var c jinja.Chat
	if c.Messages, err = field[*jinja.List](object, "messages", "a list"); err != nil {
		return "", err
	}
	if c.Messages == nil {
		return "", errors.New("messages is missing; it must be a list")
	}
	if c.Tools, err = field[*jinja.List](object, "tools", "a list or null"); err != nil {
		return "", err
	}
	if c.Extra, err = field[*jinja.Dict](object, "kwargs", "an object"); err != nil {
		return "", err
	}
	if c.AddGenerationPrompt, err = field[bool](object, "add_generation_prompt", "true or false"); err != nil {
		return "", err
	}
	return template.Render(c)
}

// field returns a value of an object; what is null or missing is zero.
func field[T any](object *jinja.Dict, name, want string) (T, error) {
	var zero T
	value, _ := object.Get(name)
	if value == nil {
		return zero, nil
	}
	v, ok := value.(T)
	if !ok {
		return zero, fmt.Errorf("%s is not %s", name, want)
	}
	return v, nil
}
