//go:build goclients

package clienttest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

// parameter is what the server makes of a documented parameter. value is an example.
//
//   - done: it is read, so that another kind of value is an error that names it;
//   - taken: it only names the client, or asks for nothing that changes an answer;
//   - refused: the error names it.
type parameter struct{ verdict, value string }

const (
	done    = "done"
	taken   = "taken"
	refused = "refused"
)

const aTool = `{"type":"function","function":{"name":"f"}}`

// parameters are those of each path, with all that the client libraries know.
var parameters = []struct {
	path, body string // a request that is whole
	of         any    // the library's
	all        map[string]parameter
}{
	{"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`, openai.ChatCompletionNewParams{}, map[string]parameter{
		"messages": {done, `[{"role":"user","content":"x"}]`}, "model": {done, `"agent"`}, "temperature": {done, `1`}, "top_p": {done, `0.5`},
		"max_tokens": {done, `3`}, "max_completion_tokens": {done, `3`}, "n": {done, `2`}, "seed": {done, `7`}, "stop": {done, `["a"]`},
		"frequency_penalty": {done, `1`}, "presence_penalty": {done, `1`}, "logit_bias": {done, `{"5":1}`}, "logprobs": {done, `true`},
		"top_logprobs": {done, `0`}, "response_format": {done, `{"type":"json_object"}`}, "tools": {done, `[` + aTool + `]`}, "tool_choice": {done, `"none"`},
		"parallel_tool_calls": {done, `false`}, "reasoning_effort": {done, `"low"`}, "stream_options": {done, `{"include_usage":true}`},
		"user": {taken, `"u"`}, "safety_identifier": {taken, `"u"`}, "metadata": {taken, `{"a":"b"}`}, "prompt_cache_key": {taken, `"k"`},
		"prompt_cache_retention": {taken, `"24h"`}, "prompt_cache_options": {taken, `{}`}, "store": {refused, `true`}, "audio": {refused, `{"voice":"v","format":"wav"}`},
		"modalities": {refused, `["text","audio"]`}, "moderation": {refused, `{"model":"m"}`}, "service_tier": {refused, `"flex"`}, "verbosity": {refused, `"low"`},
		"function_call": {refused, `"auto"`}, "functions": {refused, `[{"name":"f"}]`}, "prediction": {refused, `{"type":"content","content":"x"}`}, "web_search_options": {refused, `{}`},
	}},
	{"/v1/completions", `{"prompt":"x"}`, openai.CompletionNewParams{}, map[string]parameter{
		"prompt": {done, `[[1,2],[3]]`}, "model": {done, `"agent"`}, "max_tokens": {done, `3`}, "n": {done, `2`}, "temperature": {done, `1`}, "top_p": {done, `0.5`},
		"frequency_penalty": {done, `1`}, "presence_penalty": {done, `1`}, "logit_bias": {done, `{"5":1}`}, "logprobs": {done, `2`}, "seed": {done, `7`}, "stop": {done, `"a"`},
		"stream_options": {done, `{"include_usage":true}`}, "user": {taken, `"u"`}, "best_of": {refused, `3`}, "echo": {refused, `true`}, "suffix": {refused, `"x"`},
	}},
	{"/v1/responses", `{"input":"x"}`, responses.ResponseNewParams{}, map[string]parameter{
		"input": {done, `"x"`}, "model": {done, `"agent"`}, "instructions": {done, `"be brief"`}, "max_output_tokens": {done, `3`}, "parallel_tool_calls": {done, `false`},
		"store": {done, `false`}, "temperature": {done, `1`}, "top_p": {done, `0.5`}, "top_logprobs": {done, `2`}, "include": {done, `["message.output_text.logprobs"]`},
		"stream_options": {done, `{"include_obfuscation":false}`}, "reasoning": {done, `{"effort":"low"}`}, "text": {done, `{"format":{"type":"json_object"}}`},
		"tools": {done, `[{"type":"function","name":"f"}]`}, "tool_choice": {done, `"none"`}, "user": {taken, `"u"`}, "safety_identifier": {taken, `"u"`},
		"metadata": {taken, `{"a":"b"}`}, "prompt_cache_key": {taken, `"k"`}, "prompt_cache_retention": {taken, `"24h"`}, "prompt_cache_options": {taken, `{}`},
		"previous_response_id": {refused, `"resp_unknown"`}, "background": {refused, `true`}, "max_tool_calls": {refused, `1`}, "context_management": {refused, `[{"type":"compaction"}]`},
		"conversation": {refused, `"c"`}, "moderation": {refused, `{"model":"m"}`}, "prompt": {refused, `{"id":"p"}`}, "service_tier": {refused, `"flex"`},
		"truncation": {refused, `"auto"`}, "access_programs": {refused, `["p"]`},
	}},
	{"/v1/messages", `{"max_tokens":9,"messages":[{"role":"user","content":"x"}]}`, anthropic.MessageNewParams{}, map[string]parameter{
		"max_tokens": {done, `3`}, "messages": {done, `[{"role":"user","content":"x"}]`}, "model": {done, `"agent"`}, "temperature": {done, `1`}, "top_k": {done, `4`},
		"top_p": {done, `0.5`}, "stop_sequences": {done, `["a"]`}, "system": {done, `[{"type":"text","text":"be brief"}]`}, "thinking": {done, `{"type":"disabled"}`},
		"tool_choice": {done, `{"type":"none"}`}, "tools": {done, `[{"name":"f","input_schema":{"type":"object"}}]`},
		"output_config": {done, `{"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}}}`},
		"cache_control": {taken, `{"type":"ephemeral"}`}, "metadata": {taken, `{"user_id":"u"}`}, "service_tier": {refused, `"priority"`}, "speed": {refused, `"fast"`},
		"inference_geo": {refused, `"us"`}, "container": {refused, `"c"`}, "diagnostics": {refused, `{}`},
	}},
}

// Every parameter that the libraries know is done, or refused by its name, or changes nothing.
func TestParameters(t *testing.T) {
	url := agent(t)
	for _, api := range parameters {
		var known []string
		for _, f := range reflect.VisibleFields(reflect.TypeOf(api.of)) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
				known = append(known, name)
			}
		}
		slices.Sort(known)
		if listed := slices.Sorted(maps.Keys(api.all)); !slices.Equal(listed, known) {
			t.Errorf("%s: the table has %v, the library %v", api.path, listed, known)
		}
		for name, p := range api.all {
			status, about := send(t, url+api.path, api.body, name, p.value)
			if (status == 200) != (p.verdict != refused) || status != 200 && (status != 400 || !strings.HasPrefix(about, name)) {
				t.Errorf("%s: %s of %s is %s, and the server says %d about %q", api.path, name, p.value, p.verdict, status, about)
			}
			if p.verdict != done {
				continue
			}
			wrong := `{"no":{"such":[1]}}`
			if p.value[0] == '{' {
				wrong = `5`
			}
			if status, about = send(t, url+api.path, api.body, name, wrong); status != 400 || !strings.HasPrefix(about, name) {
				t.Errorf("%s: %s is not read: %d about %q", api.path, name, status, about)
			}
		}
	}
}

// send sends a request with one parameter set, and returns what the error, if any, is about.
func send(t *testing.T, url, body, name, value string) (status int, about string) {
	t.Helper()
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &fields); err != nil {
		t.Fatal(err)
	}
	fields[name] = json.RawMessage(value)
	if name == "stream_options" {
		fields["stream"] = json.RawMessage(`true`)
	}
	if name == "top_logprobs" {
		fields["logprobs"] = json.RawMessage(`true`)
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		Error struct{ Param, Message string }
	}
	if resp.StatusCode == 200 {
		return 200, ""
	}
	if err := json.Unmarshal(answer, &e); err != nil {
		return resp.StatusCode, fmt.Sprintf("%v: %s", err, answer)
	}
	if e.Error.Param == "" {
		return resp.StatusCode, e.Error.Message // of Anthropic's: it begins with the name
	}
	return resp.StatusCode, e.Error.Param
}
