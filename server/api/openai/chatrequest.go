package openai

import (
	"encoding/json"
	"fmt"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/body"
	"github.com/moeflux/moeflux-actor/server/fault"
)

// ReadChat reads the body of POST /v1/chat/completions.
func ReadChat(o *body.Object) (*api.Call, *fault.Fault) {
	c := &api.Call{Chat: true}
	c.Model, _ = o.Text("model")
	readMessages(o, c)
	api.ReadTools(o, c)
	api.ReadSampling(o, &c.Request)
	api.ReadStream(o, c)
	api.ReadChoices(o, c)
	api.ReadConstraint(o, &c.Request)
	api.ReadTemplateArgs(o, &c.Request)
	api.SettleFormat(o, c)
	c.Request.MaxTokens = api.ReadMaxTokens(o, "max_tokens", "max_completion_tokens")
	if want, _ := o.Boolean("logprobs"); want {
		c.Request.LogProbs = true
	}
	if n := o.Integer("top_logprobs", 0, api.MaxTopLogProbs); n != nil {
		if !c.Request.LogProbs {
			o.Fail("top_logprobs", "top_logprobs is only allowed with logprobs")
		}
		c.Request.TopLogProbs = *n
	}
	api.ReadEffort(o, "reasoning_effort", &c.Request)
	refuseChat(o)
	return c, o.Fault()
}

// refuseChat names the documented parameters that are not done. Those that only name the client, or
// ask what is the case anyway, are accepted.
func refuseChat(o *body.Object) {
	o.Refuse("use tools and tool_choice", "functions", "function_call")
	o.Refuse("the server makes text alone", "audio")
	o.Refuse("the server has no predicted outputs", "prediction")
	o.Refuse("the server does not search", "web_search_options")
	o.Refuse("the server judges no text", "moderation")
	o.Only("store", "the server keeps no conversations", false)
	o.Only("service_tier", "there is one tier", "auto", "default")
	o.Only("verbosity", "models have no such setting", "medium")
	if o.Has("modalities") {
		var kinds []string
		if o.Value("modalities", "a list of strings", &kinds) && (len(kinds) != 1 || kinds[0] != "text") {
			o.Note(fault.Unsupported("modalities", `modalities: only ["text"] is supported`))
		}
	}
}

// readMessages reads a conversation.
func readMessages(o *body.Object, c *api.Call) {
	if !o.Has("messages") {
		o.Fail("messages", "messages is missing")
		return
	}
	list := o.List("messages", api.MaxMessages)
	if o.Fault() == nil && len(list) == 0 {
		o.Fail("messages", "messages is empty")
		return
	}
	for i, raw := range list {
		var m moeflux.Message
		if err := json.Unmarshal(raw, &m); err != nil {
			o.Fail(fmt.Sprintf("messages[%d]", i), "messages[%d]: %v", i, err)
			return
		}
		if err := m.Validate(); err != nil {
			o.Fail(fmt.Sprintf("messages[%d]", i), "messages[%d]: %v", i, err)
			return
		}
		c.Request.Messages = append(c.Request.Messages, m)
	}
}
