// Package jsonlines translates lines of JSON, one for one: what the commands tokenize and
// chat-template do.
package jsonlines

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"github.com/moeflux/moeflux-actor/tokenizer"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
	"github.com/moeflux/moeflux-actor/tokenizer/jinja"
)

// Translate writes what f makes of each line of in, as JSON, as soon as no further line is waiting.
// An error of f ends it, with the number of the line.
func Translate(ctx context.Context, r io.Reader, w io.Writer, f func(line []byte) (any, error)) (err error) {
	in, out := bufio.NewReaderSize(r, 64<<10), bufio.NewWriterSize(w, 64<<10)
	defer func() { err = errors.Join(err, out.Flush()) }()
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for number := 1; ; number++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return fmt.Errorf("reading stdin: %w", err)
		}
		if err == io.EOF && len(line) == 0 {
			return nil
		}
		result, lineErr := f(bytes.TrimSpace(line))
		if lineErr != nil {
			return fmt.Errorf("line %d of stdin: %w", number, lineErr)
		}
		if err := enc.Encode(result); err != nil {
			return err
		}
		if in.Buffered() == 0 {
			if err := out.Flush(); err != nil {
				return err
			}
		}
	}
}

// IDs is a line with token ids.
type IDs struct {
	IDs []int32 `json:"ids"`
}

// Text is a line with a text.
type Text struct {
	Text string `json:"text"`
}

// Encode turns {"text": ...} into IDs.
func Encode(tok *tokenizer.Tokenizer, line []byte, addSpecial bool) (any, error) {
	const form = `this is not an object like {"text": "..."}`
	if !utf8.Valid(line) {
		return nil, errors.New(form + ": it is not UTF-8")
	}
	var in struct {
		Text *string `json:"text"`
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return nil, fmt.Errorf(form+": %w", err)
	}
	if in.Text == nil {
		return nil, errors.New(form + `: "text" is missing`)
	}
	ids, err := tok.Encode(*in.Text, addSpecial)
	if ids == nil {
		ids = []int32{} // prints as a list
	}
	return IDs{ids}, err
}

// Decode turns a list of ids into Text. The ids are checked by parse.
func Decode(tok *tokenizer.Tokenizer, line []byte, skipSpecial bool, parse func([]byte) ([]int32, error)) (any, error) {
	ids, err := parse(line)
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if id < 0 {
			return nil, fmt.Errorf("id %d at index %d is negative", id, i)
		}
	}
	return Text{tok.Decode(ids, skipSpecial)}, nil
}

// Error is a line that says why a conversation has no text.
type Error struct {
	Error string `json:"error"`
}

// Render turns a conversation into Text, or into Error. Its own error is for a line that is not
// JSON; all else is a result.
func Render(template *chat.Template, line []byte) (any, error) {
	const form = `this is not a JSON object like {"messages": [...]}`
	if !utf8.Valid(line) {
		return nil, errors.New(form + ": it is not UTF-8")
	}
	if !json.Valid(line) {
		var discard json.RawMessage
		return nil, fmt.Errorf(form+": %w", json.Unmarshal(line, &discard))
	}
	text, err := renderChat(template, line)
	if refusal, ok := errors.AsType[*jinja.Error](err); ok && refusal.Kind == jinja.KindTemplate {
		return Error{refusal.Msg}, nil // in the template's own words
	}
	if err != nil {
		return Error{err.Error()}, nil
	}
	return Text{text}, nil
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
