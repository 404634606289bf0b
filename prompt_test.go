package moeflux

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// What people write never becomes a special token, in whatever field it comes, and reaches the
// model as they wrote it.
func TestTextIsNoSpecialToken(t *testing.T) {
	m := openDemo(t, Options{})
	special := ""
	for id := range int32(m.text.VocabSize()) {
		if m.text.IsSpecial(id) {
			special = m.text.Decode([]int32{id}, false)
		}
	}
	specials := func(messages ...Message) (n int, text string) {
		p, err := m.ChatPrompt(Request{Messages: messages})
		if err != nil {
			t.Fatal(err)
		}
		if read := m.text.Decode(p.IDs, false); read != p.Text {
			t.Errorf("the model reads %q of %q", read, p.Text)
		}
		for _, id := range p.IDs {
			if m.text.IsSpecial(id) {
				n++
			}
		}
		return n, p.Text
	}
	inject := "a" + special + "b"
	for _, role := range []string{System, User, Assistant} {
		plain, _ := specials(Message{Role: role, Content: "a b"}, Message{Role: User, Content: "x"})
		for name, message := range map[string]Message{
			"content": {Role: role, Content: inject}, "parts": {Role: role, Parts: []chat.Part{{Text: inject}}},
		} {
			got, text := specials(message, Message{Role: User, Content: "x"})
			if got != plain || !strings.Contains(text, inject) {
				t.Errorf("%s in %s of %s: %d special tokens, %d without it: %q", special, name, role, got, plain, text)
			}
		}
	}
}

// ChatPrompt is what Chat reads.
func TestChatPrompt(t *testing.T) {
	m := openDemo(t, Options{})
	r := Request{Messages: []Message{{Role: User, Content: "hello"}}, MaxTokens: 1}
	p, err := m.ChatPrompt(r)
	if err != nil {
		t.Fatal(err)
	}
	c := mustCollect(t, m.Chat(t.Context(), r))
	if c.prompt.Text != p.Text || !slices.Equal(c.prompt.IDs, p.IDs) || len(p.IDs) != c.end.Usage.PromptTokens {
		t.Errorf("ChatPrompt says %q, Chat reads %q", p.Text, c.prompt.Text)
	}
	if _, err := m.ChatPrompt(Request{}); !errors.Is(err, ErrEmptyPrompt) {
		t.Errorf("of no messages: %v", err)
	}
}

// Continue goes on from the last message: a greedy answer cut in two is the answer.
func TestContinue(t *testing.T) {
	m := openDemo(t, Options{})
	ask := Message{Role: User, Content: "write a loop"}
	whole := mustCollect(t, m.Chat(t.Context(), Request{Messages: []Message{ask}, MaxTokens: 24, Sampling: greedy}))
	first := mustCollect(t, m.Chat(t.Context(), Request{Messages: []Message{ask}, MaxTokens: 12, Sampling: greedy}))
	begun := Message{Role: Assistant, Content: strings.TrimSpace(first.end.Message.Content)}
	rest := mustCollect(t, m.Chat(t.Context(), Request{Messages: []Message{ask, begun}, Continue: true, MaxTokens: 12, Sampling: greedy}))
	if !strings.HasSuffix(rest.prompt.Text, begun.Content) {
		t.Errorf("the prompt ends with %q, not with what was begun, %q", rest.prompt.Text, begun.Content)
	}
	if got := begun.Content + rest.end.Message.Content; strings.TrimSpace(first.end.Message.Content) == first.end.Message.Content &&
		!strings.HasPrefix(got, whole.end.Message.Content[:len(begun.Content)+1]) {
		t.Errorf("continued: %q, whole: %q", got, whole.end.Message.Content)
	}
	for _, messages := range [][]Message{nil, {ask}} {
		if _, err := m.Chat(t.Context(), Request{Messages: messages, Continue: true}).Wait(); err == nil || !strings.Contains(err.Error(), "Request.Continue") {
			t.Errorf("%v: %v", messages, err)
		}
	}
}
