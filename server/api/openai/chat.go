// Package openai reads and answers chat completions and text completions, as OpenAI's API has them.
package openai

import (
	"net/http"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/wire"
)

// chatReply writes chat completions, streamed or whole.
type chatReply struct {
	api.Head
	w       http.ResponseWriter
	out     *wire.Stream
	call    *api.Call
	choices []chatChoice
	usage   api.Usage
}

// chatChoice is what is known of one answer.
type chatChoice struct {
	api.Thoughts
	logprobs []api.LogProb
	end      *moeflux.End
}

// Message is a message of the model. Content is null where there are calls alone.
type Message struct {
	Role      string  `json:"role"`
	Content   *string `json:"content"`
	Refusal   *string `json:"refusal"`
	Reasoning string  `json:"reasoning_content,omitempty"`
	Calls     []Call  `json:"tool_calls,omitempty"`
}

// Call is a call of a tool, or a piece of one.
type Call struct {
	Index    *int     `json:"index,omitempty"`
	ID       string   `json:"id,omitempty"`
	Type     string   `json:"type,omitempty"`
	Function Function `json:"function"`
}

// Function is the function of a call, and its arguments as JSON.
type Function struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// LogProbs is a list of them, as chat completions have it.
type LogProbs struct {
	Content []api.LogProb `json:"content"`
	Refusal []api.LogProb `json:"refusal"`
}

// Delta is what a chunk adds to an answer.
type Delta struct {
	Role      string  `json:"role,omitempty"`
	Content   *string `json:"content,omitempty"`
	Reasoning string  `json:"reasoning_content,omitempty"`
	Calls     []Call  `json:"tool_calls,omitempty"`
}

func (d *Delta) empty() bool {
	return d.Role == "" && d.Content == nil && d.Reasoning == "" && d.Calls == nil
}

type chunkChoice struct {
	Index    int       `json:"index"`
	Delta    Delta     `json:"delta"`
	LogProbs *LogProbs `json:"logprobs"`
	Finish   *string   `json:"finish_reason"`
}

// Chunk is a piece of a streamed chat completion.
type Chunk struct {
	api.Head
	Choices []chunkChoice `json:"choices"`
	Usage   *api.Usage    `json:"usage,omitempty"`
	// Progress tells how much of the prompt is read, as llama.cpp has it.
	Progress *wire.PromptProgress `json:"prompt_progress,omitempty"`
}

// NewChatReply returns what answers POST /v1/chat/completions.
func NewChatReply(w http.ResponseWriter, out *wire.Stream, c *api.Call, h api.Head) api.Reply {
	h.ID, h.Object = "chatcmpl-"+h.ID, "chat.completion"
	if c.Stream {
		h.Object = "chat.completion.chunk"
	}
	return &chatReply{w: w, out: out, call: c, Head: h, choices: make([]chatChoice, c.Choices), usage: api.UsageOf(h.Served)}
}

func (a *chatReply) Begin() {
	for i := range a.choices {
		a.chunk(chunkChoice{Index: i, Delta: Delta{Role: "assistant", Content: new("")}})
	}
}

func (a *chatReply) chunk(c chunkChoice) {
	a.out.Data(Chunk{Head: a.Head, Choices: []chunkChoice{c}})
}

func (a *chatReply) Keepalive() { a.out.Raw(": ping\n\n") }

func (a *chatReply) Fail(f *fault.Fault) { a.out.Data(fault.OpenAI(f)) }

func (a *chatReply) Piece(p api.Piece) {
	c := &a.choices[p.Choice]
	c.Thoughts.Piece(&p.Event)
	var probs *LogProbs
	if p.Token != nil && a.call.Request.LogProbs {
		one := api.LogProbOf(p.Token)
		probs = &LogProbs{Content: []api.LogProb{one}}
		c.logprobs = append(c.logprobs, one)
	}
	if p.End != nil {
		c.end = p.End
		a.usage.Add(&p.End.Usage, c.Count, p.Choice == 0)
	}
	if !a.call.Stream {
		return
	}
	if p.Reading != nil {
		a.out.Data(Chunk{Head: a.Head, Choices: []chunkChoice{{Index: p.Choice}}, Progress: a.out.Progress(p.Reading)})
	}
	d := deltaOf(&p.Event)
	if !d.empty() || probs != nil {
		a.chunk(chunkChoice{Index: p.Choice, Delta: d, LogProbs: probs})
	}
	if p.End != nil {
		a.chunk(chunkChoice{Index: p.Choice, Finish: new(api.FinishReason(p.End))})
	}
}

func deltaOf(e *moeflux.Event) (d Delta) {
	d.Reasoning = e.Reasoning
	if e.Text != "" {
		d.Content = &e.Text
	}
	if c := e.Call; c != nil && !c.Void && (c.ID != "" || c.Arguments != "") {
		call := Call{Index: &c.Index, ID: c.ID, Function: Function{Name: c.Name, Arguments: c.Arguments}}
		if c.ID != "" {
			call.Type = "function"
		}
		d.Calls = []Call{call}
	}
	return d
}

func (a *chatReply) End() {
	if a.call.Stream {
		if a.call.Usage {
			a.out.Data(Chunk{Head: a.Head, Choices: []chunkChoice{}, Usage: &a.usage})
		}
		a.out.Raw("data: [DONE]\n\n")
		return
	}
	type choice struct {
		Index    int       `json:"index"`
		Message  Message   `json:"message"`
		LogProbs *LogProbs `json:"logprobs"`
		Finish   string    `json:"finish_reason"`
	}
	reply := struct {
		api.Head
		Choices []choice  `json:"choices"`
		Usage   api.Usage `json:"usage"`
	}{Head: a.Head, Usage: a.usage}
	for i := range a.choices {
		c := &a.choices[i]
		one := choice{Index: i, Message: messageOf(&c.end.Message), Finish: api.FinishReason(c.end)}
		if a.call.Request.LogProbs {
			one.LogProbs = &LogProbs{Content: c.logprobs}
		}
		reply.Choices = append(reply.Choices, one)
	}
	wire.JSON(a.w, http.StatusOK, reply)
}

func messageOf(m *moeflux.Message) Message {
	out := Message{Role: "assistant", Reasoning: m.ReasoningContent}
	for _, c := range m.ToolCalls {
		out.Calls = append(out.Calls, Call{ID: c.ID, Type: "function", Function: Function{Name: c.Name, Arguments: c.Arguments}})
	}
	if text := m.Text(); text != "" || len(out.Calls) == 0 {
		out.Content = &text
	}
	return out
}
