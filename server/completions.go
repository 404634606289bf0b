package server

import (
	"encoding/json"
	"net/http"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
)

// readCompletion reads the body of POST /v1/completions.
func readCompletion(o *object) (*call, *fault) {
	c := new(call)
	c.model, _ = o.text("model")
	readPrompt(o, c)
	readSampling(o, &c.request)
	readStream(o, c)
	readChoices(o, c)
	if n := c.answers(); n > maxAnswers {
		o.fail("prompt", "prompt: %d prompts with %d choices each are %d answers; %d are allowed", len(c.prompts), c.choices, n, maxAnswers)
	}
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
	return c, o.fault()
}

// readPrompt reads what is to be continued: a text, a list of texts, tokens, or a list of lists of
// tokens.
func readPrompt(o *object, c *call) {
	if !o.has("prompt") {
		o.fail("prompt", "prompt is missing")
		return
	}
	raw := o.fields["prompt"]
	var list []json.RawMessage
	if one, ok := promptOf(raw); ok {
		c.prompts = []textPrompt{one}
	} else if json.Unmarshal(raw, &list) == nil {
		for i, raw := range list {
			one, ok := promptOf(raw)
			if !ok {
				o.fail("prompt", "prompt[%d] must be a text or a list of tokens", i)
				return
			}
			c.prompts = append(c.prompts, one)
		}
	}
	if len(c.prompts) == 0 {
		o.fail("prompt", "prompt must be a text, a list of tokens, or a list of those")
	}
}

// promptOf reads a text or tokens.
func promptOf(raw json.RawMessage) (p textPrompt, ok bool) {
	if json.Unmarshal(raw, &p.text) == nil {
		return p, true
	}
	return p, json.Unmarshal(raw, &p.ids) == nil && len(p.ids) > 0
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

// newTextReply returns what answers POST /v1/completions.
func newTextReply(w http.ResponseWriter, out *sse, c *call, h head) reply {
	h.ID, h.Object = "cmpl-"+h.ID, "text_completion"
	return &textReply{head: h, w: w, out: out, call: c, choices: make([]textChoice, c.answers()), usage: usageOf(h.served)}
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
		a.usage.add(&p.End.Usage, 0, p.choice%a.call.choices == 0)
	}
	if !a.call.stream {
		return
	}
	if p.Reading != nil {
		a.out.data(textCompletion{head: a.head, Choices: []textChunk{{Index: p.choice}}, Progress: a.out.progress(p.Reading)})
	}
	if p.Text != "" || probs != nil {
		a.chunk(textChunk{Text: p.Text, Index: p.choice, LogProbs: probs})
	}
	if p.End != nil {
		a.chunk(textChunk{Index: p.choice, Finish: new(finishReason(p.End))})
	}
}

func (a *textReply) chunk(c textChunk) {
	a.out.data(textCompletion{head: a.head, Choices: []textChunk{c}})
}

// textCompletion is a reply, or a chunk of one.
type textCompletion struct {
	head
	Choices  []textChunk     `json:"choices"`
	Usage    *usage          `json:"usage,omitempty"`
	Progress *promptProgress `json:"prompt_progress,omitempty"`
}

func (a *textReply) end() {
	if a.call.stream {
		if a.call.usage {
			a.out.data(textCompletion{head: a.head, Choices: []textChunk{}, Usage: &a.usage})
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
	writeJSON(a.w, http.StatusOK, textCompletion{head: a.head, Choices: choices, Usage: &a.usage})
}
