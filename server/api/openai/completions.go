package openai

import (
	"encoding/json"
	"net/http"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/body"
	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/wire"
)

// ReadCompletion reads the body of POST /v1/completions.
func ReadCompletion(o *body.Object) (*api.Call, *fault.Fault) {
	c := new(api.Call)
	c.Model, _ = o.Text("model")
	readPrompt(o, c)
	api.ReadSampling(o, &c.Request)
	api.ReadStream(o, c)
	api.ReadChoices(o, c)
	if n := c.Answers(); n > api.MaxAnswers {
		o.Fail("prompt", "prompt: %d prompts with %d choices each are %d answers; %d are allowed", len(c.Prompts), c.Choices, n, api.MaxAnswers)
	}
	api.ReadConstraint(o, &c.Request)
	if c.Request.MaxTokens = api.ReadMaxTokens(o, "max_tokens"); c.Request.MaxTokens == 0 {
		c.Request.MaxTokens = 16 // as documented
	}
	if n := o.Integer("logprobs", 0, api.MaxTopLogProbs); n != nil {
		c.Request.LogProbs, c.Request.TopLogProbs = true, *n
	}
	o.Refuse("the model continues texts at their end", "suffix")
	o.Only("echo", "the prompt is not sent back", false)
	if best := o.Integer("best_of", 1, api.MaxChoices); best != nil && *best != c.Choices {
		o.Note(fault.Unsupported("best_of", "best_of other than n is not supported"))
	}
	return c, o.Fault()
}

// readPrompt reads what is to be continued: a text, a list of texts, tokens, or a list of lists of
// tokens.
func readPrompt(o *body.Object, c *api.Call) {
	if !o.Has("prompt") {
		o.Fail("prompt", "prompt is missing")
		return
	}
	raw := o.Fields["prompt"]
	var list []json.RawMessage
	if one, ok := promptOf(raw); ok {
		c.Prompts = []api.Prompt{one}
	} else if json.Unmarshal(raw, &list) == nil {
		for i, raw := range list {
			one, ok := promptOf(raw)
			if !ok {
				o.Fail("prompt", "prompt[%d] must be a text or a list of tokens", i)
				return
			}
			c.Prompts = append(c.Prompts, one)
		}
	}
	if len(c.Prompts) == 0 {
		o.Fail("prompt", "prompt must be a text, a list of tokens, or a list of those")
	}
}

// promptOf reads a text or tokens.
func promptOf(raw json.RawMessage) (p api.Prompt, ok bool) {
	if json.Unmarshal(raw, &p.Text) == nil {
		return p, true
	}
	return p, json.Unmarshal(raw, &p.IDs) == nil && len(p.IDs) > 0
}

// textReply writes text completions, streamed or whole.
type textReply struct {
	api.Head
	w       http.ResponseWriter
	out     *wire.Stream
	call    *api.Call
	choices []textChoice
	usage   api.Usage
}

// NewTextReply returns what answers POST /v1/completions.
func NewTextReply(w http.ResponseWriter, out *wire.Stream, c *api.Call, h api.Head) api.Reply {
	h.ID, h.Object = "cmpl-"+h.ID, "text_completion"
	return &textReply{Head: h, w: w, out: out, call: c, choices: make([]textChoice, c.Answers()), usage: api.UsageOf(h.Served)}
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
	one := api.LogProbOf(t)
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

func (a *textReply) Begin()              {}
func (a *textReply) Keepalive()          { a.out.Raw(": ping\n\n") }
func (a *textReply) Fail(f *fault.Fault) { a.out.Data(fault.OpenAI(f)) }

func (a *textReply) Piece(p api.Piece) {
	c := &a.choices[p.Choice]
	var probs *textProbs
	if p.Token != nil && a.call.Request.LogProbs {
		probs = new(textProbs)
		probs.add(p.Token, c.offset)
		c.probs.add(p.Token, c.offset)
	}
	c.offset += len([]rune(p.Text))
	c.text.WriteString(p.Text)
	if p.End != nil {
		c.end = p.End
		a.usage.Add(&p.End.Usage, 0, p.Choice%a.call.Choices == 0)
	}
	if !a.call.Stream {
		return
	}
	if p.Reading != nil {
		a.out.Data(Completion{Head: a.Head, Choices: []textChunk{{Index: p.Choice}}, Progress: a.out.Progress(p.Reading)})
	}
	if p.Text != "" || probs != nil {
		a.chunk(textChunk{Text: p.Text, Index: p.Choice, LogProbs: probs})
	}
	if p.End != nil {
		a.chunk(textChunk{Index: p.Choice, Finish: new(api.FinishReason(p.End))})
	}
}

func (a *textReply) chunk(c textChunk) {
	a.out.Data(Completion{Head: a.Head, Choices: []textChunk{c}})
}

// Completion is a reply, or a chunk of one.
type Completion struct {
	api.Head
	Choices  []textChunk          `json:"choices"`
	Usage    *api.Usage           `json:"usage,omitempty"`
	Progress *wire.PromptProgress `json:"prompt_progress,omitempty"`
}

func (a *textReply) End() {
	if a.call.Stream {
		if a.call.Usage {
			a.out.Data(Completion{Head: a.Head, Choices: []textChunk{}, Usage: &a.usage})
		}
		a.out.Raw("data: [DONE]\n\n")
		return
	}
	var choices []textChunk
	for i := range a.choices {
		c := &a.choices[i]
		one := textChunk{Text: c.text.String(), Index: i, Finish: new(api.FinishReason(c.end))}
		if a.call.Request.LogProbs {
			one.LogProbs = &c.probs
		}
		choices = append(choices, one)
	}
	wire.JSON(a.w, http.StatusOK, Completion{Head: a.Head, Choices: choices, Usage: &a.usage})
}
