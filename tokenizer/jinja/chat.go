package jinja

import "time"

// ChatTemplate renders conversations with the variables that chat templates expect.
type ChatTemplate struct {
	Template *Template
	// BOS and EOS are the tokenizer's special tokens as text. A template sees an empty one as
	// undefined, as it does in the reference.
	BOS, EOS string
	// Now gives strftime_now its time. Nil makes strftime_now fail.
	Now func() time.Time
}

// Message returns one message of a conversation as templates take it.
func Message(role, content string) *Dict {
	d := NewDict()
	d.Set("role", role)
	d.Set("content", content)
	return d
}

// Chat is one conversation to be rendered.
type Chat struct {
	// Messages is a list of dicts with role and content, as from Message or DecodeJSON.
	Messages *List
	// Tools describes the functions that the model may call; nil for none.
	Tools *List
	// AddGenerationPrompt ends the text with the beginning of the model's turn.
	AddGenerationPrompt bool
	// Extra has further variables, which win over the others; nil for none.
	Extra *Dict
}

// Render returns the prompt of one conversation. It may be called from many goroutines. The error
// is an *Error; one of kind KindTemplate is the template's own refusal of the conversation.
func (t *ChatTemplate) Render(c Chat) (string, error) {
	vars := NewDict()
	list := func(name string, l *List) {
		if l == nil {
			vars.Set(name, nil)
		} else {
			vars.Set(name, l)
		}
	}
	list("messages", c.Messages)
	list("tools", c.Tools)
	vars.Set("documents", nil)
	vars.Set("add_generation_prompt", c.AddGenerationPrompt)
	if t.BOS != "" {
		vars.Set("bos_token", t.BOS)
	}
	if t.EOS != "" {
		vars.Set("eos_token", t.EOS)
	}
	if c.Extra != nil {
		for _, e := range c.Extra.entries {
			vars.put(e.key, e.hash, e.val)
		}
	}
	return t.Template.RenderWith(vars, Config{Now: t.Now})
}
