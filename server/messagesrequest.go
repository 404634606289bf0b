package server

import (
	"bytes"
	"encoding/json"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
)

// readMessagesCall reads the body of POST /v1/messages: Anthropic's form of a conversation.
func readMessagesCall(o *object) (*call, *fault) { return readTurns(o, true) }

// readTurns reads a conversation; to count its tokens max_tokens is not needed.
func readTurns(o *object, answered bool) (*call, *fault) {
	c := &call{chat: true, choices: 1}
	c.model, _ = o.text("model")
	c.cached = marksCache(o)
	r := &c.request
	readSystem(o, r)
	readBlocks(o, r)
	readAnthropicTools(o, c)
	readThinking(o, r)
	readOutput(o, c)
	settleFormat(o, c)
	if answered && !o.has("max_tokens") {
		o.fail("max_tokens", "max_tokens is missing")
	}
	r.MaxTokens = readMaxTokens(o, "max_tokens")
	r.Sampling.Temperature = o.number("temperature", 0, 1)
	r.Sampling.TopP = o.number("top_p", 0, 1)
	r.Sampling.TopK = o.integer("top_k", 0, 1<<31-1)
	r.Stop = readStop(o, "stop_sequences")
	c.stream, _ = o.boolean("stream")
	o.only("service_tier", "there is one tier", "auto", "standard_only")
	o.only("speed", "there is one speed", "standard")
	o.refuse("the server runs no programs of its own", "container", "mcp_servers")
	o.refuse("the server is where it is", "inference_geo")
	o.refuse("usage tells what was known", "diagnostics")
	return c, o.fault()
}

// marksCache reports whether a request has a block with cache_control, or asks for it in general.
func marksCache(o *object) bool {
	for _, name := range []string{"system", "messages", "tools"} {
		if bytes.Contains(o.fields[name], []byte(`"cache_control"`)) { // in a text it has other quotes
			return true
		}
	}
	return o.has("cache_control")
}

// readOutput reads what form the answer has, and how much the model is to think.
func readOutput(o *object, c *call) {
	config := o.object("output_config")
	if config == nil {
		return
	}
	if effort := config.word("effort", "low", "medium", "high", "xhigh", "max"); effort != "" {
		setTemplateArg(&c.request, "reasoning_effort", effort)
	}
	f := config.object("format")
	if f == nil {
		return
	}
	if f.word("type", "json_schema") == "" || !f.has("schema") {
		f.fail("schema", "%s must have the type json_schema and a schema", strings.TrimSuffix(f.path, "."))
		return
	}
	bound(f, c, moeflux.JSONSchema(f.fields["schema"]))
}

// billing begins a block that one client puts before everything else, with another value in each
// request: with it no beginning of a conversation would ever be known.
const billing = "x-anthropic-billing-header:"

// readSystem reads what stands before the conversation.
func readSystem(o *object, r *moeflux.Request) {
	if !o.has("system") {
		return
	}
	texts := o.texts("system", func(i int, text string) bool { return i > 0 || !strings.HasPrefix(text, billing) })
	if text := strings.Join(texts, "\n"); text != "" {
		r.Messages = append(r.Messages, moeflux.Message{Role: moeflux.System, Content: text})
	}
}

// readBlocks reads the turns.
func readBlocks(o *object, r *moeflux.Request) {
	list := o.list("messages", maxMessages)
	if len(list) == 0 {
		o.fail("messages", "messages is missing or empty")
		return
	}
	for i, raw := range list {
		m := o.element("messages", i, raw)
		if m == nil {
			return
		}
		role := m.word("role", moeflux.User, moeflux.Assistant, moeflux.System)
		if role == "" {
			m.fail("role", "%srole is missing", m.path)
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
func turn(m *object, role string) []moeflux.Message {
	var text string
	if m.has("content") && json.Unmarshal(m.fields["content"], &text) == nil {
		return []moeflux.Message{{Role: role, Content: text}}
	}
	if !m.has("content") {
		m.fail("content", "%scontent is missing", m.path)
		return nil
	}
	said := moeflux.Message{Role: role}
	var results []moeflux.Message
	var texts []string
	for i, raw := range m.list("content", maxMessages) {
		b := m.element("content", i, raw)
		if b == nil {
			return nil
		}
		switch kind, _ := b.text("type"); kind {
		case "text":
			t, _ := b.text("text")
			texts = append(texts, t)
		case "thinking":
			t, _ := b.text("thinking")
			said.ReasoningContent += t
		case "redacted_thinking": // nobody can read it
		case "tool_use":
			said.ToolCalls = append(said.ToolCalls, toolUse(b))
		case "tool_result":
			results = append(results, toolResult(b))
		default:
			b.note(unsupported(b.path+"type", "%stype: blocks of type %q are not supported", b.path, kind))
			return nil
		}
	}
	said.Content = strings.Join(texts, "\n")
	if said.Content == "" && said.ToolCalls == nil && said.ReasoningContent == "" {
		return results
	}
	return append(results, said)
}

func toolUse(b *object) moeflux.ToolCall {
	id, _ := b.text("id")
	name, _ := b.text("name")
	if id == "" || name == "" {
		b.fail("name", "%s: a tool_use needs an id and a name", strings.TrimSuffix(b.path, "."))
	}
	arguments := "{}"
	if b.has("input") {
		arguments = string(b.fields["input"])
	}
	return moeflux.ToolCall{ID: id, Name: name, Arguments: arguments}
}

func toolResult(b *object) moeflux.Message {
	id, _ := b.text("tool_use_id")
	if id == "" {
		b.fail("tool_use_id", "%stool_use_id is missing", b.path)
	}
	var text string
	if b.has("content") {
		text = strings.Join(b.texts("content", nil), "\n")
	}
	if failed, _ := b.boolean("is_error"); failed && text == "" {
		text = "error"
	}
	return moeflux.Message{Role: moeflux.ToolResult, ToolCallID: id, Content: text}
}

// readAnthropicTools reads tools and which of them must be called. Tools of the service itself,
// which have a type, are left out.
func readAnthropicTools(o *object, c *call) {
	readNamedTools(o, c, "input_schema", func(t *object) bool {
		kind, given := t.text("type")
		return !given || kind == "custom"
	})
	choice := o.object("tool_choice")
	if choice == nil {
		return
	}
	c.oneCall, _ = choice.boolean("disable_parallel_tool_use")
	switch choice.word("type", "auto", "any", "tool", "none") {
	case "any":
		c.request.ToolChoice.Required = true
	case "none":
		c.request.ToolChoice.None = len(c.request.Tools) > 0
	case "tool":
		if c.request.ToolChoice.Name, _ = choice.text("name"); c.request.ToolChoice.Name == "" {
			choice.fail("name", "%sname is missing", choice.path)
		}
	}
	if (c.request.ToolChoice.Required || c.request.ToolChoice.Name != "") && len(c.request.Tools) == 0 {
		o.fail("tool_choice", "tool_choice: there are no tools to choose from")
	}
}

// readThinking reads whether the model is to think. How long it may is up to the chat template.
func readThinking(o *object, r *moeflux.Request) {
	t := o.object("thinking")
	if t == nil {
		return
	}
	switch t.word("type", "enabled", "adaptive", "disabled") {
	case "disabled":
		setTemplateArg(r, "enable_thinking", false)
	case "enabled", "adaptive":
		setTemplateArg(r, "enable_thinking", true)
	}
	if n := t.integer("budget_tokens", 1, maxTokensBound); n != nil {
		setTemplateArg(r, "thinking_budget", *n)
	}
}
