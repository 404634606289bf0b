package server

import (
	"encoding/json"
	"net/http"

	moeflux "github.com/moeflux/moeflux-actor"
)

// turnReply writes answers of the Messages API, streamed or whole.
type turnReply struct {
	id     string
	served *Served
	w      http.ResponseWriter
	out    *sse
	call   *call

	prompt int // tokens
	reused int
	ended  *moeflux.End

	block int    // the index of the last block of a stream; -1: none yet
	kind  string // of the block that is open; "": none is
}

// newTurnReply returns what answers POST /v1/messages.
func newTurnReply(w http.ResponseWriter, out *sse, c *call, h head) reply {
	return &turnReply{id: "msg_" + h.ID, served: h.served, w: w, out: out, call: c, block: -1}
}

// contentBlock is a part of an answer.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

// turnUsage is what an answer took. The three kinds of tokens of a prompt add up to all of it. As
// documented, a prompt has tokens that were known, or are from now on, where the request marks
// blocks with cache_control, and input_tokens alone where it does not; account says what was known
// of any.
type turnUsage struct {
	Input   int      `json:"input_tokens"`
	Created int      `json:"cache_creation_input_tokens"`
	Read    int      `json:"cache_read_input_tokens"`
	Output  int      `json:"output_tokens"`
	Account *account `json:"moeflux,omitempty"`
}

// turnMessage is an answer.
type turnMessage struct {
	ID      string         `json:"id"`
	Type    string         `json:"type"`
	Role    string         `json:"role"`
	Model   string         `json:"model"`
	Content []contentBlock `json:"content"`
	Reason  *string        `json:"stop_reason"`
	Stop    *string        `json:"stop_sequence"`
	Usage   turnUsage      `json:"usage"`
}

func (a *turnReply) message() turnMessage {
	m := turnMessage{ID: a.id, Type: "message", Role: "assistant", Model: a.served.Name, Content: []contentBlock{}}
	m.Usage = turnUsage{Input: a.prompt}
	if a.call.cached && a.prompt > 0 { // the last token is read each time
		m.Usage = turnUsage{Input: 1, Read: a.reused, Created: a.prompt - a.reused - 1}
	}
	return m
}

func (a *turnReply) begin() {
	a.out.event("message_start", map[string]any{"type": "message_start", "message": a.message()})
}

func (a *turnReply) keepalive() { a.out.event("ping", map[string]string{"type": "ping"}) }

func (a *turnReply) fail(f *fault) { a.out.event("error", anthropicForm(f)) }

func (a *turnReply) piece(p piece) {
	switch {
	case p.Prompt != nil:
		a.prompt = len(p.Prompt.IDs)
	case p.Read != nil:
		a.reused = p.Read.Reused
	case p.End != nil:
		a.ended = p.End
	}
	if !a.call.stream {
		return
	}
	if p.Reasoning != "" {
		a.in("thinking", contentBlock{Type: "thinking", Thinking: new(""), Signature: new("")})
		a.delta(map[string]string{"type": "thinking_delta", "thinking": p.Reasoning})
	}
	if p.Text != "" {
		a.in("text", contentBlock{Type: "text", Text: new("")})
		a.delta(map[string]string{"type": "text_delta", "text": p.Text})
	}
	if c := p.Call; c != nil && !c.Void {
		if c.ID != "" {
			a.close()
			a.in("tool_use", contentBlock{Type: "tool_use", ID: c.ID, Name: c.Name, Input: json.RawMessage("{}")})
		}
		if c.Arguments != "" {
			a.delta(map[string]string{"type": "input_json_delta", "partial_json": c.Arguments})
		}
	}
}

// in opens a block, unless one of its kind is open.
func (a *turnReply) in(kind string, b contentBlock) {
	if a.kind == kind && kind != "tool_use" {
		return
	}
	a.close()
	a.kind = kind
	a.block++
	a.out.event("content_block_start", map[string]any{"type": "content_block_start", "index": a.block, "content_block": b})
}

func (a *turnReply) delta(d map[string]string) {
	a.out.event("content_block_delta", map[string]any{"type": "content_block_delta", "index": a.block, "delta": d})
}

func (a *turnReply) close() {
	if a.kind == "" {
		return
	}
	a.kind = ""
	a.out.event("content_block_stop", map[string]any{"type": "content_block_stop", "index": a.block})
}

// stopReason says in Anthropic's words why a text ended.
func stopReason(e *moeflux.End) (reason string, stop *string) {
	switch {
	case e.Reason == moeflux.StopLength, e.Reason == moeflux.StopContext:
		return "max_tokens", nil
	case len(e.Message.ToolCalls) > 0:
		return "tool_use", nil
	case e.Reason == moeflux.StopString:
		return "stop_sequence", &e.Stop
	}
	return "end_turn", nil
}

func (a *turnReply) end() {
	m := a.message()
	reason, stop := stopReason(a.ended)
	m.Reason, m.Stop = &reason, stop
	u := usageOf(a.served)
	u.add(&a.ended.Usage, 0, true)
	m.Usage.Output, m.Usage.Account = u.CompletionTokens, &u.Account
	if a.call.stream {
		a.close()
		a.out.event("message_delta", map[string]any{
			"type": "message_delta", "delta": map[string]any{"stop_reason": reason, "stop_sequence": stop}, "usage": m.Usage,
		})
		a.out.event("message_stop", map[string]string{"type": "message_stop"})
		return
	}
	said := &a.ended.Message
	if said.ReasoningContent != "" {
		m.Content = append(m.Content, contentBlock{Type: "thinking", Thinking: &said.ReasoningContent, Signature: new("")})
	}
	if text := said.Text(); text != "" {
		m.Content = append(m.Content, contentBlock{Type: "text", Text: &text})
	}
	for _, c := range said.ToolCalls {
		input := json.RawMessage(c.Arguments)
		if !json.Valid(input) {
			input = json.RawMessage("{}")
		}
		m.Content = append(m.Content, contentBlock{Type: "tool_use", ID: c.ID, Name: c.Name, Input: input})
	}
	writeJSON(a.w, http.StatusOK, m)
}
