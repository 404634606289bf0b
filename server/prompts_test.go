package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/api/openai"
	"github.com/moeflux/moeflux-actor/server/wire"
)

// A prompt may be a text, tokens, or a list of either; each of a list is answered n times, in its
// order, and counts once.
func TestPrompts(t *testing.T) {
	m := &scripted.Model{Say: func(ctx ctxt, r moeflux.Request) moeflux.Events {
		return scripted.Words(r.Prompt, fmt.Sprint(r.PromptIDs, " ", r.Sampling.Seed != nil && *r.Sampling.Seed == 8))(ctx, r)
	}}
	url := serving(t, m).URL + "/v1/completions"
	for prompt, want := range map[string][]string{
		`"a"`: {"a[] false", "a[] true"}, `["a","b"]`: {"a[] false", "a[] true", "b[] false", "b[] true"}, `[1,2]`: {"[1 2] false", "[1 2] true"},
		`[[1,2],[3]]`: {"[1 2] false", "[1 2] true", "[3] false", "[3] true"}, `["a",[3]]`: {"a[] false", "a[] true", "[3] false", "[3] true"},
	} {
		for _, stream := range []bool{false, true} {
			resp := send(t, url, fmt.Sprintf(`{"n":2,"seed":7,"stream":%v,%s"prompt":%s}`, stream, map[bool]string{true: `"stream_options":{"include_usage":true},`}[stream], prompt))
			got := make([]string, len(want))
			var used *api.Usage
			for _, data := range completions(t, resp.Body, stream) {
				var c openai.Completion
				if err := json.Unmarshal([]byte(data), &c); err != nil {
					t.Fatal(err, data)
				}
				for _, one := range c.Choices {
					got[one.Index] += one.Text
				}
				if c.Usage != nil {
					used = c.Usage
				}
			}
			resp.Body.Close()
			if prompts := len(want) / 2; !slices.Equal(got, want) || used == nil || used.PromptTokens != 7*prompts || used.Prompt.Cached != 3*prompts || used.CompletionTokens != 2*len(want) {
				t.Errorf("%s, streamed %v: %q, %+v", prompt, stream, got, used)
			}
		}
	}
	for _, wrong := range []string{`[]`, `[[]]`, `5`, `[1,"a"]`, `[1.5]`, `[["a"]]`, `{}`, `null`, `[` + strings.TrimSuffix(strings.Repeat(`"a",`, 65), ",") + `]`} {
		if status, body := post(t, url, `{"prompt":`+wrong+`}`); status != 400 || !strings.Contains(body, `"param":"prompt"`) {
			t.Errorf("%s: %d %s", wrong, status, body)
		}
	}
}

// completions returns the objects of an answer.
func completions(t *testing.T, body interface{ Read([]byte) (int, error) }, stream bool) []string {
	t.Helper()
	if stream {
		return slices.DeleteFunc(events(t, body), func(d string) bool { return d == "[DONE]" })
	}
	var raw json.RawMessage
	if err := json.NewDecoder(body).Decode(&raw); err != nil {
		t.Fatal(err)
	}
	return []string{string(raw)}
}

// The progress of a prompt is told in the stream where that is wanted, in llama.cpp's form.
func TestPromptProgress(t *testing.T) {
	m := &scripted.Model{Say: func(ctx ctxt, r moeflux.Request) moeflux.Events {
		return func(yield func(moeflux.Event, error) bool) {
			if r.Progress {
				for _, known := range []int{2, 5} {
					yield(moeflux.Event{Reading: &moeflux.Reading{Known: known, Reused: 2, Total: 7}}, nil)
				}
			}
			scripted.Words("done")(ctx, r)(yield)
		}
	}}
	url := serving(t, m).URL
	for path, prompt := range map[string]string{"/v1/chat/completions": hello[1:], "/v1/completions": `"prompt":"x"}`} {
		resp := send(t, url+path, `{"stream":true,"return_progress":true,`+prompt)
		var told []wire.PromptProgress
		for _, data := range completions(t, resp.Body, true) {
			var c struct {
				Choices  []json.RawMessage
				Progress *wire.PromptProgress `json:"prompt_progress"`
			}
			if err := json.Unmarshal([]byte(data), &c); err != nil || len(c.Choices) != 1 {
				t.Fatal(err, data)
			}
			if c.Progress != nil {
				told = append(told, *c.Progress)
			}
		}
		resp.Body.Close()
		if len(told) != 2 || told[0].Processed != 2 || told[1].Processed != 5 || told[1].Total != 7 || told[1].Cache != 2 || told[0].Rate != 0 || told[1].Rate <= 0 {
			t.Errorf("%s: %+v", path, told)
		}
		if status, body := post(t, url+path, `{"return_progress":true,`+prompt); status != 400 || !strings.Contains(body, `"param":"return_progress"`) {
			t.Errorf("%s, not streamed: %d %s", path, status, body)
		}
	}
}

// What bounds an answer and what may be called get along.
func TestFormatAndTools(t *testing.T) {
	m := new(scripted.Model)
	url := serving(t, m).URL + "/v1/chat/completions"
	const tools = `"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}],` // no comma before
	const format = `"response_format":{"type":"json_object"},`
	for _, tc := range []struct {
		body   string
		Bind   bool
		choice moeflux.ToolChoice
		tools  int
	}{
		{tools + format, true, moeflux.ToolChoice{}, 2},
		{tools + format + `"tool_choice":"none",`, true, moeflux.ToolChoice{None: true}, 2},
		{tools + format + `"tool_choice":"required",`, false, moeflux.ToolChoice{Required: true}, 2},
		{tools + `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"g"}}]}},`, false, moeflux.ToolChoice{Required: true}, 1},
	} {
		if status, body := post(t, url, `{`+tc.body+hello[1:]); status != 200 {
			t.Fatal(tc.body, status, body)
		}
		if r := m.Last(); (r.Constraint != nil) != tc.Bind || r.ToolChoice != tc.choice || len(r.Tools) != tc.tools {
			t.Errorf("%s: bound %v, %+v, %d tools", tc.body, r.Constraint != nil, r.ToolChoice, len(r.Tools))
		}
	}
	for body, param := range map[string]string{
		tools + `"guided_regex":"a",`: "tools",
		tools + `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"h"}}]}},`: "tool_choice.allowed_tools.tools",
		tools + `"tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":[]}},`:                                                          "tool_choice.allowed_tools.mode",
	} {
		if status, answer := post(t, url, `{`+body+hello[1:]); status != 400 || !strings.Contains(answer, `"param":"`+param+`"`) {
			t.Errorf("%s: %d %s", body, status, answer)
		}
	}
}
