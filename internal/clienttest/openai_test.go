//go:build goclients

package clienttest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/shared"
)

func openAI(url string) openai.Client {
	return openai.NewClient(option.WithBaseURL(url+"/v1/"), option.WithAPIKey(key), option.WithMaxRetries(0))
}

// asking is a chat request with one message.
func asking(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: "agent", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
}

// cities are tools by name, each with a city.
func cities(names ...string) (tools []openai.ChatCompletionToolUnionParam) {
	for _, name := range names {
		tools = append(tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: name, Parameters: citySchema}))
	}
	return tools
}

// answered asks twice, whole and streamed, and returns the answer, which must be the same.
func answered(t *testing.T, c openai.Client, p openai.ChatCompletionNewParams) openai.ChatCompletion {
	t.Helper()
	whole, err := c.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := c.Chat.Completions.NewStreaming(t.Context(), p)
	var acc openai.ChatCompletionAccumulator
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Fatal("the client cannot put the chunks together")
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if len(acc.Choices) != len(whole.Choices) || acc.Usage.CompletionTokens != whole.Usage.CompletionTokens || acc.Usage.PromptTokens != whole.Usage.PromptTokens || acc.Usage.PromptTokens == 0 {
		t.Fatalf("streamed %+v, whole %+v", acc.Usage, whole.Usage)
	}
	for i, a := range whole.Choices {
		b := acc.Choices[i]
		if a.Message.Content != b.Message.Content || a.FinishReason != b.FinishReason || len(a.Message.ToolCalls) != len(b.Message.ToolCalls) {
			t.Errorf("whole %+v, streamed %+v", a, b)
		}
		for k, call := range a.Message.ToolCalls {
			if f, g := call.Function, b.Message.ToolCalls[k].Function; f.Name != g.Name || f.Arguments != g.Arguments {
				t.Errorf("call %d: whole %+v, streamed %+v", k, f, g)
			}
		}
	}
	return *whole
}

func TestOpenAIText(t *testing.T) {
	c := openAI(agent(t))
	p := asking("Say exactly: one two three")
	answer := answered(t, c, p)
	if got := answer.Choices[0]; got.Message.Content != "one two three" || got.FinishReason != "stop" {
		t.Errorf("%+v", got)
	}
	p.Stop.OfStringArray = []string{"three"}
	if got := answered(t, c, p).Choices[0]; got.Message.Content != "one two " || got.FinishReason != "stop" {
		t.Errorf("with a stop string: %+v", got)
	}
	p.MaxCompletionTokens = openai.Int(1)
	answer = answered(t, c, p)
	if got := answer.Choices[0]; got.Message.Content != "one " || got.FinishReason != "length" || answer.Usage.CompletionTokens != 1 {
		t.Errorf("one token: %+v", answer)
	}
	if answer.Usage.PromptTokensDetails.CachedTokens == 0 {
		t.Errorf("a prompt that was asked before is not cached: %+v", answer.Usage)
	}
	p = asking("Say exactly: one two")
	p.N, p.Logprobs, p.TopLogprobs = openai.Int(2), openai.Bool(true), openai.Int(3)
	answer = answered(t, c, p)
	if probs := answer.Choices[len(answer.Choices)-1].Logprobs.Content; len(answer.Choices) != 2 || len(probs) != 2 || probs[0].Token != "one " || len(probs[0].TopLogprobs) != 3 {
		t.Errorf("%+v", answer)
	}
	text, err := c.Completions.New(t.Context(), openai.CompletionNewParams{Model: "agent", Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("go on")}})
	if err != nil || text.Choices[0].Text != "go on" {
		t.Errorf("%+v, %v", text, err)
	}
	list, err := c.Models.List(t.Context())
	if err != nil || len(list.Data) != 1 || list.Data[0].ID != "agent" {
		t.Errorf("%+v, %v", list, err)
	}
}

// One call, several, none, any and a named one; then their results.
func TestOpenAITools(t *testing.T) {
	c := openAI(agent(t))
	p := asking("What's the weather and the time in Paris?")
	p.Tools = cities("get_weather", "get_time", "get_news")
	required, none := openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("required")}, openai.ChatCompletionToolChoiceOptionUnionParam{OfAuto: openai.String("none")}
	named := openai.ToolChoiceOptionFunctionToolChoice(openai.ChatCompletionNamedToolChoiceFunctionParam{Name: "get_news"})
	for _, tc := range []struct {
		choice openai.ChatCompletionToolChoiceOptionUnionParam
		single bool
		calls  string
	}{
		{calls: "get_weather get_time"}, {choice: required, calls: "get_weather get_time"}, {choice: named, calls: "get_news"},
		{choice: none}, {single: true, calls: "get_weather"},
	} {
		p.ToolChoice, p.ParallelToolCalls = tc.choice, openai.Bool(!tc.single)
		choice := answered(t, c, p).Choices[0]
		var names []string
		for _, call := range choice.Message.ToolCalls {
			names = append(names, call.Function.Name)
			if call.Function.Arguments != `{"city":"Paris"}` || call.ID == "" {
				t.Errorf("%+v", call)
			}
		}
		if got := strings.Join(names, " "); got != tc.calls || (choice.FinishReason == "tool_calls") != (got != "") {
			t.Errorf("choice %+v: called %q, finish %s; want %q", tc.choice, got, choice.FinishReason, tc.calls)
		}
	}
	p.ToolChoice, p.ParallelToolCalls = openai.ChatCompletionToolChoiceOptionUnionParam{}, openai.Bool(true)
	asked := answered(t, c, p).Choices[0].Message
	p.Messages = append(p.Messages, asked.ToParam())
	for i, call := range asked.ToolCalls {
		p.Messages = append(p.Messages, openai.ToolMessage([]string{"sunny", "noon"}[i], call.ID))
	}
	if got := answered(t, c, p).Choices[0]; got.Message.Content != "The tool says: sunny; noon" || got.FinishReason != "stop" {
		t.Errorf("after the results: %+v", got)
	}
}

// The format binds the engine itself, whatever the demo model likes.
func TestOpenAISchema(t *testing.T) {
	for name, start := range map[string]func(*testing.T) string{"agent": agent, "engine": demo} {
		p := asking("Invent a person.")
		p.Temperature = openai.Float(0)
		p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "person", Strict: openai.Bool(true), Schema: personSchema}}
		answer := answered(t, openAI(start(t)), p)
		var who person
		if err := json.Unmarshal([]byte(answer.Choices[0].Message.Content), &who); err != nil || !who.ok() {
			t.Errorf("%s: %q: %v", name, answer.Choices[0].Message.Content, err)
		}
	}
}

func TestOpenAIErrors(t *testing.T) {
	url := agent(t)
	c := openAI(url)
	bad := asking("x")
	bad.Temperature = openai.Float(3)
	other := asking("x")
	other.Model = "another"
	for _, tc := range []struct {
		c           openai.Client
		p           openai.ChatCompletionNewParams
		status      int
		kind, param string
	}{
		{c, bad, 400, "invalid_request_error", "temperature"},
		{c, other, 404, "not_found_error", "model"},
		{openai.NewClient(option.WithBaseURL(url+"/v1/"), option.WithAPIKey("sk-wrong"), option.WithMaxRetries(0)), asking("x"), 401, "authentication_error", ""},
	} {
		chat := &tc.c.Chat.Completions
		_, whole := chat.New(t.Context(), tc.p)
		stream := chat.NewStreaming(t.Context(), tc.p)
		for stream.Next() {
		}
		for _, err := range []error{whole, stream.Err()} {
			var e *openai.Error
			if !errors.As(err, &e) || e.StatusCode != tc.status || e.Type != tc.kind || e.Param != tc.param || e.Message == "" {
				t.Errorf("%v: want %d %s %s", err, tc.status, tc.kind, tc.param)
			}
		}
	}
}

// A client that leaves in mid-stream ends the model's work.
func TestOpenAICancel(t *testing.T) {
	url, m := slow(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := openAI(url)
	stream := c.Chat.Completions.NewStreaming(ctx, asking("Count from 1 to 10000."))
	for said := ""; !strings.Contains(said, "3"); {
		if !stream.Next() {
			t.Fatal(stream.Err())
		}
		said += stream.Current().Choices[0].Delta.Content
	}
	cancel()
	for stream.Next() {
	}
	if err := stream.Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("the client says %v", err)
	}
	left(t, m)
}
