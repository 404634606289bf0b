package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/internal/scripted"
	"github.com/moeflux/moeflux-actor/server/access"
	"github.com/moeflux/moeflux-actor/server/api"
	"github.com/moeflux/moeflux-actor/server/api/openai"
	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/models"
)

// serving starts a server over a script.
func serving(t *testing.T, m *scripted.Model, change ...func(*Options)) *httptest.Server {
	t.Helper()
	o := Options{Models: []models.Served{{Name: "demo", Aliases: []string{"gpt-4o"}, Model: m, Exactness: "int8"}}}
	for _, c := range change {
		c(&o)
	}
	return start(t, o)
}

func start(t *testing.T, o Options) *httptest.Server {
	t.Helper()
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server
}

// startHandler starts a server that a test has made, and returns its URL.
func startHandler(t *testing.T, s *Server) string {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

// post sends a body and returns the status and the answer.
func post(t *testing.T, url, body string, headers ...string) (int, string) {
	t.Helper()
	resp := send(t, url, body, headers...)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(b)
}

func send(t *testing.T, url, body string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		if req.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			req.Host = headers[i+1]
		}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil { // also from other goroutines than the test's: whoever waits must not wait for ever
		t.Error(err)
		return &http.Response{Body: http.NoBody, Header: http.Header{}}
	}
	return resp
}

// same compares two JSON texts but for the fields that differ from run to run.
func same(t *testing.T, got, want string) {
	t.Helper()
	for _, name := range []string{`"id":"`, `"created":`} {
		if !strings.Contains(got, name) {
			t.Errorf("%s is missing in %s", name, got)
		}
	}
	if g, w := normal(t, got), normal(t, want); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}

func normal(t *testing.T, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	if m, ok := v.(map[string]any); ok {
		for _, name := range []string{"id", "created"} {
			delete(m, name)
		}
		if u, ok := m["usage"].(map[string]any); ok {
			delete(u, "moeflux")
		}
	}
	b, _ := json.MarshalIndent(v, "", " ")
	return string(b)
}

// events returns the data of all events of a stream; comments are left out.
func events(t *testing.T, r io.Reader) (data []string) {
	t.Helper()
	in := bufio.NewScanner(r)
	for in.Scan() {
		if d, ok := strings.CutPrefix(in.Text(), "data: "); ok {
			data = append(data, d)
		}
	}
	return data
}

const hello = `{"model":"demo","messages":[{"role":"user","content":"say this back"}]}`

func TestChat(t *testing.T) {
	m := new(scripted.Model)
	url := serving(t, m).URL + "/v1/chat/completions"
	status, body := post(t, url, hello)
	if status != 200 {
		t.Fatal(status, body)
	}
	same(t, body, `{"object":"chat.completion","model":"demo","system_fingerprint":"int8",
		"choices":[{"index":0,"message":{"role":"assistant","content":"say this back","refusal":null},"logprobs":null,"finish_reason":"stop"}],
		"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":0}}}`)
	if r := m.Last(); len(r.Messages) != 1 || r.Messages[0].Content != "say this back" || r.Sampling.Temperature != nil || r.MaxTokens != 0 {
		t.Errorf("the model was asked %+v", r)
	}
}

func TestChatStreams(t *testing.T) {
	resp := send(t, serving(t, new(scripted.Model)).URL+"/v1/chat/completions",
		`{"model":"gpt-4o","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"say this"}]}`)
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); kind != "text/event-stream" || resp.Header.Get("X-Request-Id") == "" {
		t.Errorf("headers: %v", resp.Header)
	}
	got := events(t, resp.Body)
	want := []string{
		`"choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]`,
		`"choices":[{"index":0,"delta":{"content":"say "},"logprobs":null,"finish_reason":null}]`,
		`"choices":[{"index":0,"delta":{"content":"this"},"logprobs":null,"finish_reason":null}]`,
		`"choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}]`,
		`"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":0}}`,
	}
	if len(got) != len(want)+1 || got[len(want)] != "[DONE]" {
		t.Fatalf("events: %q", got)
	}
	for i, w := range want {
		same(t, got[i], `{"object":"chat.completion.chunk","model":"demo","system_fingerprint":"int8",`+w+`}`)
	}
}

// Reasoning, calls, log-probabilities and several choices, streamed and not, say the same.
func TestChatParts(t *testing.T) {
	m := &scripted.Model{Say: func(_ ctxt, r moeflux.Request) moeflux.Events {
		return func(yield func(moeflux.Event, error) bool) {
			s := scripted.NewTeller(yield, &r)
			s.Prompt(5, 0)
			s.Token(moeflux.Event{Reasoning: "hm, ", Raw: "hm, "})
			s.Token(moeflux.Event{Reasoning: "yes", Raw: "yes"})
			s.Token(moeflux.Event{Text: "Look:", Raw: "Look:"})
			s.Call(0, "find", `{"a":`, `1}`)
			s.Call(1, "find", `{}`)
			s.End(moeflux.StopEOS)
		}
	}}
	url := serving(t, m).URL + "/v1/chat/completions"
	const ask = `{"messages":[{"role":"user","content":"x"}],"n":2,"logprobs":true,"top_logprobs":1,"max_completion_tokens":100,
		"tools":[{"type":"web_search"},{"type":"function","function":{"name":"find","parameters":{"type":"object"}}}]`
	status, body := post(t, url, ask+`}`)
	if status != 200 {
		t.Fatal(status, body)
	}
	if r := m.Last(); len(r.Tools) != 1 || r.Tools[0].Name() != "find" || r.MaxTokens != 100 {
		t.Errorf("the model was asked %+v", r)
	}
	var whole struct {
		Choices []struct {
			Index   int
			Message openai.Message
			Finish  string          `json:"finish_reason"`
			Probs   openai.LogProbs `json:"logprobs"`
		}
		Usage api.Usage
	}
	if err := json.Unmarshal([]byte(body), &whole); err != nil {
		t.Fatal(err)
	}
	if len(whole.Choices) != 2 || whole.Usage.PromptTokens != 5 || whole.Usage.Completion.Reasoning != 4 {
		t.Fatalf("%+v", whole)
	}
	for i, c := range whole.Choices {
		if c.Index != i || c.Finish != "tool_calls" || c.Message.Reasoning != "hm, yes" || *c.Message.Content != "Look:" || len(c.Message.Calls) != 2 ||
			c.Message.Calls[0] != (openai.Call{ID: "call_0", Type: "function", Function: openai.Function{Name: "find", Arguments: `{"a":1}`}}) ||
			len(c.Probs.Content) == 0 || c.Probs.Content[0].Top[0].Token != "top0" {
			t.Errorf("choice %d: %+v", i, c)
		}
	}
	resp := send(t, url, ask+`,"stream":true}`)
	defer resp.Body.Close()
	got := make([]openai.Message, 2)
	finish := make([]string, 2)
	for _, data := range events(t, resp.Body) {
		var chunk openai.Chunk
		if data == "[DONE]" {
			continue
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			t.Fatal(err)
		}
		for _, c := range chunk.Choices {
			gather(&got[c.Index], &c.Delta)
			if c.Finish != nil {
				finish[c.Index] = *c.Finish
			}
		}
	}
	for i := range got {
		g, _ := json.Marshal(got[i])
		w, _ := json.Marshal(whole.Choices[i].Message)
		if !bytes.Equal(g, w) || finish[i] != "tool_calls" {
			t.Errorf("choice %d streamed %s, whole %s", i, g, w)
		}
	}
}

// gather adds a delta to a message, as clients do.
func gather(m *openai.Message, d *openai.Delta) {
	if d.Role != "" {
		m.Role = d.Role
	}
	if d.Content != nil {
		if m.Content == nil {
			m.Content = new("")
		}
		*m.Content += *d.Content
	}
	m.Reasoning += d.Reasoning
	for _, c := range d.Calls {
		if *c.Index == len(m.Calls) {
			m.Calls = append(m.Calls, openai.Call{ID: c.ID, Type: c.Type, Function: openai.Function{Name: c.Function.Name}})
		}
		m.Calls[*c.Index].Function.Arguments += c.Function.Arguments
	}
}

// parallel_tool_calls false ends the answer after its first call.
func TestOneCall(t *testing.T) {
	m := &scripted.Model{Say: func(_ ctxt, r moeflux.Request) moeflux.Events {
		return func(yield func(moeflux.Event, error) bool) {
			s := scripted.NewTeller(yield, &r)
			s.Prompt(5, 0)
			s.Call(0, "find", `{}`)
			s.Call(1, "find", `{}`)
			s.End(moeflux.StopInterrupted)
		}
	}}
	_, body := post(t, serving(t, m).URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"x"}],"parallel_tool_calls":false,
		"tools":[{"type":"function","function":{"name":"find"}}]}`)
	if n := strings.Count(body, `"arguments"`); n != 1 || !strings.Contains(body, `"finish_reason":"tool_calls"`) {
		t.Errorf("%d calls: %s", n, body)
	}
}

func TestCompletions(t *testing.T) {
	m := new(scripted.Model)
	url := serving(t, m).URL + "/v1/completions"
	status, body := post(t, url, `{"prompt":"one two","max_tokens":9,"temperature":0,"stop":["x","y"],"seed":-1,"logit_bias":{"5":-100},"logprobs":1}`)
	if status != 200 {
		t.Fatal(status, body)
	}
	same(t, body, `{"object":"text_completion","model":"demo","system_fingerprint":"int8",
		"choices":[{"text":"one two","index":0,"logprobs":{"tokens":["one ","two"],"token_logprobs":[-0.5,-0.5],"top_logprobs":[{"top0":-1},{"top0":-1}],"text_offset":[0,4]},"finish_reason":"stop"}],
		"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":0}}}`)
	if r := m.Last(); r.MaxTokens != 9 || *r.Sampling.Temperature != 0 || len(r.Stop) != 2 || *r.Sampling.Seed != 1<<64-1 || r.Sampling.LogitBias[5] != -100 || r.TopLogProbs != 1 {
		t.Errorf("the model was asked %+v", r)
	}
	if _, body := post(t, url, `{"prompt":["a b c"],"max_tokens":2}`); !strings.Contains(body, `"text":"a b "`) || !strings.Contains(body, `"finish_reason":"length"`) {
		t.Errorf("a list of one prompt, cut: %s", body)
	}
	resp := send(t, url, `{"prompt":"one two","stream":true}`)
	defer resp.Body.Close()
	got := events(t, resp.Body)
	if len(got) != 4 || got[3] != "[DONE]" {
		t.Fatalf("events: %q", got)
	}
	same(t, got[1], `{"object":"text_completion","model":"demo","system_fingerprint":"int8","choices":[{"text":"two","index":0,"logprobs":null,"finish_reason":null}]}`)
}

// Each documented parameter is done or refused by name.
func TestRefused(t *testing.T) {
	url := serving(t, new(scripted.Model)).URL + "/v1/chat/completions"
	const messages = `"messages":[{"role":"user","content":"x"}]`
	for _, tc := range []struct{ body, param, part string }{
		{`{}`, "messages", "missing"},
		{`{"messages":[]}`, "messages", "empty"},
		{`{"messages":"x"}`, "messages", "must be a list"},
		{`{"messages":[` + strings.Repeat("0,", api.MaxMessages) + `0]}`, "messages", "are allowed"},
		{`{"messages":[{"role":"wizard","content":"x"}]}`, "messages[0]", "wizard"},
		{`{"messages":[{"role":"user","content":5}]}`, "messages[0]", "content"},
		{`{"temperature":"hot",` + messages + `}`, "temperature", "must be a number"},
		{`{"temperature":2.1,` + messages + `}`, "temperature", "from 0 to 2"},
		{`{"max_tokens":1.5,` + messages + `}`, "max_tokens", "whole number"},
		{`{"max_tokens":0,` + messages + `}`, "max_tokens", "from 1"},
		{`{"n":1000000,` + messages + `}`, "n", "from 1 to 16"},
		{`{"top_logprobs":1,` + messages + `}`, "top_logprobs", "only allowed with logprobs"},
		{`{"top_logprobs":21,"logprobs":true,` + messages + `}`, "top_logprobs", "from 0 to 20"},
		{`{"logit_bias":{"x":1},` + messages + `}`, "logit_bias", "not a token's number"},
		{`{"logit_bias":{"1":101},` + messages + `}`, "logit_bias.1", "from -100 to 100"},
		{`{"stop":[""],` + messages + `}`, "stop", "from 1 to"},
		{`{"stop":5,` + messages + `}`, "stop", "string"},
		{`{"seed":"x",` + messages + `}`, "seed", "whole number"},
		{`{"seed":1.5,` + messages + `}`, "seed", "whole number"},
		{`{"stream_options":{"include_usage":true},` + messages + `}`, "stream_options", "only allowed with stream"},
		{`{"functions":[],` + messages + `}`, "functions", "not supported"},
		{`{"audio":{},` + messages + `}`, "audio", "not supported"},
		{`{"modalities":["audio"],` + messages + `}`, "modalities", "text"},
		{`{"store":true,` + messages + `}`, "store", "only false"},
		{`{"service_tier":"flex",` + messages + `}`, "service_tier", `"auto" or "default"`},
		{`{"web_search_options":{},` + messages + `}`, "web_search_options", "not supported"},
		{`{"prediction":{},` + messages + `}`, "prediction", "not supported"},
		{`{"reasoning_effort":"huge",` + messages + `}`, "reasoning_effort", "one of"},
		{`{"response_format":{"type":"xml"},` + messages + `}`, "response_format.type", "one of"},
		{`{"response_format":{"type":"json_schema"},` + messages + `}`, "response_format.json_schema", "missing"},
		{`{"response_format":{"type":"json_schema","json_schema":{"schema":{"type":"x"}}},` + messages + `}`, "response_format", "type"},
		{`{"tool_choice":"required",` + messages + `}`, "tool_choice", "no tools"},
		{`{"tool_choice":"maybe",` + messages + `}`, "tool_choice", "auto, none, required"},
		{`{"tools":[{"type":"function","function":{}}],` + messages + `}`, "tools[0]", "name"},
		{`{"chat_template_kwargs":{"messages":"x"},` + messages + `}`, "chat_template_kwargs.messages", "not a variable"},
		{`{"chat_template_kwargs":{"enable_thinking":{}},` + messages + `}`, "chat_template_kwargs.enable_thinking", "must be a text"},
		{`{"guided_regex":"(",` + messages + `}`, "guided_regex", "guided_regex"},
		{`{"grammar":"x","guided_regex":"a",` + messages + `}`, "grammar", ""},
	} {
		status, body := post(t, url, tc.body)
		var e struct {
			Error struct{ Message, Type, Param, Code string }
		}
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			t.Fatal(err, body)
		}
		if status != 400 || e.Error.Param != tc.param || !strings.Contains(e.Error.Message, tc.part) || e.Error.Type != fault.InvalidRequest || e.Error.Code == "" {
			t.Errorf("%s: %d %+v", tc.body, status, e.Error)
		}
	}
}

// What only names the client, or asks for what is the case, is accepted; unknown fields are left
// out.
func TestAccepted(t *testing.T) {
	m := new(scripted.Model)
	url := serving(t, m).URL + "/v1/chat/completions"
	status, body := post(t, url, `{"messages":[{"role":"system","content":"s"},{"role":"developer","content":[{"type":"text","text":"d"}]},{"role":"assistant","content":"y","refusal":null,"tool_calls":null},{"role":"user","content":"x","name":"me"}],
		"user":"u","metadata":{"a":"b"},"safety_identifier":"s","prompt_cache_key":"k","store":false,"service_tier":"auto","modalities":["text"],"verbosity":"medium",
		"unknown":{"x":1},"MAX_TOKENS":3,"temperature":null,"tools":[],"tool_choice":"auto","seed":3,"top_p":0.9,"top_k":5,"min_p":0.1,"presence_penalty":1,"frequency_penalty":-1,
		"repetition_penalty":1.1,"reasoning_effort":"none","chat_template_kwargs":{"thinking":false},"response_format":{"type":"text"},"logprobs":false,"n":1,"parallel_tool_calls":true}`)
	if status != 200 {
		t.Fatal(status, body)
	}
	r := m.Last()
	if r.MaxTokens != 0 || *r.Sampling.TopK != 5 || *r.Sampling.MinP != 0.1 || r.Sampling.PresencePenalty != 1 || r.Sampling.FrequencyPenalty != -1 || *r.Sampling.RepeatPenalty != 1.1 ||
		r.TemplateArgs["enable_thinking"] != false || r.TemplateArgs["reasoning_effort"] != "none" || r.TemplateArgs["thinking"] != false || *r.Sampling.Seed != 3 {
		t.Errorf("the model was asked %+v", r)
	}
}

func TestPaths(t *testing.T) {
	base := serving(t, new(scripted.Model)).URL
	for _, tc := range []struct {
		method, path string
		status       int
		part         string
	}{
		{"GET", "/v1/models", 200, `"context_length":1`},
		{"GET", "/v1/models/demo", 200, `"id":"demo"`},
		{"GET", "/v1/models/org/other", 404, "model_not_found"},
		{"GET", "/healthz", 200, "ok"},
		{"GET", "/readyz", 200, "ready"},
		{"GET", "/nowhere", 404, "unknown_url"},
		{"GET", "/v1/v1/models", 404, "ends with /v1 already"},
		{"DELETE", "/v1/models", 405, "method_not_allowed"},
		{"GET", "/v1/chat/completions", 405, "it takes POST"},
	} {
		req, _ := http.NewRequestWithContext(t.Context(), tc.method, base+tc.path, nil)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != tc.status || !strings.Contains(string(body), tc.part) || resp.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s %s: %d %s", tc.method, tc.path, resp.StatusCode, body)
		}
	}
	if status, body := post(t, base+"/v1/embeddings", `{}`); status != 501 {
		t.Errorf("embeddings: %d %s", status, body)
	}
	if status, body := post(t, base+"/v1/chat/completions", `{"model":"none","messages":[{"role":"user","content":"x"}]}`); status != 404 || !strings.Contains(body, `there are [\"demo\"]`) {
		t.Errorf("an unknown model: %d %s", status, body)
	}
}

// The log tells who asked for what and how it went, and no word of the text or of a key.
func TestLog(t *testing.T) {
	var log bytes.Buffer
	base := serving(t, new(scripted.Model), func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, nil))
		o.Keys = []access.Key{{Secret: "sk-secret-secret", Name: "team"}}
	}).URL
	post(t, base+"/v1/chat/completions", `{"messages":[{"role":"user","content":"the hidden words"}]}`, "Authorization", "Bearer sk-secret-secret")
	post(t, base+"/v1/chat/completions", `{"messages":"the hidden words"}`, "X-Api-Key", "sk-secret-secret")
	text := log.String()
	if !strings.Contains(text, "key=team") || !strings.Contains(text, "status=200") || !strings.Contains(text, "error=invalid_value") || strings.Count(text, "\n") != 2 {
		t.Errorf("the log:\n%s", text)
	}
	if strings.Contains(text, "hidden") || strings.Contains(text, "sk-") {
		t.Errorf("the log tells too much:\n%s", text)
	}
}
