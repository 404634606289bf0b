package server

import (
	"encoding/json"
	"fmt"

	moeflux "github.com/moeflux/moeflux-actor"
)

// readChat reads the body of POST /v1/chat/completions.
func readChat(o *object) (*call, *fault) {
	c := &call{chat: true}
	c.model, _ = o.text("model")
	readMessages(o, c)
	readTools(o, c)
	readSampling(o, &c.request)
	readStream(o, c)
	readChoices(o, c)
	readConstraint(o, &c.request)
	readTemplateArgs(o, &c.request)
	settleFormat(o, c)
	c.request.MaxTokens = readMaxTokens(o, "max_tokens", "max_completion_tokens")
	if want, _ := o.boolean("logprobs"); want {
		c.request.LogProbs = true
	}
	if n := o.integer("top_logprobs", 0, maxTopLogProbs); n != nil {
		if !c.request.LogProbs {
			o.fail("top_logprobs", "top_logprobs is only allowed with logprobs")
		}
		c.request.TopLogProbs = *n
	}
	readEffort(o, "reasoning_effort", &c.request)
	refuseChat(o)
	return c, o.fault()
}

// refuseChat names the documented parameters that are not done. Those that only name the client, or
// ask what is the case anyway, are accepted.
func refuseChat(o *object) {
	o.refuse("use tools and tool_choice", "functions", "function_call")
	o.refuse("the server makes text alone", "audio")
	o.refuse("the server has no predicted outputs", "prediction")
	o.refuse("the server does not search", "web_search_options")
	o.refuse("the server judges no text", "moderation")
	o.only("store", "the server keeps no conversations", false)
	o.only("service_tier", "there is one tier", "auto", "default")
	o.only("verbosity", "models have no such setting", "medium")
	if o.has("modalities") {
		var kinds []string
		if o.value("modalities", "a list of strings", &kinds) && (len(kinds) != 1 || kinds[0] != "text") {
			o.note(unsupported("modalities", `modalities: only ["text"] is supported`))
		}
	}
}

// readMessages reads a conversation.
func readMessages(o *object, c *call) {
	if !o.has("messages") {
		o.fail("messages", "messages is missing")
		return
	}
	list := o.list("messages", maxMessages)
	if o.fault() == nil && len(list) == 0 {
		o.fail("messages", "messages is empty")
		return
	}
	for i, raw := range list {
		var m moeflux.Message
		if err := json.Unmarshal(raw, &m); err != nil {
			o.fail(fmt.Sprintf("messages[%d]", i), "messages[%d]: %v", i, err)
			return
		}
		if err := m.Validate(); err != nil {
			o.fail(fmt.Sprintf("messages[%d]", i), "messages[%d]: %v", i, err)
			return
		}
		c.request.Messages = append(c.request.Messages, m)
	}
}
