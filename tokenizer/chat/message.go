package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/moeflux/moeflux-actor/tokenizer/jinja"
)

// The roles of messages.
const (
	System    = "system"
	User      = "user"
	Assistant = "assistant"
)

// Message is one message of a text conversation.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
	// ReasoningContent is what the assistant thought before it answered, without its marks. Most
	// templates leave it out of earlier turns.
	ReasoningContent string `json:"reasoning_content,omitempty"`
}

// Values returns the messages as templates take them. A message without reasoning has no such key.
func Values(messages []Message) *jinja.List {
	list := jinja.NewList()
	for _, m := range messages {
		d := jinja.Message(m.Role, m.Content)
		if m.ReasoningContent != "" {
			d.Set("reasoning_content", m.ReasoningContent)
		}
		list.Append(d)
	}
	return list
}

// ReadMessages reads a JSON list of messages whose contents are texts. Anything else
// that messages hold in other programs, such as images and tool calls, is refused.
func ReadMessages(r io.Reader) ([]Message, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	var messages []Message
	if err := dec.Decode(&messages); err != nil {
		return nil, fmt.Errorf(`chat: this is not a JSON list of messages like {"role": "user", "content": "..."}: %w`, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errors.New("chat: something follows the list of messages")
	}
	for i, m := range messages {
		if m.Role != System && m.Role != User && m.Role != Assistant {
			return nil, fmt.Errorf("chat: message %d has the role %q, but must have %s, %s or %s", i, m.Role, System, User, Assistant)
		}
	}
	return messages, nil
}
