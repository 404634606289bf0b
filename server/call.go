package server

import (
	moeflux "github.com/moeflux/moeflux-actor"
)

// call is what a client asks of a model, whatever the API.
type call struct {
	model   string // as the client names it; "" means the only one
	request moeflux.Request
	chat    bool // it is a conversation, else a text
	choices int  // answers to each prompt
	// prompts are those of a text, each of which is answered; a conversation has none.
	prompts []textPrompt

	stream  bool
	usage   bool // with stream: the usage comes in an event of its own
	oneCall bool // at most one call of a tool
	cached  bool // usage tells what of the prompt was known
}

// textPrompt is a text to continue, in words or in tokens.
type textPrompt struct {
	text string
	ids  []int32
}

// answers returns how many texts are wanted in all.
func (c *call) answers() int { return c.choices * max(1, len(c.prompts)) }

// requestOf returns the request of an answer.
func (c *call) requestOf(answer int) moeflux.Request {
	r := c.request
	if len(c.prompts) > 0 {
		p := c.prompts[answer/c.choices]
		r.Prompt, r.PromptIDs = p.text, p.ids
	}
	if n := answer % c.choices; n > 0 && r.Sampling.Seed != nil {
		r.Sampling.Seed = new(*r.Sampling.Seed + uint64(n)) // else all choices are the same
	}
	return r
}

// The bounds of what a request may ask for.
const (
	maxChoices     = 16
	maxAnswers     = 64 // choices of all prompts
	maxStops       = 16
	maxStopBytes   = 1024
	maxBias        = 1024
	maxTopLogProbs = 20
	maxTools       = 512
	maxMessages    = 100_000
	maxTokensBound = 1 << 24
)

// readStream reads whether and how the answer is streamed.
func readStream(o *object, c *call) {
	c.stream, _ = o.boolean("stream")
	if progress, _ := o.boolean("return_progress"); progress {
		if !c.stream {
			o.fail("return_progress", "return_progress is only allowed with stream")
		}
		c.request.Progress = true
	}
	options := o.object("stream_options")
	if options == nil {
		return
	}
	if !c.stream {
		o.fail("stream_options", "stream_options is only allowed with stream")
		return
	}
	c.usage, _ = options.boolean("include_usage")
	options.only("include_obfuscation", "nothing is obfuscated", false)
}

// readChoices reads how many answers are wanted.
func readChoices(o *object, c *call) {
	c.choices = 1
	if n := o.integer("n", 1, maxChoices); n != nil {
		c.choices = *n
	}
}

// readMaxTokens reads the bound of new tokens, which has two names.
func readMaxTokens(o *object, names ...string) int {
	most := 0
	for _, name := range names {
		if n := o.integer(name, 1, maxTokensBound); n != nil {
			most = *n
		}
	}
	return most
}
