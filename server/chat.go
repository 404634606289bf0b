package server

import (
	"net/http"

	moeflux "github.com/moeflux/moeflux-actor"
)

// chatReply writes chat completions, streamed or whole.
type chatReply struct {
	head
	w       http.ResponseWriter
	out     *sse
	call    *call
	choices []chatChoice
	usage   usage
}

// chatChoice is what is known of one answer.
type chatChoice struct {
	thoughts
	logprobs []logprob
	end      *moeflux.End
}

// chatMessage is a message of the model. Content is null where there are calls alone.
type chatMessage struct {
	Role      string     `json:"role"`
	Content   *string    `json:"content"`
	Refusal   *string    `json:"refusal"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []chatCall `json:"tool_calls,omitempty"`
}

// chatCall is a call of a tool, or a piece of one.
type chatCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// logprobs is a list of them, as chat completions have it.
type logprobs struct {
	Content []logprob `json:"content"`
	Refusal []logprob `json:"refusal"`
}

// delta is what a chunk adds to an answer.
type delta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	Reasoning string     `json:"reasoning_content,omitempty"`
	Calls     []chatCall `json:"tool_calls,omitempty"`
}

func (d *delta) empty() bool {
	return d.Role == "" && d.Content == nil && d.Reasoning == "" && d.Calls == nil
}

type chunkChoice struct {
	Index    int       `json:"index"`
	Delta    delta     `json:"delta"`
	LogProbs *logprobs `json:"logprobs"`
	Finish   *string   `json:"finish_reason"`
}

type chatChunk struct {
	head
	Choices []chunkChoice `json:"choices"`
	Usage   *usage        `json:"usage,omitempty"`
	// Progress tells how much of the prompt is read, as llama.cpp has it.
	Progress *promptProgress `json:"prompt_progress,omitempty"`
}

// newChatReply returns what answers POST /v1/chat/completions.
func newChatReply(w http.ResponseWriter, out *sse, c *call, h head) reply {
	h.ID, h.Object = "chatcmpl-"+h.ID, "chat.completion"
	if c.stream {
		h.Object = "chat.completion.chunk"
	}
	return &chatReply{w: w, out: out, call: c, head: h, choices: make([]chatChoice, c.choices), usage: usageOf(h.served)}
}

func (a *chatReply) begin() {
	for i := range a.choices {
		a.chunk(chunkChoice{Index: i, Delta: delta{Role: "assistant", Content: new("")}})
	}
}

func (a *chatReply) chunk(c chunkChoice) {
	a.out.data(chatChunk{head: a.head, Choices: []chunkChoice{c}})
}

func (a *chatReply) keepalive() { a.out.raw(": ping\n\n") }

func (a *chatReply) fail(f *fault) { a.out.data(openAIForm(f)) }

func (a *chatReply) piece(p piece) {
	c := &a.choices[p.choice]
	c.thoughts.piece(&p.Event)
	var probs *logprobs
	if p.Token != nil && a.call.request.LogProbs {
		one := logprobOf(p.Token)
		probs = &logprobs{Content: []logprob{one}}
		c.logprobs = append(c.logprobs, one)
	}
	if p.End != nil {
		c.end = p.End
		a.usage.add(&p.End.Usage, c.count, p.choice == 0)
	}
	if !a.call.stream {
		return
	}
	if p.Reading != nil {
		a.out.data(chatChunk{head: a.head, Choices: []chunkChoice{{Index: p.choice}}, Progress: a.out.progress(p.Reading)})
	}
	d := deltaOf(&p.Event)
	if !d.empty() || probs != nil {
		a.chunk(chunkChoice{Index: p.choice, Delta: d, LogProbs: probs})
	}
	if p.End != nil {
		a.chunk(chunkChoice{Index: p.choice, Finish: new(finishReason(p.End))})
	}
}

func deltaOf(e *moeflux.Event) (d delta) {
	d.Reasoning = e.Reasoning
	if e.Text != "" {
		d.Content = &e.Text
	}
	if c := e.Call; c != nil && !c.Void && (c.ID != "" || c.Arguments != "") {
		call := chatCall{Index: &c.Index, ID: c.ID, Function: chatFunction{Name: c.Name, Arguments: c.Arguments}}
		if c.ID != "" {
			call.Type = "function"
		}
		d.Calls = []chatCall{call}
	}
	return d
}

func (a *chatReply) end() {
	if a.call.stream {
		if a.call.usage {
			a.out.data(chatChunk{head: a.head, Choices: []chunkChoice{}, Usage: &a.usage})
		}
		a.out.raw("data: [DONE]\n\n")
		return
	}
	type choice struct {
		Index    int         `json:"index"`
		Message  chatMessage `json:"message"`
		LogProbs *logprobs   `json:"logprobs"`
		Finish   string      `json:"finish_reason"`
	}
	reply := struct {
		head
		Choices []choice `json:"choices"`
		Usage   usage    `json:"usage"`
	}{head: a.head, Usage: a.usage}
	for i := range a.choices {
		c := &a.choices[i]
		one := choice{Index: i, Message: messageOf(&c.end.Message), Finish: finishReason(c.end)}
		if a.call.request.LogProbs {
			one.LogProbs = &logprobs{Content: c.logprobs}
		}
		reply.Choices = append(reply.Choices, one)
	}
	writeJSON(a.w, http.StatusOK, reply)
}

func messageOf(m *moeflux.Message) chatMessage {
	out := chatMessage{Role: "assistant", Reasoning: m.ReasoningContent}
	for _, c := range m.ToolCalls {
		out.Calls = append(out.Calls, chatCall{ID: c.ID, Type: "function", Function: chatFunction{Name: c.Name, Arguments: c.Arguments}})
	}
	if text := m.Text(); text != "" || len(out.Calls) == 0 {
		out.Content = &text
	}
	return out
}
