package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/body"
	"github.com/moeflux/moeflux-actor/server/fault"
)

// Read reads the body of POST /v1/messages: Anthropic's form of a conversation.
func Read(o *body.Object) (*api.Call, *fault.Fault) { return ReadTurns(o, true) }

// ReadTurns reads a conversation; to count its tokens max_tokens is not needed.
func ReadTurns(o *body.Object, answered bool) (*api.Call, *fault.Fault) {
	c := &api.Call{Chat: true, Choices: 1}
	c.Model, _ = o.Text("model")
	c.Cached = marksCache(o)
	r := &c.Request
	readSystem(o, r)
	readBlocks(o, r)
	readAnthropicTools(o, c)
	readThinking(o, r)
	readOutput(o, c)
	api.SettleFormat(o, c)
	if answered && !o.Has("max_tokens") {
		o.Fail("max_tokens", "max_tokens is missing")
	}
	r.MaxTokens = api.ReadMaxTokens(o, "max_tokens")
	r.Sampling.Temperature = o.Number("temperature", 0, 1)
	r.Sampling.TopP = o.Number("top_p", 0, 1)
	r.Sampling.TopK = o.Integer("top_k", 0, 1<<31-1)
	r.Stop = api.ReadStop(o, "stop_sequences")
	c.Stream, _ = o.Boolean("stream")
	o.Only("service_tier", "there is one tier", "auto", "standard_only")
	o.Only("speed", "there is one speed", "standard")
	o.Refuse("the server runs no programs of its own", "container", "mcp_servers")
	o.Refuse("the server is where it is", "inference_geo")
	o.Refuse("usage tells what was known", "diagnostics")
	return c, o.Fault()
}

// marksCache reports whether a request has a block with cache_control, or asks for it in general.
func marksCache(o *body.Object) bool {
	for _, name := range []string{"system", "messages", "tools"} {
		if bytes.Contains(o.Fields[name], []byte(`"cache_control"`)) { // in a text it has other quotes
			return true
		}
	}
	return o.Has("cache_control")
}

// readOutput reads what form the answer has, and how much the model is to think.
func readOutput(o *body.Object, c *api.Call) {
	config := o.Object("output_config")
	if config == nil {
		return
	}
	if effort := config.Word("effort", "low", "medium", "high", "xhigh", "max"); effort != "" {
		api.SetTemplateArg(&c.Request, "reasoning_effort", effort)
	}
	f := config.Object("format")
	if f == nil {
		return
	}
	if f.Word("type", "json_schema") == "" || !f.Has("schema") {
		f.Fail("schema", "%s must have the type json_schema and a schema", strings.TrimSuffix(f.Path, "."))
		return
	}
	api.Bind(f, c, moeflux.JSONSchema(f.Fields["schema"]))
}

// billing begins a block that one client puts before everything else, with another value in each
// request: with it no beginning of a conversation would ever be known.
const billing = "x-anthropic-billing-header:"

// readSystem reads what stands before the conversation.
func readSystem(o *body.Object, r *moeflux.Request) {
	if !o.Has("system") {
		return
	}
	texts := o.Texts("system", func(i int, text string) bool { return i > 0 || !strings.HasPrefix(text, billing) })
	if text := strings.Join(texts, "\n"); text != "" {
		r.Messages = append(r.Messages, moeflux.Message{Role: moeflux.System, Content: text})
	}
}

// readBlocks reads the turns.
func readBlocks(o *body.Object, r *moeflux.Request) {
	list := o.List("messages", api.MaxMessages)
	if len(list) == 0 {
		o.Fail("messages", "messages is missing or empty")
		return
	}
	for i, raw := range list {
		m := o.Element("messages", i, raw)
		if m == nil {
			return
		}
		role := m.Word("role", moeflux.User, moeflux.Assistant, moeflux.System)
		if role == "" {
			m.Fail("role", "%srole is missing", m.Path)
			return
		}
		r.Messages = append(r.Messages, turn(m, role)...)
	}
	// An answer that is begun is continued.
	if last := r.Messages[max(0, len(r.Messages)-1):]; len(last) == 1 && last[0].Role == moeflux.Assistant && last[0].Content != "" && len(last[0].ToolCalls) == 0 {
		r.Continue = true
	}
}

// turn returns the messages of a turn: results of tools are messages of their own, before the rest.
func turn(m *body.Object, role string) []moeflux.Message {
	var text string
	if m.Has("content") && json.Unmarshal(m.Fields["content"], &text) == nil {
		return []moeflux.Message{{Role: role, Content: text}}
	}
	if !m.Has("content") {
		m.Fail("content", "%scontent is missing", m.Path)
		return nil
	}
	said := moeflux.Message{Role: role}
	var results []moeflux.Message
	var texts []string
	for i, raw := range m.List("content", api.MaxMessages) {
		b := m.Element("content", i, raw)
		if b == nil {
			return nil
		}
		switch kind, _ := b.Text("type"); kind {
		case "text":
			t, _ := b.Text("text")
			texts = append(texts, t)
		case "thinking":
			t, _ := b.Text("thinking")
			said.ReasoningContent += t
		case "redacted_thinking": // nobody can read it
		case "tool_use":
			said.ToolCalls = append(said.ToolCalls, toolUse(b))
		case "tool_result":
			results = append(results, toolResult(b))
		default:
			b.Note(fault.Unsupported(b.Path+"type", "%stype: blocks of type %q are not supported", b.Path, kind))
			return nil
		}
	}
	said.Content = strings.Join(texts, "\n")
	if said.Content == "" && said.ToolCalls == nil && said.ReasoningContent == "" {
		return results
	}
	return append(results, said)
}

func toolUse(b *body.Object) moeflux.ToolCall {
	id, _ := b.Text("id")
	name, _ := b.Text("name")
	if id == "" || name == "" {
		b.Fail("name", "%s: a tool_use needs an id and a name", strings.TrimSuffix(b.Path, "."))
	}
	arguments := "{}"
	if b.Has("input") {
		arguments = string(b.Fields["input"])
	}
	return moeflux.ToolCall{ID: id, Name: name, Arguments: arguments}
}

func toolResult(b *body.Object) moeflux.Message {
	id, _ := b.Text("tool_use_id")
	if id == "" {
		b.Fail("tool_use_id", "%stool_use_id is missing", b.Path)
	}
	var text string
	if b.Has("content") {
		text = strings.Join(b.Texts("content", nil), "\n")
	}
	if failed, _ := b.Boolean("is_error"); failed && text == "" {
		text = "error"
	}
	return moeflux.Message{Role: moeflux.ToolResult, ToolCallID: id, Content: text}
}

// readAnthropicTools reads tools and which of them must be called. Tools of the service itself,
// which have a type, are left out.
func readAnthropicTools(o *body.Object, c *api.Call) {
	api.ReadNamedTools(o, c, "input_schema", func(t *body.Object) bool {
		kind, given := t.Text("type")
		return !given || kind == "custom"
	})
	choice := o.Object("tool_choice")
	if choice == nil {
		return
	}
	c.OneCall, _ = choice.Boolean("disable_parallel_tool_use")
	switch choice.Word("type", "auto", "any", "tool", "none") {
	case "any":
		c.Request.ToolChoice.Required = true
	case "none":
		c.Request.ToolChoice.None = len(c.Request.Tools) > 0
	case "tool":
		if c.Request.ToolChoice.Name, _ = choice.Text("name"); c.Request.ToolChoice.Name == "" {
			choice.Fail("name", "%sname is missing", choice.Path)
		}
	}
	if (c.Request.ToolChoice.Required || c.Request.ToolChoice.Name != "") && len(c.Request.Tools) == 0 {
		o.Fail("tool_choice", "tool_choice: there are no tools to choose from")
	}
}

// readThinking reads whether the model is to think. How long it may is up to the chat template.
func readThinking(o *body.Object, r *moeflux.Request) {
	t := o.Object("thinking")
	if t == nil {
		return
	}
	switch t.Word("type", "enabled", "adaptive", "disabled") {
	case "disabled":
		api.SetTemplateArg(r, "enable_thinking", false)
	case "enabled", "adaptive":
		api.SetTemplateArg(r, "enable_thinking", true)
	}
	if n := t.Integer("budget_tokens", 1, api.MaxTokensBound); n != nil {
		api.SetTemplateArg(r, "thinking_budget", *n)
	}
}
