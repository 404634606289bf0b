package server

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/api/anthropic"
	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/models"
)

// thinker thinks, speaks and calls two tools.
func thinker(why moeflux.StopReason) *scripted.Model {
	return &scripted.Model{Say: func(_ ctxt, r moeflux.Request) moeflux.Events {
		return func(yield func(moeflux.Event, error) bool) {
			s := scripted.NewTeller(yield, &r)
			s.Prompt(9, 4)
			s.Token(moeflux.Event{Reasoning: "hm, ", Raw: "hm, "})
			s.Token(moeflux.Event{Reasoning: "yes", Raw: "yes"})
			s.Token(moeflux.Event{Text: "Look", Raw: "Look"})
			s.Token(moeflux.Event{Text: ":", Raw: ":"})
			if len(r.Tools) > 0 {
				s.Call(0, "find", `{"a":`, `1}`)
				s.Call(1, "find")
			}
			s.End(why)
		}
	}}
}

const turnTools = `"tools":[{"name":"find","description":"d","input_schema":{"type":"object","properties":{}}},{"type":"web_search_20250305","name":"web_search"}]`

func TestMessages(t *testing.T) {
	m := thinker(moeflux.StopEOS)
	url := serving(t, m).URL + "/v1/messages"
	status, body := post(t, url, `{"model":"demo","max_tokens":100,`+turnTools+`,
		"system":[{"type":"text","text":"x-anthropic-billing-header: cch=1;"},{"type":"text","text":"be","cache_control":{"type":"ephemeral"}},{"type":"text","text":"brief"}],
		"messages":[{"role":"user","content":"q"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":""},{"type":"text","text":"a"},{"type":"tool_use","id":"c1","name":"find","input":{"b": 2}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"r"}]},{"type":"text","text":"more"}]},{"role":"system","content":"late"}],
		"metadata":{"user_id":"u"},"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"high"},"context_management":{}}`)
	if status != 200 {
		t.Fatal(status, body)
	}
	same2(t, body, `{"type":"message","role":"assistant","model":"demo","stop_reason":"tool_use","stop_sequence":null,
		"content":[{"type":"thinking","thinking":"hm, yes","signature":""},{"type":"text","text":"Look:"},{"type":"tool_use","id":"call_0","name":"find","input":{"a":1}},{"type":"tool_use","id":"call_1","name":"find","input":{}}],
		"usage":{"input_tokens":1,"cache_creation_input_tokens":4,"cache_read_input_tokens":4,"output_tokens":10}}`)
	r := m.Last()
	var said []string
	for _, m := range r.Messages {
		said = append(said, m.Role+"|"+m.Text()+"|"+m.ReasoningContent+"|"+m.ToolCallID)
		for _, c := range m.ToolCalls {
			said = append(said, c.ID+"|"+c.Name+"|"+c.Arguments)
		}
	}
	if got, want := strings.Join(said, "\n"), "system|be\nbrief||\nuser|q||\nassistant|a|t|\nc1|find|{\"b\": 2}\ntool|r||c1\nuser|more||\nsystem|late||"; got != want {
		t.Errorf("the model was asked\n%s\nwant\n%s", got, want)
	}
	if len(r.Tools) != 1 || r.Tools[0].Name() != "find" || r.MaxTokens != 100 || r.TemplateArgs["enable_thinking"] != true || r.Continue {
		t.Errorf("the model was asked %+v", r)
	}
}

// same2 compares answers of the Messages API.
func same2(t *testing.T, got, want string) {
	t.Helper()
	if !strings.Contains(got, `"id":"msg_`) || !strings.Contains(got, `"moeflux":{`) {
		t.Errorf("the id or the account is missing in %s", got)
	}
	if g, w := normal(t, got), normal(t, want); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

// A stream gathers to the answer that comes whole, and its events keep to the order of the API.
func TestMessagesStream(t *testing.T) {
	url := serving(t, thinker(moeflux.StopEOS)).URL + "/v1/messages"
	const ask = `{"max_tokens":100,` + turnTools + `,"messages":[{"role":"user","content":"q"}]`
	_, whole := post(t, url, ask+`}`)
	resp := send(t, url, ask+`,"stream":true}`)
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var got anthropic.Message
	var open *anthropic.Block
	var order []string
	input := ""
	for event := range strings.SplitSeq(strings.TrimSpace(string(all)), "\n\n") {
		name, data, _ := strings.Cut(event, "\n")
		var e struct {
			Type    string
			Message anthropic.Message
			Index   int
			Block   anthropic.Block `json:"content_block"`
			Delta   struct {
				Type, Text, Thinking string
				Partial              string  `json:"partial_json"`
				Reason               *string `json:"stop_reason"`
			}
			Usage anthropic.Usage
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &e); err != nil || name != "event: "+e.Type {
			t.Fatalf("%q: %v", event, err)
		}
		order = append(order, e.Type)
		switch e.Type {
		case "message_start":
			got = e.Message
		case "content_block_start":
			if open != nil || e.Index != len(got.Content) {
				t.Errorf("%q while a block is open", event)
			}
			got.Content = append(got.Content, e.Block)
			open, input = &got.Content[e.Index], ""
		case "content_block_delta":
			switch e.Delta.Type {
			case "text_delta":
				*open.Text += e.Delta.Text
			case "thinking_delta":
				*open.Thinking += e.Delta.Thinking
			case "input_json_delta":
				input += e.Delta.Partial
			}
		case "content_block_stop":
			if input != "" {
				open.Input = json.RawMessage(input)
			}
			open = nil
		case "message_delta":
			got.Reason, got.Usage = e.Delta.Reason, e.Usage
		}
	}
	text, _ := json.Marshal(got)
	same2(t, string(text), whole)
	if !strings.Contains(whole, `"input_tokens":9,"cache_creation_input_tokens":null,"cache_read_input_tokens":null`) {
		t.Errorf("usage without cache_control: %s", whole)
	}
	if order[0] != "message_start" || order[len(order)-1] != "message_stop" || order[len(order)-2] != "message_delta" {
		t.Errorf("events: %q", order)
	}
}

func TestMessagesStops(t *testing.T) {
	for _, tc := range []struct {
		why    moeflux.StopReason
		more   string
		reason string
	}{
		{moeflux.StopEOS, "", "end_turn"}, {moeflux.StopString, "", "stop_sequence"}, {moeflux.StopContext, "", "max_tokens"}, {moeflux.StopEOS, `"stop_sequences":["x"],`, "end_turn"},
	} {
		if _, body := post(t, serving(t, thinker(tc.why)).URL+"/v1/messages", `{`+tc.more+`"max_tokens":9,"messages":[{"role":"user","content":"q"}]}`); !strings.Contains(body, `"stop_reason":"`+tc.reason+`"`) {
			t.Errorf("%s: %s", tc.why, body)
		}
	}
}

func TestMessagesRefused(t *testing.T) {
	base := serving(t, new(scripted.Model)).URL
	const turns = `"messages":[{"role":"user","content":"q"}]`
	for _, tc := range []struct{ body, part string }{
		{`{` + turns + `}`, "max_tokens is missing"},
		{`{"max_tokens":5}`, "messages is missing"},
		{`{"max_tokens":5,"messages":[{"role":"tool","content":"q"}]}`, "messages[0].role"},
		{`{"max_tokens":5,"messages":[{"role":"user"}]}`, "messages[0].content is missing"},
		{`{"max_tokens":5,"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]}`, `"image" are not supported`},
		{`{"max_tokens":5,"messages":[{"role":"user","content":[{"type":"tool_result"}]}]}`, "tool_use_id is missing"},
		{`{"max_tokens":5,"temperature":1.5,` + turns + `}`, "temperature must be from 0 to 1"},
		{`{"max_tokens":5,"tool_choice":{"type":"any"},` + turns + `}`, "no tools"},
		{`{"max_tokens":5,"tool_choice":{"type":"tool"},` + turns + `}`, "tool_choice.name is missing"},
		{`{"max_tokens":5,"system":[{"type":"image"}],` + turns + `}`, "system[0].type"},
		{`{"max_tokens":5,"stop_sequences":[""],` + turns + `}`, "stop"},
		{`{"max_tokens":5,"mcp_servers":[],` + turns + `}`, "mcp_servers is not supported"},
	} {
		status, body := post(t, base+"/v1/messages", tc.body)
		var e struct {
			Type  string
			Error struct{ Type, Message string }
		}
		if err := json.Unmarshal([]byte(body), &e); err != nil || status != 400 || e.Type != "error" || e.Error.Type != fault.InvalidRequest || !strings.Contains(e.Error.Message, tc.part) {
			t.Errorf("%s: %d %s", tc.body, status, body)
		}
	}
	if status, body := post(t, base+"/v1/messages/count_tokens", `{"system":"a b",`+turns+`}`); status != 200 || strings.TrimSpace(body) != `{"input_tokens":5}` {
		t.Errorf("count_tokens: %d %s", status, body)
	}
}

// An assistant's message at the end is the beginning of the answer.
func TestMessagesContinue(t *testing.T) {
	m := new(scripted.Model)
	if status, body := post(t, serving(t, m).URL+"/v1/messages", `{"max_tokens":5,"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"The answer is"}]}`); status != 200 || !m.Last().Continue {
		t.Errorf("%d %s, continue %v", status, body, m.Last().Continue)
	}
}

// The paths that need a tokenizer, over the demo model.
func TestTokens(t *testing.T) {
	m, err := moeflux.Demo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context())
	base := start(t, Options{Models: []models.Served{{Name: "demo", Model: m}}}).URL
	_, body := post(t, base+"/tokenize", `{"content":"package main é","with_pieces":true}`)
	var pieces struct {
		Tokens []struct {
			ID    int32
			Piece any
		}
	}
	if err := json.Unmarshal([]byte(body), &pieces); err != nil || len(pieces.Tokens) < 3 || pieces.Tokens[0].Piece != "package" {
		t.Fatalf("%v %s", err, body)
	}
	_, body = post(t, base+"/tokenize", `{"content":"package main é"}`)
	_, back := post(t, base+"/detokenize", body)
	if strings.TrimSpace(back) != `{"content":"package main é"}` {
		t.Errorf("%s becomes %s", body, back)
	}
	_, body = post(t, base+"/apply-template", hello)
	var p struct{ Prompt string }
	if err := json.Unmarshal([]byte(body), &p); err != nil || !strings.Contains(p.Prompt, "say this back") || len(p.Prompt) < 20 {
		t.Errorf("%v %s", err, body)
	}
	_, body = post(t, base+"/v1/chat/completions", `{"max_tokens":3,"temperature":0,`+hello[1:])
	var chat struct{ Usage api.Usage }
	_, counted := post(t, base+"/v1/messages/count_tokens", `{"messages":[{"role":"user","content":"say this back"}]}`)
	var n struct {
		Input int `json:"input_tokens"`
	}
	if json.Unmarshal([]byte(body), &chat) != nil || json.Unmarshal([]byte(counted), &n) != nil || n.Input == 0 || n.Input != chat.Usage.PromptTokens {
		t.Errorf("counted %s, read %s", counted, body)
	}
}
