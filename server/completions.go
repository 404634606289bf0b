package server

import (
	"encoding/json"
	"net/http"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
)

// completions answers POST /v1/completions.
func (s *Server) completions(w http.ResponseWriter, r *http.Request) {
	s.complete(w, r, readCompletion, func(out *sse, c *call, h head) reply {
		h.ID, h.Object = "cmpl-"+h.ID, "text_completion"
		return &textReply{head: h, w: w, out: out, call: c, choices: make([]textChoice, c.choices), usage: usageOf(h.served)}
	})
}

// readCompletion reads the body of POST /v1/completions.
func readCompletion(o *object) (*call, *fault) {
	c := new(call)
	c.model, _ = o.text("model")
	readPrompt(o, c)
	readSampling(o, &c.request)
	readStream(o, c)
	readChoices(o, c)
	readConstraint(o, &c.request)
	if c.request.MaxTokens = readMaxTokens(o, "max_tokens"); c.request.MaxTokens == 0 {
		c.request.MaxTokens = 16 // as documented
	}
	if n := o.integer("logprobs", 0, maxTopLogProbs); n != nil {
		c.request.LogProbs, c.request.TopLogProbs = true, *n
	}
	o.refuse("the model continues texts at their end", "suffix")
	o.only("echo", "the prompt is not sent back", false)
	if best := o.integer("best_of", 1, maxChoices); best != nil && *best != c.choices {
		o.note(unsupported("best_of", "best_of other than n is not supported"))
	}
	return c, o.found.fault
}

// readPrompt reads a text; a list of one text is one.
func readPrompt(o *object, c *call) {
	if !o.has("prompt") {
		o.fail("prompt", "prompt is missing")
		return
	}
	var list []json.RawMessage
	if json.Unmarshal(o.fields["prompt"], &c.request.Prompt) == nil {
		return
	}
	if json.Unmarshal(o.fields["prompt"], &list) == nil && len(list) == 1 && json.Unmarshal(list[0], &c.request.Prompt) == nil {
		return
	}
	if len(list) > 1 && strings.HasPrefix(strings.TrimSpace(string(list[0])), `"`) {
		o.note(unsupported("prompt", "prompt: one text a request is supported, and this has %d", len(list)))
		return
	}
	o.fail("prompt", "prompt must be a text")
}

// textReply writes text completions, streamed or whole.
type textReply struct {
	head
	w       http.ResponseWriter
	out     *sse
	call    *call
	choices []textChoice
	usage   usage
}

// textChoice is what is known of one text.
type textChoice struct {
	offset int // characters
	probs  textProbs
	text   strings.Builder
	end    *moeflux.End
}

// textProbs is how likely tokens were, in the form of text completions.
type textProbs struct {
	Tokens []string             `json:"tokens"`
	Probs  []float64            `json:"token_logprobs"`
	Top    []map[string]float64 `json:"top_logprobs"`
	Offset []int                `json:"text_offset"`
}

func (p *textProbs) add(t *moeflux.Token, offset int) {
	one := logprobOf(t)
	top := make(map[string]float64, len(one.Top))
	for _, o := range one.Top {
		top[o.Token] = o.LogProb
	}
	p.Tokens, p.Probs = append(p.Tokens, one.Token), append(p.Probs, one.LogProb)
	p.Top, p.Offset = append(p.Top, top), append(p.Offset, offset)
}

type textChunk struct {
	Text     string     `json:"text"`
	Index    int        `json:"index"`
	LogProbs *textProbs `json:"logprobs"`
	Finish   *string    `json:"finish_reason"`
}

func (a *textReply) begin()        {}
func (a *textReply) keepalive()    { a.out.raw(": ping\n\n") }
func (a *textReply) fail(f *fault) { a.out.data(openAIForm(f)) }

func (a *textReply) piece(p piece) {
	c := &a.choices[p.choice]
	var probs *textProbs
	if p.Token != nil && a.call.request.LogProbs {
		probs = new(textProbs)
		probs.add(p.Token, c.offset)
		c.probs.add(p.Token, c.offset)
	}
	c.offset += len([]rune(p.Text))
	c.text.WriteString(p.Text)
	if p.End != nil {
		c.end = p.End
		a.usage.add(&p.End.Usage, 0)
	}
	if !a.call.stream {
		return
	}
	if p.Text != "" || probs != nil {
		a.chunk(textChunk{Text: p.Text, Index: p.choice, LogProbs: probs})
	}
	if p.End != nil {
		a.chunk(textChunk{Index: p.choice, Finish: new(finishReason(p.End))})
	}
}

func (a *textReply) chunk(c textChunk) { a.out.data(a.object([]textChunk{c}, nil)) }

func (a *textReply) object(choices []textChunk, u *usage) any {
	return struct {
		head
		Choices []textChunk `json:"choices"`
		Usage   *usage      `json:"usage,omitempty"`
	}{a.head, choices, u}
}

func (a *textReply) end() {
	if a.call.stream {
		if a.call.usage {
			a.out.data(a.object([]textChunk{}, &a.usage))
		}
		a.out.raw("data: [DONE]\n\n")
		return
	}
	var choices []textChunk
	for i := range a.choices {
		c := &a.choices[i]
		one := textChunk{Text: c.text.String(), Index: i, Finish: new(finishReason(c.end))}
		if a.call.request.LogProbs {
			one.LogProbs = &c.probs
		}
		choices = append(choices, one)
	}
	writeJSON(a.w, http.StatusOK, a.object(choices, &a.usage))
}
