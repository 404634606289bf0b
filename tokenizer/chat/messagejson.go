package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/tokenizer/jinja"
)

// messageJSON is a Message as services write it.
type messageJSON struct {
	Role             string         `json:"role"`
	Content          any            `json:"content"`
	ReasoningContent string         `json:"reasoning_content,omitempty"`
	ToolCalls        []toolCallJSON `json:"tool_calls,omitempty"`
	ToolCallID       string         `json:"tool_call_id,omitempty"`
	Name             string         `json:"name,omitempty"`
}

type partJSON struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type toolCallJSON struct {
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type"`
	Function functionJSON `json:"function"`
}

type functionJSON struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// MarshalJSON writes the message as OpenAI-style services do: the arguments of calls are a string,
// and calls without a text have null for a content.
func (m Message) MarshalJSON() ([]byte, error) {
	out := messageJSON{Role: m.Role, Content: m.Content, ReasoningContent: m.ReasoningContent, ToolCallID: m.ToolCallID, Name: m.Name}
	switch {
	case m.Parts != nil:
		parts := []partJSON{}
		for _, p := range m.Parts {
			parts = append(parts, partJSON{"text", p.Text})
		}
		out.Content = parts
	case m.Content == "" && len(m.ToolCalls) > 0:
		out.Content = nil
	}
	for _, c := range m.ToolCalls {
		out.ToolCalls = append(out.ToolCalls, toolCallJSON{c.ID, "function", functionJSON{c.Name, c.Arguments}})
	}
	// A reader sees the text as it is; an encoder that escapes for HTML does so to this, too.
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(out)
	return b.Bytes(), err
}

// UnmarshalJSON reads a message of an OpenAI-style service. Content may be null, a text, or a list
// of parts, of which only texts are taken. Arguments of calls may be a string or an object, which
// becomes the text that templates make of it. Keys that are not known are left out, but for those
// that hold a part of the conversation: they are refused by name.
func (m *Message) UnmarshalJSON(data []byte) error {
	_, err := m.read(data)
	return err
}

// carriers are keys of messages that hold a part of the conversation which no Message has.
var carriers = []string{"function_call", "audio", "refusal", "images", "files"}

// read reads a message and returns the keys that it left out.
func (m *Message) read(data []byte) (left []string, err error) {
	object, err := objectOf(data, "a message")
	if err != nil {
		return nil, err
	}
	*m = Message{}
	for _, key := range sortedKeys(object) {
		raw := object[key]
		if isNull(raw) {
			continue
		}
		if m.take(key, raw, &err) {
			if err != nil {
				return nil, err
			}
			continue
		}
		if slices.Contains(carriers, key) {
			return nil, fmt.Errorf("chat: messages with %s are not supported", key)
		}
		left = append(left, key)
	}
	return left, nil
}

// take reads one key and reports whether a Message has it.
func (m *Message) take(key string, raw json.RawMessage, err *error) bool {
	switch key {
	case "role":
		*err = readString(key, raw, &m.Role)
	case "content":
		*err = m.readContent(raw)
	case "reasoning_content":
		*err = readString(key, raw, &m.ReasoningContent)
	case "reasoning": // as some services write it
		if m.ReasoningContent == "" {
			*err = readString(key, raw, &m.ReasoningContent)
		}
	case "tool_calls":
		*err = m.readCalls(raw)
	case "tool_call_id":
		*err = readString(key, raw, &m.ToolCallID)
	case "name":
		*err = readString(key, raw, &m.Name)
	default:
		return false
	}
	return true
}

func (m *Message) readContent(raw json.RawMessage) error {
	if json.Unmarshal(raw, &m.Content) == nil {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return fmt.Errorf("chat: content is %.40s, which is neither a text nor a list of parts", raw)
	}
	m.Parts = []Part{}
	for i, item := range list {
		part, err := readPart(item)
		if err != nil {
			return fmt.Errorf("chat: part %d of content %w", i, err)
		}
		m.Parts = append(m.Parts, part)
	}
	return nil
}

// readPart reads one part. The error goes on from the name of the part.
func readPart(raw json.RawMessage) (Part, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil && !isNull(raw) {
		return Part{text}, nil
	}
	var part struct{ Type, Text *string }
	if json.Unmarshal(raw, &part) != nil {
		return Part{}, fmt.Errorf(`is %.40s, not like {"type": "text", "text": "..."}`, raw)
	}
	switch {
	case part.Type == nil:
		return Part{}, errors.New("has no type")
	case *part.Type != "text" && *part.Type != "input_text" && *part.Type != "output_text":
		return Part{}, fmt.Errorf("has the type %q; only text is supported", *part.Type)
	case part.Text == nil:
		return Part{}, errors.New("has no text")
	}
	return Part{*part.Text}, nil
}

func (m *Message) readCalls(raw json.RawMessage) error {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return fmt.Errorf("chat: tool_calls is %.40s, not a list", raw)
	}
	for i, item := range list {
		call, err := readCall(item)
		if err != nil {
			return fmt.Errorf("chat: call %d of tool_calls: %w", i, err)
		}
		m.ToolCalls = append(m.ToolCalls, call)
	}
	return nil
}

// readCall reads one call. Some programs write the function's keys where "function" should be.
func readCall(raw json.RawMessage) (ToolCall, error) {
	var call struct {
		ID, Type  string
		Function  *struct{ Name, Arguments json.RawMessage }
		Name      json.RawMessage
		Arguments json.RawMessage
	}
	if err := json.Unmarshal(raw, &call); err != nil {
		return ToolCall{}, fmt.Errorf(`it is %.40s, not like {"id": "...", "type": "function", "function": {"name": "...", "arguments": "{}"}}`, raw)
	}
	if call.Type != "" && call.Type != "function" {
		return ToolCall{}, fmt.Errorf("its type is %q; only function is supported", call.Type)
	}
	if call.Function != nil {
		call.Name, call.Arguments = call.Function.Name, call.Function.Arguments
	}
	out := ToolCall{ID: call.ID}
	if json.Unmarshal(call.Name, &out.Name) != nil || out.Name == "" {
		return ToolCall{}, errors.New("it names no function")
	}
	var err error
	out.Arguments, err = readArguments(call.Arguments)
	return out, err
}

// readArguments returns the text of a call's arguments, which may be given as text or as object.
func readArguments(raw json.RawMessage) (string, error) {
	var text string
	if len(raw) == 0 || json.Unmarshal(raw, &text) == nil {
		if strings.TrimSpace(text) == "" {
			return "{}", nil
		}
		return text, nil
	}
	value, err := jinja.DecodeJSON(raw)
	if err != nil {
		return "", err
	}
	if _, ok := value.(*jinja.Dict); !ok {
		return "", fmt.Errorf("its arguments are %.40s, neither an object nor a text that holds one", raw)
	}
	return jinja.EncodeJSON(value)
}

// ReadMessages reads a JSON list of messages, like those in requests to OpenAI-style services. A
// key that no Message has, an unknown role, and content that is not text are refused by name.
func ReadMessages(r io.Reader) ([]Message, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	dec := json.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&list); err != nil {
		return nil, fmt.Errorf(`chat: this is not a JSON list of messages like {"role": "user", "content": "..."}: %w`, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("chat: something follows the list of messages")
	}
	messages := make([]Message, len(list))
	for i, raw := range list {
		left, err := messages[i].read(raw)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("chat: nothing is known of the key %s", left[0])
		}
		if err == nil {
			err = messages[i].Validate()
		}
		if err != nil {
			return nil, fmt.Errorf("chat: message %d: %s", i, strings.TrimPrefix(err.Error(), "chat: "))
		}
	}
	return messages, nil
}

// roles are all there are.
var roles = []string{System, Developer, User, Assistant, Tool}

// Validate reports what cannot be: an unknown role, or calls or results where no calls belong.
func (m Message) Validate() error {
	switch {
	case !slices.Contains(roles, m.Role):
		return fmt.Errorf("chat: the role is %q, but must be %s", m.Role, strings.Join(roles, ", "))
	case len(m.ToolCalls) > 0 && m.Role != Assistant:
		return fmt.Errorf("chat: only the assistant calls functions, not the role %s", m.Role)
	case m.ToolCallID != "" && m.Role != Tool:
		return fmt.Errorf("chat: only the role %s has a tool_call_id, not %s", Tool, m.Role)
	}
	return nil
}
