package server

import (
	"encoding/json"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
)

// asked is what a Responses call says beyond the call: what the reply repeats, and what is kept.
type asked struct {
	instructions string
	store        bool
	previous     string
	reasoning    *reasoning
	echo         map[string]json.RawMessage // fields that the reply repeats
}

// read reads the body of POST /v1/responses.
func (x *exchange) read(o *object) (*call, *fault) {
	c, a := &call{chat: true, choices: 1}, &asked{store: true, echo: make(map[string]json.RawMessage)}
	r := &c.request
	c.model, _ = o.text("model")
	a.instructions, _ = o.text("instructions")
	if store, given := o.boolean("store"); given {
		a.store = store
	}
	if a.instructions != "" {
		r.Messages = append(r.Messages, moeflux.Message{Role: moeflux.System, Content: a.instructions})
	}
	if a.previous, _ = o.text("previous_response_id"); a.previous != "" {
		before, ok := x.kept.find(a.previous, x.key)
		if !ok {
			o.fail("previous_response_id", "there is no response %q any more: send the whole conversation", a.previous)
		}
		r.Messages = append(r.Messages, before...)
	}
	readInput(o, r)
	readFunctionTools(o, c)
	readToolChoice(o, c)
	readSampling(o, r)
	r.MaxTokens = readMaxTokens(o, "max_output_tokens")
	c.stream, _ = o.boolean("stream")
	if f := o.object("stream_options"); f != nil {
		f.only("include_obfuscation", "nothing is obfuscated", false)
	}
	if many, given := o.boolean("parallel_tool_calls"); given && !many {
		c.oneCall = true
	}
	readTemplateArgs(o, r)
	a.reasoning = readReasoning(o, r)
	readTextFormat(o, c)
	settleFormat(o, c)
	readInclude(o, r)
	refuseResponse(o)
	for _, name := range []string{"temperature", "top_p", "max_output_tokens", "metadata", "parallel_tool_calls", "tool_choice", "user", "presence_penalty", "frequency_penalty", "prompt_cache_key", "safety_identifier", "top_logprobs"} {
		if o.has(name) {
			a.echo[name] = o.fields[name]
		}
	}
	a.echo["tools"], a.echo["text"] = repeatedTools(o), repeatedText(o)
	x.asked = a
	return c, o.fault()
}

// refuseResponse names the documented parameters that are not done.
func refuseResponse(o *object) {
	o.refuse("the server has no stored prompts", "prompt")
	o.refuse("responses and conversations are two ways to keep a text; use previous_response_id", "conversation")
	o.refuse("the server judges no text", "moderation")
	o.refuse("nothing is cut out of a conversation", "context_management")
	o.refuse("the server has no programs", "access_programs")
	o.only("background", "answers come to who asks", false)
	o.only("truncation", "nothing is cut out of a conversation", "disabled")
	o.only("service_tier", "there is one tier", "auto", "default")
	o.refuse("the server runs no tools of its own", "max_tool_calls")
}

// readInclude reads what a response has beside the usual. Of tools that the server does not have
// there is nothing to include.
func readInclude(o *object, r *moeflux.Request) {
	if n := o.integer("top_logprobs", 0, maxTopLogProbs); n != nil {
		r.LogProbs, r.TopLogProbs = *n > 0, *n
	}
	for i, raw := range o.list("include", maxTools) {
		var what string
		if json.Unmarshal(raw, &what) != nil {
			o.fail("include", "include[%d] must be a string", i)
			return
		}
		switch what {
		case "message.output_text.logprobs":
			r.LogProbs = true
		case "reasoning.encrypted_content", "web_search_call.results", "web_search_call.action.sources", "file_search_call.results",
			"message.input_image.image_url", "computer_call_output.output.image_url", "code_interpreter_call.outputs":
		default:
			o.fail("include", "include[%d]: there is no %q", i, what)
			return
		}
	}
}

// readInput reads a text or a list of items.
func readInput(o *object, r *moeflux.Request) {
	if !o.has("input") {
		o.fail("input", "input is missing")
		return
	}
	var text string
	if json.Unmarshal(o.fields["input"], &text) == nil {
		r.Messages = append(r.Messages, moeflux.Message{Role: moeflux.User, Content: text})
		return
	}
	thought := "" // of the assistant, before the message or the call that it belongs to
	for i, raw := range o.list("input", maxMessages) {
		item := o.element("input", i, raw)
		if item == nil {
			return
		}
		kind, given := item.text("type")
		if !given {
			kind = "message"
		}
		switch kind {
		case "message":
			addMessage(r, item, &thought)
		case "reasoning":
			thought += itemText(item, "content")
		case "function_call":
			id, _ := item.text("call_id")
			name, _ := item.text("name")
			arguments, _ := item.text("arguments")
			if id == "" || name == "" {
				item.fail("call_id", "%s: a function_call needs a call_id and a name", strings.TrimSuffix(item.path, "."))
			}
			addCall(r, moeflux.ToolCall{ID: id, Name: name, Arguments: arguments}, &thought)
		case "function_call_output":
			id, _ := item.text("call_id")
			if id == "" {
				item.fail("call_id", "%scall_id is missing", item.path)
			}
			r.Messages = append(r.Messages, moeflux.Message{Role: moeflux.ToolResult, ToolCallID: id, Content: itemText(item, "output")})
		default:
			item.note(unsupported(item.path+"type", "%stype: items of type %q are not supported", item.path, kind))
		}
	}
	if o.fault() == nil && len(r.Messages) == 0 {
		o.fail("input", "input is empty")
	}
}

func addMessage(r *moeflux.Request, item *object, thought *string) {
	role := item.word("role", moeflux.User, moeflux.Assistant, moeflux.System, "developer")
	if role == "" {
		item.fail("role", "%srole is missing", item.path)
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
func itemText(item *object, name string) string {
	var text string
	if !item.has(name) || json.Unmarshal(item.fields[name], &text) == nil {
		return text
	}
	var texts []string
	for i, raw := range item.list(name, maxMessages) {
		part := item.element(name, i, raw)
		if part == nil {
			return ""
		}
		switch kind, _ := part.text("type"); kind {
		case "input_text", "output_text", "text", "reasoning_text", "summary_text":
			t, _ := part.text("text")
			texts = append(texts, t)
		case "refusal":
			t, _ := part.text("refusal")
			texts = append(texts, t)
		default:
			part.note(unsupported(part.path+"type", "%stype: parts of type %q are not supported", part.path, kind))
		}
	}
	return strings.Join(texts, "\n")
}

// readFunctionTools reads functions in the form of Responses, which has no object around them.
func readFunctionTools(o *object, c *call) {
	readNamedTools(o, c, "parameters", func(t *object) bool {
		kind, _ := t.text("type")
		return kind == "function"
	})
}

// reasoning is how much the model is to think, as a reply repeats it.
type reasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

func readReasoning(o *object, r *moeflux.Request) *reasoning {
	f := o.object("reasoning")
	if f == nil {
		return nil
	}
	out := new(reasoning)
	if effort := readEffort(f, "effort", r); effort != "" {
		out.Effort = &effort
	}
	if summary := f.word("summary", "auto", "concise", "detailed", "none"); summary != "" {
		out.Summary = &summary
	}
	return out
}

// readTextFormat reads what form the text has.
func readTextFormat(o *object, c *call) {
	t := o.object("text")
	if t == nil {
		return
	}
	t.only("verbosity", "models have no such setting", "medium")
	f := t.object("format")
	if f == nil {
		return
	}
	if f.has("schema") { // here it is not within an object of its own
		f.fields["json_schema"] = json.RawMessage(`{"schema":` + string(f.fields["schema"]) + `}`)
	}
	if within := readFormat(f); within != nil {
		bound(f, c, within)
	}
}
