// Package api is what the APIs of a server have in common. A Call is what a client asks of a model,
// whatever the API; a Reply writes the answer. Each API is a package below: a way to read a call of
// a body, and a way to write its reply. None has a way of its own to the model.
//
// Every documented parameter of an API is done or refused with a fault that names it. Unknown
// fields are left out, as clients send them.
package api

import (
	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/body"
)

// Call is what a client asks of a model, whatever the API.
type Call struct {
	Model   string // as the client names it; "" means the only one
	Request moeflux.Request
	Chat    bool // it is a conversation, else a text
	Choices int  // answers to each prompt
	// Prompts are those of a text, each of which is answered; a conversation has none.
	Prompts []Prompt

	Stream  bool
	Usage   bool // with stream: the usage comes in an event of its own
	OneCall bool // at most one call of a tool
	Cached  bool // usage tells what of the prompt was known
}

// Prompt is a text to continue, in words or in tokens.
type Prompt struct {
	Text string
	IDs  []int32
}

// Answers returns how many texts are wanted in all.
func (c *Call) Answers() int { return c.Choices * max(1, len(c.Prompts)) }

// RequestOf returns the request of an answer.
func (c *Call) RequestOf(answer int) moeflux.Request {
	r := c.Request
	if len(c.Prompts) > 0 {
		p := c.Prompts[answer/c.Choices]
		r.Prompt, r.PromptIDs = p.Text, p.IDs
	}
	if n := answer % c.Choices; n > 0 && r.Sampling.Seed != nil {
		r.Sampling.Seed = new(*r.Sampling.Seed + uint64(n)) // else all choices are the same
	}
	return r
}

// The bounds of what a request may ask for.
const (
	MaxChoices     = 16
	MaxAnswers     = 64 // choices of all prompts
	maxStops       = 16
	maxStopBytes   = 1024
	maxBias        = 1024
	MaxTopLogProbs = 20
	MaxTools       = 512
	MaxMessages    = 100_000
	MaxTokensBound = 1 << 24
)

// ReadStream reads whether and how the answer is streamed.
func ReadStream(o *body.Object, c *Call) {
	c.Stream, _ = o.Boolean("stream")
	if progress, _ := o.Boolean("return_progress"); progress {
		if !c.Stream {
			o.Fail("return_progress", "return_progress is only allowed with stream")
		}
		c.Request.Progress = true
	}
	options := o.Object("stream_options")
	if options == nil {
		return
	}
	if !c.Stream {
		o.Fail("stream_options", "stream_options is only allowed with stream")
		return
	}
	c.Usage, _ = options.Boolean("include_usage")
	options.Only("include_obfuscation", "nothing is obfuscated", false)
}

// ReadChoices reads how many answers are wanted.
func ReadChoices(o *body.Object, c *Call) {
	c.Choices = 1
	if n := o.Integer("n", 1, MaxChoices); n != nil {
		c.Choices = *n
	}
}

// ReadMaxTokens reads the bound of new tokens, which has two names.
func ReadMaxTokens(o *body.Object, names ...string) int {
	most := 0
	for _, name := range names {
		if n := o.Integer(name, 1, MaxTokensBound); n != nil {
			most = *n
		}
	}
	return most
}
