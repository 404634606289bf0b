package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server/models"
)

// fuzzed are the paths that take bodies.
var fuzzed = []string{
	"/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens",
	"/tokenize", "/detokenize", "/apply-template",
}

// fuzzSeeds are bodies with most of what the paths take.
var fuzzSeeds = []string{
	hello,
	`{"messages":[{"role":"system","content":[{"type":"text","text":"s"}]},{"role":"user","content":"count from 1 to 5"}],"stream":true,"stream_options":{"include_usage":true},"n":2,"logprobs":true,"top_logprobs":3,"stop":["3"],"seed":7,"logit_bias":{"1":2}}`,
	`{"messages":[{"role":"user","content":"weather"}],"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}],"tool_choice":"required"}`,
	`{"messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"5"}]}`,
	`{"messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}}`,
	`{"prompt":["a",[1,2]],"max_tokens":4,"echo":true,"logprobs":2,"best_of":1,"suffix":null}`,
	`{"prompt":[[1,2],[3]],"stream":true}`,
	`{"input":[{"role":"user","content":[{"type":"input_text","text":"x"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"5"}],"instructions":"s","stream":true,"text":{"format":{"type":"text"}},"reasoning":{"effort":"low"}}`,
	`{"max_tokens":5,"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"t","content":"5"}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"any"},"thinking":{"type":"enabled","budget_tokens":2000},"stop_sequences":["a"],"stream":true}`,
	`{"content":"a b","add_special":true,"with_pieces":true}`,
	`{"tokens":[1,2,3]}`,
	`{"messages":[{"role":"user","content":"x"}],"guided_regex":"[a-c]{3}","chat_template_kwargs":{"enable_thinking":true}}`,
	`{"messages":[{"role":"user","content":"x"}],"grammar":"root ::= \"a\""}`,
	`[`, `{"messages":[[[[[[[[`, "\xff\xfe",
}

// FuzzRequests sends bodies to each path: the answer is the API's JSON or stream of events, never a
// panic or a failure of the server, and it comes soon.
func FuzzRequests(f *testing.F) {
	for path := range fuzzed {
		for _, body := range fuzzSeeds {
			f.Add(byte(path), []byte(body))
		}
	}
	demo, err := moeflux.Demo(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	defer demo.Close(f.Context())
	m := &scripted.Model{Context: 1 << 10, Say: new(scripted.Agent).Say, Text: demo.Tokenizer()}
	s, err := New(Options{Models: []models.Served{{Name: "demo", Model: m}}, MaxBody: 1 << 16})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path byte, body []byte) {
		url := fuzzed[int(path)%len(fuzzed)]
		r := httptest.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(string(body)))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		began := time.Now()
		s.ServeHTTP(w, r)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s took %v", url, took)
		}
		answer := w.Body.Bytes()
		switch kind := w.Header().Get("Content-Type"); {
		case w.Code >= http.StatusInternalServerError:
			t.Errorf("%s: %d %s", url, w.Code, answer)
		case kind == "application/json":
			if !json.Valid(answer) || w.Code != 200 && !strings.Contains(string(answer), `"message":`) {
				t.Errorf("%s: %d %s", url, w.Code, answer)
			}
		case strings.HasPrefix(kind, "text/event-stream") && w.Code == 200:
			for line := range strings.Lines(string(answer)) {
				if data, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(data) != "[DONE]" && !json.Valid([]byte(data)) {
					t.Errorf("%s: an event %q", url, line)
				}
			}
			if strings.Contains(string(answer), `"internal_error"`) {
				t.Errorf("%s: %s", url, answer)
			}
		default:
			t.Errorf("%s: %d of type %q", url, w.Code, kind)
		}
	})
}
