// Package anthropic reads and answers Anthropic's Messages API.
package anthropic

import (
	"encoding/json"
	"net/http"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/models"
	"github.com/moeflux/moeflux-actor/server/wire"
)

// turnReply writes answers of the Messages API, streamed or whole.
type turnReply struct {
	id     string
	served *models.Served
	w      http.ResponseWriter
	out    *wire.Stream
	call   *api.Call

	prompt int // tokens
	reused int
	ended  *moeflux.End

	block int    // the index of the last block of a stream; -1: none yet
	kind  string // of the block that is open; "": none is
}

// NewReply returns what answers POST /v1/messages.
func NewReply(w http.ResponseWriter, out *wire.Stream, c *api.Call, h api.Head) api.Reply {
	return &turnReply{id: "msg_" + h.ID, served: h.Served, w: w, out: out, call: c, block: -1}
}

// Block is a part of an answer.
type Block struct {
	Type      string          `json:"type"`
	Text      *string         `json:"text,omitempty"`
	Thinking  *string         `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
}

// Usage is what an answer took. The three kinds of tokens of a prompt add up to all of it. As
// documented, a prompt has tokens that were known, or are from now on, where the request marks
// blocks with cache_control. Where it does not, all are input_tokens, and the others are null, not
// 0, which would deny that some were known; account says what was known of any.
type Usage struct {
	Input   int          `json:"input_tokens"`
	Created *int         `json:"cache_creation_input_tokens"`
	Read    *int         `json:"cache_read_input_tokens"`
	Output  int          `json:"output_tokens"`
	Account *api.Account `json:"moeflux,omitempty"`
}

// Message is an answer.
type Message struct {
	ID      string  `json:"id"`
	Type    string  `json:"type"`
	Role    string  `json:"role"`
	Model   string  `json:"model"`
	Content []Block `json:"content"`
	Reason  *string `json:"stop_reason"`
	Stop    *string `json:"stop_sequence"`
	Usage   Usage   `json:"usage"`
}

func (a *turnReply) message() Message {
	m := Message{ID: a.id, Type: "message", Role: "assistant", Model: a.served.Name, Content: []Block{}}
	m.Usage = Usage{Input: a.prompt}
	if a.call.Cached && a.prompt > 0 { // the last token is read each time
		m.Usage = Usage{Input: 1, Read: new(a.reused), Created: new(a.prompt - a.reused - 1)}
	}
	return m
}

func (a *turnReply) Begin() {
	a.out.Event("message_start", map[string]any{"type": "message_start", "message": a.message()})
}

func (a *turnReply) Keepalive() { a.out.Event("ping", map[string]string{"type": "ping"}) }

func (a *turnReply) Fail(f *fault.Fault) { a.out.Event("error", fault.Anthropic(f)) }

func (a *turnReply) Piece(p api.Piece) {
	switch {
	case p.Prompt != nil:
		a.prompt = len(p.Prompt.IDs)
	case p.Read != nil:
		a.reused = p.Read.Reused
	case p.End != nil:
		a.ended = p.End
	}
	if !a.call.Stream {
		return
	}
	if p.Reasoning != "" {
		a.in("thinking", Block{Type: "thinking", Thinking: new(""), Signature: new("")})
		a.delta(map[string]string{"type": "thinking_delta", "thinking": p.Reasoning})
	}
	if p.Text != "" {
		a.in("text", Block{Type: "text", Text: new("")})
		a.delta(map[string]string{"type": "text_delta", "text": p.Text})
	}
	if c := p.Call; c != nil && !c.Void {
		if c.ID != "" {
			a.close()
			a.in("tool_use", Block{Type: "tool_use", ID: c.ID, Name: c.Name, Input: json.RawMessage("{}")})
		}
		if c.Arguments != "" {
			a.delta(map[string]string{"type": "input_json_delta", "partial_json": c.Arguments})
		}
	}
}

// in opens a block, unless one of its kind is open.
func (a *turnReply) in(kind string, b Block) {
	if a.kind == kind && kind != "tool_use" {
		return
	}
	a.close()
	a.kind = kind
	a.block++
	a.out.Event("content_block_start", map[string]any{"type": "content_block_start", "index": a.block, "content_block": b})
}

func (a *turnReply) delta(d map[string]string) {
	a.out.Event("content_block_delta", map[string]any{"type": "content_block_delta", "index": a.block, "delta": d})
}

func (a *turnReply) close() {
	if a.kind == "" {
		return
	}
	a.kind = ""
	a.out.Event("content_block_stop", map[string]any{"type": "content_block_stop", "index": a.block})
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

func (a *turnReply) End() {
	m := a.message()
	reason, stop := stopReason(a.ended)
	m.Reason, m.Stop = &reason, stop
	u := api.UsageOf(a.served)
	u.Add(&a.ended.Usage, 0, true)
	m.Usage.Output, m.Usage.Account = u.CompletionTokens, &u.Account
	if a.call.Stream {
		a.close()
		a.out.Event("message_delta", map[string]any{
			"type": "message_delta", "delta": map[string]any{"stop_reason": reason, "stop_sequence": stop}, "usage": m.Usage,
		})
		a.out.Event("message_stop", map[string]string{"type": "message_stop"})
		return
	}
	said := &a.ended.Message
	if said.ReasoningContent != "" {
		m.Content = append(m.Content, Block{Type: "thinking", Thinking: &said.ReasoningContent, Signature: new("")})
	}
	if text := said.Text(); text != "" {
		m.Content = append(m.Content, Block{Type: "text", Text: &text})
	}
	for _, c := range said.ToolCalls {
		input := json.RawMessage(c.Arguments)
		if !json.Valid(input) {
			input = json.RawMessage("{}")
		}
		m.Content = append(m.Content, Block{Type: "tool_use", ID: c.ID, Name: c.Name, Input: input})
	}
	wire.JSON(a.w, http.StatusOK, m)
}
