//go:build goclients

package clienttest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func claude(url string) anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey(key), option.WithMaxRetries(0))
}

// telling is a request with one message.
func telling(text string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{Model: "agent", MaxTokens: 1000, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))}}
}

// told asks twice, whole and streamed, and returns the answer, which must be the same.
func told(t *testing.T, c anthropic.Client, p anthropic.MessageNewParams) anthropic.Message {
	t.Helper()
	whole, err := c.Messages.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	stream := c.Messages.NewStreaming(t.Context(), p)
	var acc anthropic.Message
	for stream.Next() {
		if err := acc.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if len(acc.Content) != len(whole.Content) || acc.StopReason != whole.StopReason || acc.StopSequence != whole.StopSequence || acc.Usage.OutputTokens != whole.Usage.OutputTokens {
		t.Fatalf("whole %s, streamed %+v", whole.RawJSON(), acc)
	}
	for i, a := range whole.Content {
		if b := acc.Content[i]; a.Type != b.Type || a.Text != b.Text || a.Thinking != b.Thinking || a.Name != b.Name || string(a.Input) != string(b.Input) {
			t.Errorf("block %d: whole %+v, streamed %+v", i, a, b)
		}
	}
	return *whole
}

func TestAnthropicText(t *testing.T) {
	c := claude(agent(t))
	p := telling("Say exactly: one two three")
	p.System = []anthropic.TextBlockParam{{Text: "Be brief."}, {Text: "Be kind."}}
	answer := told(t, c, p)
	if answer.Content[0].Text != "one two three" || answer.StopReason != "end_turn" {
		t.Errorf("%s", answer.RawJSON())
	}
	count, err := c.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{
		Model: p.Model, Messages: p.Messages, System: anthropic.MessageCountTokensParamsSystemUnion{OfTextBlockArray: p.System},
	})
	if used := answer.Usage.InputTokens; err != nil || count.InputTokens != used || used == 0 {
		t.Errorf("counted %+v (%v), used %d", count, err, used)
	}
	p.System[1].CacheControl = anthropic.NewCacheControlEphemeralParam()
	p.StopSequences = []string{"three"}
	answer = told(t, c, p)
	if answer.Content[0].Text != "one two " || answer.StopReason != "stop_sequence" || answer.StopSequence != "three" || answer.Usage.CacheReadInputTokens < count.InputTokens/2 ||
		answer.Usage.InputTokens+answer.Usage.CacheReadInputTokens+answer.Usage.CacheCreationInputTokens != count.InputTokens {
		t.Errorf("with a stop sequence: %s", answer.RawJSON())
	}
	p.MaxTokens = 1
	if answer = told(t, c, p); answer.Content[0].Text != "one " || answer.StopReason != "max_tokens" || answer.Usage.OutputTokens != 1 {
		t.Errorf("one token: %s", answer.RawJSON())
	}
	p = telling("hello")
	p.Thinking = anthropic.ThinkingConfigParamOfEnabled(1024)
	if answer = told(t, c, p); len(answer.Content) != 2 || answer.Content[0].Thinking == "" || answer.Content[1].Text != "hello" {
		t.Errorf("with thinking: %s", answer.RawJSON())
	}
	p = telling("go on")
	p.Messages = append(p.Messages, anthropic.NewAssistantMessage(anthropic.NewTextBlock("this")))
	if answer = told(t, c, p); answer.Content[0].Text != " is what comes next." {
		t.Errorf("an answer that was begun: %s", answer.RawJSON())
	}
}

func TestAnthropicTools(t *testing.T) {
	c := claude(agent(t))
	p := telling("What's the weather and the time in Paris?")
	for _, name := range []string{"get_weather", "get_time", "get_news"} {
		p.Tools = append(p.Tools, anthropic.ToolUnionParamOfTool(anthropic.ToolInputSchemaParam{Properties: citySchema["properties"], Required: []string{"city"}}, name))
	}
	for _, tc := range []struct {
		choice anthropic.ToolChoiceUnionParam
		calls  string
	}{
		{calls: "get_weather get_time"},
		{anthropic.ToolChoiceUnionParam{OfAny: &anthropic.ToolChoiceAnyParam{}}, "get_weather get_time"},
		{anthropic.ToolChoiceUnionParam{OfAny: &anthropic.ToolChoiceAnyParam{DisableParallelToolUse: anthropic.Bool(true)}}, "get_weather"},
		{anthropic.ToolChoiceParamOfTool("get_news"), "get_news"},
		{anthropic.ToolChoiceUnionParam{OfNone: &anthropic.ToolChoiceNoneParam{}}, ""},
	} {
		p.ToolChoice = tc.choice
		answer := told(t, c, p)
		var names []string
		for _, b := range answer.Content {
			if b.Type == "tool_use" {
				names = append(names, b.Name)
				if string(b.Input) != `{"city":"Paris"}` || b.ID == "" {
					t.Errorf("%s", b.RawJSON())
				}
			}
		}
		if got := strings.Join(names, " "); got != tc.calls || (answer.StopReason == "tool_use") != (got != "") {
			t.Errorf("called %q, want %q: %s", got, tc.calls, answer.RawJSON())
		}
	}
	p.ToolChoice = anthropic.ToolChoiceUnionParam{}
	asked := told(t, c, p)
	p.Messages = append(p.Messages, asked.ToParam(), anthropic.NewUserMessage(
		anthropic.NewToolResultBlock(asked.Content[0].ID, "sunny", false), anthropic.NewToolResultBlock(asked.Content[1].ID, "noon", false)))
	if answer := told(t, c, p); answer.Content[0].Text != "The tool says: sunny; noon" || answer.StopReason != "end_turn" {
		t.Errorf("after the results: %s", answer.RawJSON())
	}
}

func TestAnthropicSchema(t *testing.T) {
	for name, start := range map[string]func(*testing.T) string{"agent": agent, "engine": demo} {
		p := telling("Invent a person.")
		p.Temperature = anthropic.Float(0)
		p.OutputConfig = anthropic.OutputConfigParam{Format: anthropic.JSONOutputFormatParam{Schema: personSchema}}
		var who person
		if answer := told(t, claude(start(t)), p); json.Unmarshal([]byte(answer.Content[0].Text), &who) != nil || !who.ok() {
			t.Errorf("%s: %s", name, answer.RawJSON())
		}
	}
}

func TestAnthropicErrors(t *testing.T) {
	url := agent(t)
	c := claude(url)
	bad, other := telling("x"), telling("x")
	bad.Temperature = anthropic.Float(3)
	other.Model = "another"
	for _, tc := range []struct {
		c      anthropic.Client
		p      anthropic.MessageNewParams
		status int
		kind   string
	}{
		{c, bad, 400, "invalid_request_error"},
		{c, other, 404, "not_found_error"},
		{anthropic.NewClient(option.WithBaseURL(url), option.WithAPIKey("sk-wrong"), option.WithMaxRetries(0)), telling("x"), 401, "authentication_error"},
	} {
		messages := &tc.c.Messages
		_, whole := messages.New(t.Context(), tc.p)
		stream := messages.NewStreaming(t.Context(), tc.p)
		for stream.Next() {
		}
		for _, err := range []error{whole, stream.Err()} {
			if e, ok := errors.AsType[*anthropic.Error](err); !ok || e.StatusCode != tc.status || string(e.Type()) != tc.kind || e.RequestID == "" {
				t.Errorf("%v: want %d %s", err, tc.status, tc.kind)
			}
		}
	}
}

func TestAnthropicCancel(t *testing.T) {
	url, m := slow(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := claude(url)
	stream := c.Messages.NewStreaming(ctx, telling("Count from 1 to 10000."))
	for said := ""; !strings.Contains(said, "3"); said += stream.Current().Delta.Text {
		if !stream.Next() {
			t.Fatal(stream.Err())
		}
	}
	cancel()
	for stream.Next() {
	}
	if err := stream.Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("the client says %v", err)
	}
	left(t, m)
}
