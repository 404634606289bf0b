package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/moeflux/moeflux-actor/tokenizer/jinja"
)

// Function is a tool that the model may call. It is made by ReadTools or from JSON, and never
// changes.
type Function struct {
	raw json.RawMessage // as it was given: templates get its keys in this order

	name, description string
	parameters        json.RawMessage
}

// Name is the name that the model calls it by.
func (f *Function) Name() string { return f.name }

// Description says what it does; it may be empty.
func (f *Function) Description() string { return f.description }

// Parameters is the JSON schema of its arguments, nil if there is none. It is read-only.
func (f *Function) Parameters() json.RawMessage { return f.parameters }

// MarshalJSON returns the JSON that the function was made of.
func (f *Function) MarshalJSON() ([]byte, error) {
	if f.raw == nil {
		return nil, errors.New("chat: a Function that nothing was read into has no JSON")
	}
	return f.raw, nil
}

// UnmarshalJSON reads {"type": "function", "function": {"name", "description", "parameters"}}, or
// the function's object alone. The template gets it as it is.
func (f *Function) UnmarshalJSON(data []byte) error {
	tool, err := objectOf(data, "a tool")
	if err != nil {
		return err
	}
	var kind string
	if raw := tool["type"]; raw != nil && tool["function"] != nil {
		if err := readString("type", raw, &kind); err != nil {
			return err
		}
		if kind != "function" {
			return fmt.Errorf("chat: the type of a tool is %q; only function is supported", kind)
		}
	}
	function := tool
	if raw := tool["function"]; raw != nil {
		if function, err = objectOf(raw, "a function"); err != nil {
			return err
		}
	}
	*f = Function{raw: bytes.Clone(data)}
	if raw := function["name"]; raw != nil {
		if err := readString("name", raw, &f.name); err != nil {
			return err
		}
	}
	if f.name == "" {
		return errors.New(`chat: a tool has no name; it must be like {"type": "function", "function": {"name": "...", "parameters": {...}}}`)
	}
	if raw := function["description"]; raw != nil && !isNull(raw) {
		if err := readString("description", raw, &f.description); err != nil {
			return err
		}
	}
	if raw := function["parameters"]; raw != nil && !isNull(raw) {
		if _, err := objectOf(raw, "the schema of the parameters of "+f.name); err != nil {
			return err
		}
		f.parameters = raw
	}
	return nil
}

// ReadTools reads a JSON list of functions, as in the tools of OpenAI-style requests. Names must
// differ.
func ReadTools(r io.Reader) ([]*Function, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if err := json.Unmarshal(data, &list); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			err = fmt.Errorf("it is of the type %s", e.Value)
		}
		return nil, fmt.Errorf(`chat: this is not a JSON list of tools like {"type": "function", "function": {"name": "...", "parameters": {...}}}: %w`, err)
	}
	tools, known := []*Function{}, map[string]bool{}
	for i, raw := range list {
		f := new(Function)
		if err := f.UnmarshalJSON(raw); err != nil {
			return nil, fmt.Errorf("chat: tool %d: %w", i, err)
		}
		if known[f.name] {
			return nil, fmt.Errorf("chat: two tools have the name %s", f.name)
		}
		known[f.name] = true
		tools = append(tools, f)
	}
	return tools, nil
}

// toolValues returns tools as templates take them, nil for none.
func toolValues(tools []*Function) (*jinja.List, error) {
	if len(tools) == 0 {
		return nil, nil
	}
	list := jinja.NewList()
	for _, f := range tools {
		value, err := jinja.DecodeJSON(f.raw)
		if err != nil {
			return nil, fmt.Errorf("chat: the tool %s: %w", f.name, err)
		}
		list.Append(value)
	}
	return list, nil
}
