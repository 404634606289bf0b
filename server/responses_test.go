package server

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server/access"
)

// response is what tests read of one.
type response struct {
	ID, Object, Status string
	Output             []struct {
		Type, ID, Status, Role, Name, Arguments string
		CallID                                  string `json:"call_id"`
		Content                                 []struct{ Type, Text string }
	}
	Instructions string
	Incomplete   *struct{ Reason string } `json:"incomplete_details"`
	Error        *struct{ Code, Message string }
	Usage        *struct {
		Input   int `json:"input_tokens"`
		Output  int `json:"output_tokens"`
		Details struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
}

// brief says what an answer is, without the names of its items.
func (r *response) brief() string {
	out := r.Status
	for _, i := range r.Output {
		out += fmt.Sprintf(" | %s %s %s%s%s", i.Type, i.Status, i.CallID, i.Name, i.Arguments)
		for _, c := range i.Content {
			out += c.Type + ":" + c.Text
		}
	}
	if r.Usage != nil {
		out += fmt.Sprintf(" | %d %d %d", r.Usage.Input, r.Usage.Output, r.Usage.Details.Reasoning)
	}
	return out
}

func readResponse(t *testing.T, body string) (r response) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &r); err != nil || r.Object != "response" || !strings.HasPrefix(r.ID, "resp_") {
		t.Fatalf("%v: %s", err, body)
	}
	return r
}

const (
	functionTools = `"tools":[{"type":"function","name":"find","parameters":{"type":"object"},"strict":false},{"type":"web_search"},{"type":"namespace","name":"n"}]`
	thinkerSays   = "completed | reasoning completed reasoning_text:hm, yes | message completed output_text:Look: | function_call completed call_0find{\"a\":1} | function_call completed call_1find{} | 9 10 2"
)

func TestResponses(t *testing.T) {
	m := thinker(moeflux.StopEOS)
	url := serving(t, m).URL + "/v1/responses"
	status, body := post(t, url, `{"model":"demo","instructions":"be brief","store":false,"include":["reasoning.encrypted_content"],"prompt_cache_key":"k","client_metadata":{},
		"reasoning":{"effort":"low","summary":"auto"},"parallel_tool_calls":true,"max_output_tokens":50,`+functionTools+`,
		"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"d"}]},{"role":"user","content":"q"},
			{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"t"}]},{"type":"function_call","call_id":"c1","name":"find","arguments":"{\"b\": 2}","id":"fc_1"},
			{"type":"function_call_output","call_id":"c1","output":"r"}]}`)
	if status != 200 {
		t.Fatal(status, body)
	}
	if r := readResponse(t, body); r.brief() != thinkerSays || r.Instructions != "be brief" {
		t.Errorf("the answer is %s", r.brief())
	}
	for _, name := range []string{ // which the published schema requires
		"background", "completed_at", "created_at", "error", "frequency_penalty", "incomplete_details", "instructions", "max_output_tokens", "max_tool_calls", "metadata",
		"parallel_tool_calls", "presence_penalty", "previous_response_id", "prompt_cache_key", "safety_identifier", "service_tier", "store", "temperature", "text", "tool_choice",
		"tools", "top_logprobs", "top_p", "truncation", "usage", "user",
	} {
		if !strings.Contains(body, `"`+name+`":`) {
			t.Errorf("%s is missing in %s", name, body)
		}
	}
	for _, repeated := range []string{
		`"reasoning":{"effort":"low","summary":"auto"}`, `"text":{"format":{"type":"text"}}`,
		`"tools":[{"type":"function","name":"find","description":null,"parameters":{"type":"object"},"strict":false}]`,
	} {
		if !strings.Contains(body, repeated) {
			t.Errorf("%s is missing in %s", repeated, body)
		}
	}
	r := m.Last()
	var said []string
	for _, m := range r.Messages {
		said = append(said, m.Role+"|"+m.Text()+"|"+m.ReasoningContent+"|"+m.ToolCallID)
		for _, c := range m.ToolCalls {
			said = append(said, c.ID+"|"+c.Name+"|"+c.Arguments)
		}
	}
	if got, want := strings.Join(said, "\n"), "system|be brief||\ndeveloper|d||\nuser|q||\nassistant||t|\nc1|find|{\"b\": 2}\ntool|r||c1"; got != want {
		t.Errorf("the model was asked\n%s\nwant\n%s", got, want)
	}
	if len(r.Tools) != 1 || r.MaxTokens != 50 || r.TemplateArgs["reasoning_effort"] != "low" {
		t.Errorf("the model was asked %+v", r)
	}
}

// A stream's events are numbered, and its items gather to those of the response at its end.
func TestResponsesStream(t *testing.T) {
	resp := send(t, serving(t, thinker(moeflux.StopEOS)).URL+"/v1/responses", `{"stream":true,"input":"q",`+functionTools+`}`)
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var kinds, done []string
	text := make(map[string]string) // by item
	for i, event := range strings.Split(strings.TrimSpace(string(all)), "\n\n") {
		if event == "data: [DONE]" {
			continue
		}
		name, data, _ := strings.Cut(event, "\n")
		var e struct {
			Type     string
			Number   int    `json:"sequence_number"`
			ItemID   string `json:"item_id"`
			Delta    string
			Item     json.RawMessage
			Response json.RawMessage
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &e); err != nil || name != "event: "+e.Type || e.Number != i {
			t.Fatalf("event %d: %q, %v", i, event, err)
		}
		text[e.ItemID] += e.Delta
		if kinds = append(kinds, e.Type); e.Type == "response.output_item.done" {
			done = append(done, string(e.Item))
		}
		if e.Type != "response.completed" {
			continue
		}
		r := readResponse(t, string(e.Response))
		if r.brief() != thinkerSays {
			t.Errorf("the answer is %s", r.brief())
		}
		for k, item := range r.Output {
			whole := item.Arguments
			for _, c := range item.Content {
				whole += c.Text
			}
			if streamed := text[item.ID]; streamed != whole && !(streamed == "" && whole == "{}") {
				t.Errorf("item %d streamed %q and is %q", k, streamed, whole)
			}
			if !strings.Contains(done[k], `"`+item.ID+`"`) || !strings.Contains(done[k], `"completed"`) {
				t.Errorf("item %d ended as %s", k, done[k])
			}
		}
	}
	if len(kinds) < 5 || kinds[0] != "response.created" || kinds[1] != "response.in_progress" || kinds[len(kinds)-1] != "response.completed" {
		t.Errorf("events: %q", kinds)
	}
}

// previous_response_id goes on from what was said, for the same key, unless it was not to be
// stored.
func TestPreviousResponse(t *testing.T) {
	m := new(scripted.Model)
	url := serving(t, m, func(o *Options) {
		o.Keys = []access.Key{{Secret: "sk-first-first", Name: "a"}, {Secret: "sk-second-second", Name: "b"}}
	}).URL + "/v1/responses"
	a, b := []string{"X-Api-Key", "sk-first-first"}, []string{"X-Api-Key", "sk-second-second"}
	_, body := post(t, url, `{"instructions":"first rules","input":"one"}`, a...)
	first := readResponse(t, body)
	status, body := post(t, url, `{"instructions":"other rules","input":"two","previous_response_id":"`+first.ID+`"}`, a...)
	if status != 200 {
		t.Fatal(body)
	}
	var said []string
	for _, m := range m.Last().Messages {
		said = append(said, m.Role+":"+m.Text())
	}
	if want := []string{"system:other rules", "user:one", "assistant:one", "user:two"}; !slices.Equal(said, want) {
		t.Errorf("the model was asked %q", said)
	}
	if status, body := post(t, url, `{"input":"two","previous_response_id":"`+first.ID+`"}`, b...); status != 400 || !strings.Contains(body, "previous_response_id") {
		t.Errorf("with another key: %d %s", status, body)
	}
	_, body = post(t, url, `{"input":"one","store":false}`, a...)
	if status, body := post(t, url, `{"input":"two","previous_response_id":"`+readResponse(t, body).ID+`"}`, a...); status != 400 {
		t.Errorf("after store false: %d %s", status, body)
	}
}

func TestResponsesEnds(t *testing.T) {
	_, body := post(t, serving(t, new(scripted.Model)).URL+"/v1/responses", `{"input":"a b c","max_output_tokens":2}`)
	if r := readResponse(t, body); r.Status != "incomplete" || r.Incomplete == nil || r.Incomplete.Reason != "max_output_tokens" {
		t.Error(body)
	}
	resp := send(t, serving(t, failing(1, io.ErrUnexpectedEOF)).URL+"/v1/responses", `{"stream":true,"input":"x"}`)
	defer resp.Body.Close()
	all, _ := io.ReadAll(resp.Body)
	if text := string(all); !strings.Contains(text, "event: response.failed") || !strings.Contains(text, `"code":"internal_error"`) || strings.Contains(text, "[DONE]") {
		t.Errorf("a failure in a stream: %s", text)
	}
}

func TestResponsesRefused(t *testing.T) {
	url := serving(t, new(scripted.Model)).URL + "/v1/responses"
	for _, tc := range []struct{ body, param string }{
		{`{}`, "input"},
		{`{"input":[]}`, "input"},
		{`{"input":5}`, "input"},
		{`{"input":[{"type":"image_generation_call"}]}`, "input[0].type"},
		{`{"input":[{"role":"user","content":[{"type":"input_image"}]}]}`, "input[0].content[0].type"},
		{`{"input":[{"role":"nobody","content":"x"}]}`, "input[0].role"},
		{`{"input":[{"type":"function_call"}]}`, "input[0].call_id"},
		{`{"input":[{"type":"function_call_output","output":"x"}]}`, "input[0].call_id"},
		{`{"input":"x","background":true}`, "background"},
		{`{"input":"x","truncation":"auto"}`, "truncation"},
		{`{"input":"x","conversation":"c"}`, "conversation"},
		{`{"input":"x","previous_response_id":"resp_none"}`, "previous_response_id"},
		{`{"input":"x","max_output_tokens":0}`, "max_output_tokens"},
		{`{"input":"x","top_logprobs":21}`, "top_logprobs"},
		{`{"input":"x","include":["the moon"]}`, "include"},
		{`{"input":"x","text":{"format":{"type":"json_schema"}}}`, "text.format.json_schema"},
		{`{"input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"x"}}}}`, "text.format.schema"},
		{`{"input":"x","tool_choice":{"type":"function","name":"f"}}`, "tool_choice"},
		{`{"input":"x","reasoning":{"effort":"huge"}}`, "reasoning.effort"},
		{`{"input":"x","tools":[{"type":"function","name":"f","strict":"yes"}]}`, "tools[0]"},
		{`{"input":"x","chat_template_kwargs":{"messages":[]}}`, "chat_template_kwargs.messages"},
	} {
		status, body := post(t, url, tc.body)
		var e struct{ Error struct{ Param string } }
		if err := json.Unmarshal([]byte(body), &e); err != nil || status != 400 || e.Error.Param != tc.param {
			t.Errorf("%s: %d %s", tc.body, status, body)
		}
	}
	if status, body := post(t, url, `{"input":"x","text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}},"truncation":"disabled","background":false}`); status != 200 {
		t.Errorf("%d %s", status, body)
	}
}
