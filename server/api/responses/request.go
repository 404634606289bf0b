package responses

import (
	"encoding/json"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/body"
	"github.com/moeflux/moeflux-actor/server/fault"
)

// asked is what a Responses call says beyond the call: what the reply repeats, and what is kept.
type asked struct {
	instructions string
	store        bool
	previous     string
	reasoning    *reasoning
	echo         map[string]json.RawMessage // fields that the reply repeats
}

// Read reads the body of POST /v1/responses.
func (x *Exchange) Read(o *body.Object) (*api.Call, *fault.Fault) {
	c, a := &api.Call{Chat: true, Choices: 1}, &asked{store: true, echo: make(map[string]json.RawMessage)}
	r := &c.Request
	c.Model, _ = o.Text("model")
	a.instructions, _ = o.Text("instructions")
	if store, given := o.Boolean("store"); given {
		a.store = store
	}
	if a.instructions != "" {
		r.Messages = append(r.Messages, moeflux.Message{Role: moeflux.System, Content: a.instructions})
	}
	if a.previous, _ = o.Text("previous_response_id"); a.previous != "" {
		before, ok := x.kept.find(a.previous, x.key)
		if !ok {
			o.Fail("previous_response_id", "there is no response %q any more: send the whole conversation", a.previous)
		}
		r.Messages = append(r.Messages, before...)
	}
	readInput(o, r)
	readFunctionTools(o, c)
	api.ReadToolChoice(o, c)
	api.ReadSampling(o, r)
	r.MaxTokens = api.ReadMaxTokens(o, "max_output_tokens")
	c.Stream, _ = o.Boolean("stream")
	if f := o.Object("stream_options"); f != nil {
		f.Only("include_obfuscation", "nothing is obfuscated", false)
	}
	if many, given := o.Boolean("parallel_tool_calls"); given && !many {
		c.OneCall = true
	}
	api.ReadTemplateArgs(o, r)
	a.reasoning = readReasoning(o, r)
	readTextFormat(o, c)
	api.SettleFormat(o, c)
	readInclude(o, r)
	refuseResponse(o)
	for _, name := range []string{"temperature", "top_p", "max_output_tokens", "metadata", "parallel_tool_calls", "tool_choice", "user", "presence_penalty", "frequency_penalty", "prompt_cache_key", "safety_identifier", "top_logprobs"} {
		if o.Has(name) {
			a.echo[name] = o.Fields[name]
		}
	}
	a.echo["tools"], a.echo["text"] = repeatedTools(o), repeatedText(o)
	x.asked = a
	return c, o.Fault()
}

// refuseResponse names the documented parameters that are not done.
func refuseResponse(o *body.Object) {
	o.Refuse("the server has no stored prompts", "prompt")
	o.Refuse("responses and conversations are two ways to keep a text; use previous_response_id", "conversation")
	o.Refuse("the server judges no text", "moderation")
	o.Refuse("nothing is cut out of a conversation", "context_management")
	o.Refuse("the server has no programs", "access_programs")
	o.Only("background", "answers come to who asks", false)
	o.Only("truncation", "nothing is cut out of a conversation", "disabled")
	o.Only("service_tier", "there is one tier", "auto", "default")
	o.Refuse("the server runs no tools of its own", "max_tool_calls")
}

// readInclude reads what a response has beside the usual. Of tools that the server does not have
// there is nothing to include.
func readInclude(o *body.Object, r *moeflux.Request) {
	if n := o.Integer("top_logprobs", 0, api.MaxTopLogProbs); n != nil {
		r.LogProbs, r.TopLogProbs = *n > 0, *n
	}
	for i, raw := range o.List("include", api.MaxTools) {
		var what string
		if json.Unmarshal(raw, &what) != nil {
			o.Fail("include", "include[%d] must be a string", i)
			return
		}
		switch what {
		case "message.output_text.logprobs":
			r.LogProbs = true
		case "reasoning.encrypted_content", "web_search_call.results", "web_search_call.action.sources", "file_search_call.results",
			"message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs":
		default:
			o.Fail("include", "include[%d]: there is no %q", i, what)
			return
		}
	}
}

// readInput reads a text or a list of items.
func readInput(o *body.Object, r *moeflux.Request) {
	if !o.Has("input") {
		o.Fail("input", "input is missing")
		return
	}
	var text string
	if json.Unmarshal(o.Fields["input"], &text) == nil {
		r.Messages = append(r.Messages, moeflux.Message{Role: moeflux.User, Content: text})
		return
	}
	thought := "" // of the assistant, before the message or the call that it belongs to
	for i, raw := range o.List("input", api.MaxMessages) {
		item := o.Element("input", i, raw)
		if item == nil {
			return
		}
		kind, given := item.Text("type")
		if !given {
			kind = "message"
		}
		switch kind {
		case "message":
			addMessage(r, item, &thought)
		case "reasoning":
			thought += itemText(item, "content")
		case "function_call":
			id, _ := item.Text("call_id")
			name, _ := item.Text("name")
			arguments, _ := item.Text("arguments")
			if id == "" || name == "" {
				item.Fail("call_id", "%s: a function_call needs a call_id and a name", strings.TrimSuffix(item.Path, "."))
			}
			addCall(r, moeflux.ToolCall{ID: id, Name: name, Arguments: arguments}, &thought)
		case "function_call_output":
			id, _ := item.Text("call_id")
			if id == "" {
				item.Fail("call_id", "%scall_id is missing", item.Path)
			}
			r.Messages = append(r.Messages, moeflux.Message{Role: moeflux.ToolResult, ToolCallID: id, Content: itemText(item, "output")})
		default:
			item.Note(fault.Unsupported(item.Path+"type", "%stype: items of type %q are not supported", item.Path, kind))
		}
	}
	if o.Fault() == nil && len(r.Messages) == 0 {
		o.Fail("input", "input is empty")
	}
}

func addMessage(r *moeflux.Request, item *body.Object, thought *string) {
	role := item.Word("role", moeflux.User, moeflux.Assistant, moeflux.System, "developer")
	if role == "" {
		item.Fail("role", "%srole is missing", item.Path)
		return
	}
	m := moeflux.Message{Role: role, Content: itemText(item, "content")}
	if role == moeflux.Assistant {
		m.ReasoningContent, *thought = *thought, ""
	}
	r.Messages = append(r.Messages, m)
}

// addCall adds a call to the assistant's message before it, or to one of its own.
func addCall(r *moeflux.Request, c moeflux.ToolCall, thought *string) {
	n := len(r.Messages)
	if n == 0 || r.Messages[n-1].Role != moeflux.Assistant || *thought != "" {
		r.Messages = append(r.Messages, moeflux.Message{Role: moeflux.Assistant, ReasoningContent: *thought})
		*thought = ""
		n++
	}
	last := &r.Messages[n-1]
	last.ToolCalls = append(last.ToolCalls, c)
}

// itemText reads a text, or a list of parts that are texts.
func itemText(item *body.Object, name string) string {
	var text string
	if !item.Has(name) || json.Unmarshal(item.Fields[name], &text) == nil {
		return text
	}
	var texts []string
	for i, raw := range item.List(name, api.MaxMessages) {
		part := item.Element(name, i, raw)
		if part == nil {
			return ""
		}
		switch kind, _ := part.Text("type"); kind {
		case "input_text", "output_text", "text", "reasoning_text", "summary_text":
			t, _ := part.Text("text")
			texts = append(texts, t)
		case "refusal":
			t, _ := part.Text("refusal")
			texts = append(texts, t)
		default:
			part.Note(fault.Unsupported(part.Path+"type", "%stype: parts of type %q are not supported", part.Path, kind))
		}
	}
	return strings.Join(texts, "\n")
}

// readFunctionTools reads functions in the form of Responses, which has no object around them.
func readFunctionTools(o *body.Object, c *api.Call) {
	api.ReadNamedTools(o, c, "parameters", func(t *body.Object) bool {
		kind, _ := t.Text("type")
		return kind == "function"
	})
}

// reasoning is how much the model is to think, as a reply repeats it.
type reasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

func readReasoning(o *body.Object, r *moeflux.Request) *reasoning {
	f := o.Object("reasoning")
	if f == nil {
		return nil
	}
	out := new(reasoning)
	if effort := api.ReadEffort(f, "effort", r); effort != "" {
		out.Effort = &effort
	}
	if summary := f.Word("summary", "auto", "concise", "detailed", "none"); summary != "" {
		out.Summary = &summary
	}
	return out
}

// readTextFormat reads what form the text has.
func readTextFormat(o *body.Object, c *api.Call) {
	t := o.Object("text")
	if t == nil {
		return
	}
	t.Only("verbosity", "models have no such setting", "medium")
	f := t.Object("format")
	if f == nil {
		return
	}
	if f.Has("schema") { // here it is not within an object of its own
		f.Fields["json_schema"] = json.RawMessage(`{"schema":` + string(f.Fields["schema"]) + `}`)
	}
	if within := api.ReadFormat(f); within != nil {
		api.Bind(f, c, within)
	}
}
