// Package responses reads and answers OpenAI's Responses API, and keeps what was said up to a
// response for the next one that names it.
package responses

import (
	"maps"
	"net/http"
	"slices"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/wire"
)

// Exchange is one request of the API and its response.
type Exchange struct {
	kept  *Kept
	key   string // whose it is
	now   func() time.Time
	asked *asked
}

// New begins an exchange of the key of a name.
func New(kept *Kept, key string, now func() time.Time) *Exchange {
	return &Exchange{kept: kept, key: key, now: now}
}

// Reply returns what answers POST /v1/responses.
func (x *Exchange) Reply(w http.ResponseWriter, out *wire.Stream, c *api.Call, h api.Head) api.Reply {
	h.ID = "resp_" + h.ID
	return &responseReply{Head: h, asked: x.asked, w: w, out: out, call: c, now: x.now, keep: func(m moeflux.Message) {
		x.kept.keep(h.ID, x.key, append(slices.Clone(withoutInstructions(c, x.asked)), m))
	}}
}

// withoutInstructions are the messages that the next response goes on from: its instructions are
// its own.
func withoutInstructions(c *api.Call, a *asked) []moeflux.Message {
	if a.instructions != "" {
		return c.Request.Messages[1:]
	}
	return c.Request.Messages
}

// openItem is what is known of an item that is being written.
type openItem struct {
	kind  string // its type; "": none is open
	text  string
	probs []api.LogProb // of its tokens, if it is a message and they are wanted
	told  int           // of probs
}

// responseReply writes answers of the Responses API, streamed or whole.
type responseReply struct {
	api.Head
	*asked
	w    http.ResponseWriter
	out  *wire.Stream
	call *api.Call
	keep func(moeflux.Message)
	now  func() time.Time

	api.Thoughts
	output []map[string]any // the items so far
	item   openItem         // the last of them, until it is whole
	ended  *moeflux.End
	number int // of the next event
}

// object is the response as it is now.
func (a *responseReply) object(status string) map[string]any {
	o := map[string]any{
		"id": a.ID, "object": "response", "created_at": a.Created, "status": status, "model": a.Model, "error": nil, "incomplete_details": nil,
		"instructions": nil, "max_output_tokens": nil, "metadata": map[string]any{}, "parallel_tool_calls": true, "previous_response_id": nil,
		"reasoning": nil, "store": a.store, "user": nil, "completed_at": nil,
		"temperature": or(a.Served.Defaults.Temperature, 0), "top_p": or(a.Served.Defaults.TopP, 1), "presence_penalty": 0, "frequency_penalty": 0,
		"top_logprobs": 0, "max_tool_calls": nil, "prompt_cache_key": nil, "safety_identifier": nil,
		"tool_choice": "auto", "truncation": "disabled",
		"background": false, "service_tier": "default", "usage": nil, "output": a.items(),
	}
	for name, raw := range a.echo {
		o[name] = raw
	}
	if a.reasoning != nil {
		o["reasoning"] = a.reasoning
	}
	if a.instructions != "" {
		o["instructions"] = a.instructions
	}
	if a.previous != "" {
		o["previous_response_id"] = a.previous
	}
	if a.ended != nil && status != "failed" {
		o["usage"] = a.usage()
	}
	if status == "completed" {
		o["completed_at"] = a.now().Unix()
	}
	if status == "incomplete" {
		o["incomplete_details"] = map[string]string{"reason": "max_output_tokens"}
	}
	return o
}

// or returns what a pointer points to, or what stands for nothing.
func or(v *float64, none float64) float64 {
	if v == nil {
		return none
	}
	return *v
}

func (a *responseReply) items() []map[string]any {
	if a.output == nil {
		return []map[string]any{}
	}
	return a.output
}

func (a *responseReply) usage() any {
	u := api.UsageOf(a.Served)
	u.Add(&a.ended.Usage, a.Count, true)
	return map[string]any{
		"input_tokens": u.PromptTokens, "input_tokens_details": map[string]int{"cached_tokens": u.Prompt.Cached},
		"output_tokens": u.CompletionTokens, "output_tokens_details": map[string]int{"reasoning_tokens": u.Completion.Reasoning},
		"total_tokens": u.TotalTokens, "moeflux": u.Account,
	}
}

// event sends an event of the stream; a reply that comes whole has none.
func (a *responseReply) event(kind string, fields map[string]any) {
	if !a.call.Stream {
		return
	}
	e := map[string]any{"type": kind, "sequence_number": a.number}
	maps.Copy(e, fields)
	a.number++
	a.out.Event(kind, e)
}

func (a *responseReply) Begin() {
	a.event("response.created", map[string]any{"response": a.object("in_progress")})
	a.Keepalive()
}

// Keepalive repeats an event, since one client takes a stream of comments alone for a silent one.
func (a *responseReply) Keepalive() {
	a.event("response.in_progress", map[string]any{"response": a.object("in_progress")})
}

func (a *responseReply) Fail(f *fault.Fault) {
	o := a.object("failed")
	o["error"] = map[string]string{"code": f.Code, "message": f.Message}
	a.event("response.failed", map[string]any{"response": o})
}

func (a *responseReply) Piece(p api.Piece) {
	a.Thoughts.Piece(&p.Event)
	if p.End != nil {
		a.ended = p.End
	}
	if p.Token != nil && a.call.Request.LogProbs && p.Reasoning == "" && p.Call == nil {
		a.item.probs = append(a.item.probs, api.LogProbOf(p.Token))
	}
	if p.Reasoning != "" {
		a.in("reasoning", map[string]any{"type": "reasoning", "id": "rs_" + wire.NewID(), "summary": []any{}, "content": []any{}})
		a.say("response.reasoning_text.delta", p.Reasoning)
	}
	if p.Text != "" {
		a.in("message", map[string]any{"type": "message", "id": "msg_" + wire.NewID(), "role": "assistant", "content": []any{}})
		a.say("response.output_text.delta", p.Text)
	}
	if c := p.Call; c != nil && !c.Void {
		if c.ID != "" {
			a.close()
			a.in("function_call", map[string]any{"type": "function_call", "id": "fc_" + wire.NewID(), "call_id": c.ID, "name": c.Name, "arguments": ""})
		}
		if c.Arguments != "" {
			a.say("response.function_call_arguments.delta", c.Arguments)
		}
	}
}

// at is where an event of the open item belongs.
func (a *responseReply) at(fields map[string]any) map[string]any {
	last := len(a.output) - 1
	fields["output_index"], fields["item_id"] = last, a.output[last]["id"]
	if a.item.kind != "function_call" {
		fields["content_index"] = 0
	}
	return fields
}

// say adds a piece to the open item.
func (a *responseReply) say(kind, text string) {
	a.item.text += text
	fields := a.at(map[string]any{"delta": text})
	if a.item.kind == "message" {
		fields["logprobs"] = append([]api.LogProb{}, a.item.probs[a.item.told:]...)
		a.item.told = len(a.item.probs)
	}
	a.event(kind, fields)
}

// in opens an item, unless one of its type is open.
func (a *responseReply) in(kind string, item map[string]any) {
	if a.item.kind == kind && kind != "function_call" {
		return
	}
	a.close()
	a.item.kind, a.item.text = kind, ""
	item["status"] = "in_progress"
	a.output = append(a.output, item)
	a.event("response.output_item.added", map[string]any{"output_index": len(a.output) - 1, "item": maps.Clone(item)})
	if kind != "function_call" {
		a.event("response.content_part.added", a.at(map[string]any{"part": a.part()}))
	}
}

// part is the content of the open item.
func (a *responseReply) part() map[string]any {
	if a.item.kind == "reasoning" {
		return map[string]any{"type": "reasoning_text", "text": a.item.text}
	}
	return map[string]any{"type": "output_text", "text": a.item.text, "annotations": []any{}, "logprobs": append([]api.LogProb{}, a.item.probs...)}
}

// close ends the open item.
func (a *responseReply) close() {
	if a.item.kind == "" {
		return
	}
	item := a.output[len(a.output)-1]
	item["status"] = "completed"
	switch a.item.kind {
	case "function_call":
		if a.item.text == "" {
			a.item.text = "{}"
		}
		item["arguments"] = a.item.text
		a.event("response.function_call_arguments.done", a.at(map[string]any{"arguments": a.item.text, "name": item["name"]}))
	case "reasoning":
		item["content"] = []any{a.part()}
		a.event("response.reasoning_text.done", a.at(map[string]any{"text": a.item.text}))
		a.event("response.content_part.done", a.at(map[string]any{"part": a.part()}))
	default:
		item["content"] = []any{a.part()}
		a.event("response.output_text.done", a.at(map[string]any{"text": a.item.text, "logprobs": append([]api.LogProb{}, a.item.probs...)}))
		a.event("response.content_part.done", a.at(map[string]any{"part": a.part()}))
	}
	a.event("response.output_item.done", map[string]any{"output_index": len(a.output) - 1, "item": maps.Clone(item)})
	a.item.kind, a.item.probs, a.item.told = "", nil, 0
}

func (a *responseReply) End() {
	status := "completed"
	if a.ended.Reason == moeflux.StopLength || a.ended.Reason == moeflux.StopContext {
		status = "incomplete"
	}
	a.close()
	if a.store {
		a.keep(a.ended.Message)
	}
	if a.call.Stream {
		a.event("response."+status, map[string]any{"response": a.object(status)})
		a.out.Raw("data: [DONE]\n\n")
		return
	}
	wire.JSON(a.w, http.StatusOK, a.object(status))
}
