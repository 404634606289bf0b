package server

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
)

// fuzzSeeds are bodies with most of what the paths take.
var fuzzSeeds = []string{
	hello,
	`{"messages":[{"role":"system","content":[{"type":"text","text":"s"}]},{"role":"user","content":"count from 1 to 5"}],"stream":true,"stream_options":{"include_usage":true},"n":2,"logprobs":true,"top_logprobs":3,"stop":["3"],"seed":7,"logit_bias":{"1":2}}`,
	`{"messages":[{"role":"user","content":"weather"}],"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}],"tool_choice":"required"}`,
	`{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":"b"}}}}],"tool_choice":"required"}`,
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

// Each path that takes a body has a target of its own.
func FuzzChatCompletions(f *testing.F) { fuzzBodies(f, "/v1/chat/completions") }
func FuzzCompletions(f *testing.F)     { fuzzBodies(f, "/v1/completions") }
func FuzzResponses(f *testing.F)       { fuzzBodies(f, "/v1/responses") }
func FuzzMessages(f *testing.F)        { fuzzBodies(f, "/v1/messages") }
func FuzzCountTokens(f *testing.F)     { fuzzBodies(f, "/v1/messages/count_tokens") }
func FuzzTokenize(f *testing.F)        { fuzzBodies(f, "/tokenize") }
func FuzzDetokenize(f *testing.F)      { fuzzBodies(f, "/detokenize") }
func FuzzApplyTemplate(f *testing.F)   { fuzzBodies(f, "/apply-template") }

// fuzzServer is a server of a script with the demo's tokenizer.
func fuzzServer(f *testing.F, keys ...Key) *Server {
	demo, err := moeflux.Demo(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = demo.Close(context.Background()) })
	m := &scripted.Model{Context: 1 << 10, Say: new(scripted.Agent).Say, Text: demo.Tokenizer()}
	s, err := New(Options{Models: []Served{{Name: "demo", Model: m}}, Keys: keys, MaxBody: 1 << 16})
	if err != nil {
		f.Fatal(err)
	}
	return s
}

// fuzzBodies sends bodies to a path: the answer is the API's JSON or stream of events, never a
// panic or a failure of the server, and it comes soon.
func fuzzBodies(f *testing.F, path string) {
	for _, body := range fuzzSeeds {
		f.Add([]byte(body))
	}
	s := fuzzServer(f)
	f.Fuzz(func(t *testing.T, body []byte) {
		r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(string(body)))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		began := time.Now()
		s.ServeHTTP(w, r)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %v", took)
		}
		isAnswer(t, w)
	})
}

// isAnswer checks that an answer is one of the API: JSON, or a stream of events.
func isAnswer(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	answer := w.Body.Bytes()
	switch kind := w.Header().Get("Content-Type"); {
	case w.Code >= http.StatusInternalServerError && w.Code != http.StatusNotImplemented:
		t.Errorf("%d %s", w.Code, answer)
	case kind == "application/json":
		if !json.Valid(answer) || w.Code != 200 && !strings.Contains(string(answer), `"message":`) {
			t.Errorf("%d %s", w.Code, answer)
		}
	case strings.HasPrefix(kind, "text/event-stream") && w.Code == 200:
		for line := range strings.Lines(string(answer)) {
			if data, ok := strings.CutPrefix(line, "data: "); ok && strings.TrimSpace(data) != "[DONE]" && !json.Valid([]byte(data)) {
				t.Errorf("an event %q", line)
			}
		}
		if strings.Contains(string(answer), `"internal_error"`) {
			t.Errorf("%s", answer)
		}
	default:
		t.Errorf("%d of type %q", w.Code, kind)
	}
}

// FuzzPaths sends requests of any method, path, query and headers to a server with keys: whoever
// has none sees only what is open to all.
func FuzzPaths(f *testing.F) {
	for _, path := range []string{
		"/", "/v1/models", "/v1/models/demo", "/v1/models/a%2Fb", "/healthz", "/page/main.js", "/debug/records?seconds=5", "/debug/live",
		"/v1/embeddings", "//v1/models", "/v1/../metrics", "/page/..%2f..%2fserver.go", "/v1/v1/models", "*", "/tokenize?x=%zz",
	} {
		f.Add("GET", path, "localhost", "sk-wrong-wrong", "https://evil.example")
		f.Add("POST", path, "127.0.0.1:8080", "sk-fuzz-fuzz", "")
	}
	f.Add("OPTIONS", "/v1/models", "[::1]:1", "", "null")
	s := fuzzServer(f, Key{Secret: "sk-fuzz-fuzz", Name: "fuzz"})
	f.Fuzz(func(t *testing.T, method, target, host, key, origin string) {
		u, err := url.Parse(target)
		if err != nil || method == "" {
			return // net/http has refused it
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond) // of live views
		defer cancel()
		r := (&http.Request{
			Method: method, URL: u, Host: host, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: "127.0.0.1:1", Body: http.NoBody,
			Header: http.Header{"X-Api-Key": {key}, "Origin": {origin}, "Content-Type": {"application/json"}},
		}).WithContext(ctx)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code >= http.StatusInternalServerError && w.Code != http.StatusNotImplemented {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if key != "sk-fuzz-fuzz" && strings.Contains(w.Body.String(), `"context_length"`) {
			t.Errorf("without a key: %d %s", w.Code, w.Body)
		}
	})
}
