//go:build goclients

package clienttest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
)

func responding(text string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: "agent", Input: responses.ResponseNewParamsInputUnion{OfString: openai.String(text)}}
}

// responded asks twice, whole and streamed, and returns the streamed response. Both must say the
// same, and so must the pieces of the stream.
func responded(t *testing.T, c openai.Client, p responses.ResponseNewParams) responses.Response {
	t.Helper()
	whole, err := c.Responses.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	stream := c.Responses.NewStreaming(t.Context(), p)
	said, arguments := "", ""
	var last responses.Response
	next := int64(0)
	for stream.Next() {
		e := stream.Current()
		if e.SequenceNumber != next {
			t.Errorf("event %s has the number %d, and %d comes next", e.Type, e.SequenceNumber, next)
		}
		next++
		switch e.Type {
		case "response.output_text.delta":
			said += e.Delta
		case "response.function_call_arguments.delta":
			arguments += e.Delta
		case "response.completed", "response.incomplete":
			last = e.Response
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if last.OutputText() != said || whole.OutputText() != said || last.Status != whole.Status || len(last.Output) != len(whole.Output) || last.Usage.OutputTokens != whole.Usage.OutputTokens {
		t.Errorf("pieces %q, streamed %q, whole %q", said, last.OutputText(), whole.OutputText())
	}
	called := ""
	for i, item := range last.Output {
		called += item.Arguments.OfString
		if item.Type != whole.Output[i].Type || item.Name != whole.Output[i].Name || item.Arguments.OfString != whole.Output[i].Arguments.OfString {
			t.Errorf("item %d: streamed %+v, whole %+v", i, item, whole.Output[i])
		}
	}
	if called != arguments {
		t.Errorf("pieces %q, calls %q", arguments, called)
	}
	return last
}

func TestResponses(t *testing.T) {
	c := openAI(agent(t))
	p := responding("My name is Ada. Remember it.")
	p.Instructions = openai.String("Be brief.")
	first := responded(t, c, p)
	if first.Status != "completed" || first.Usage.InputTokens == 0 || first.Usage.InputTokensDetails.CachedTokens == 0 {
		t.Errorf("%+v", first)
	}
	p = responding("What is my name?")
	p.PreviousResponseID = openai.String(first.ID)
	second := responded(t, c, p)
	if second.OutputText() != "Ada" || second.PreviousResponseID != first.ID {
		t.Errorf("the second turn: %q after %q", second.OutputText(), second.PreviousResponseID)
	}
	p.PreviousResponseID = openai.String("resp_nowhere")
	_, err := c.Responses.New(t.Context(), p)
	if e, ok := errors.AsType[*openai.Error](err); !ok || e.StatusCode != 400 || e.Param != "previous_response_id" {
		t.Errorf("an unknown response: %v", err)
	}
	p = responding("Say exactly: one two three")
	p.MaxOutputTokens = openai.Int(2)
	if cut := responded(t, c, p); cut.Status != "incomplete" || cut.IncompleteDetails.Reason != "max_output_tokens" || cut.OutputText() != "one two " {
		t.Errorf("cut: %s %q", cut.Status, cut.OutputText())
	}
}

func TestResponsesTools(t *testing.T) {
	c := openAI(agent(t))
	p := responding("What's the weather and the time in Paris?")
	for _, name := range []string{"get_weather", "get_time", "get_news"} {
		p.Tools = append(p.Tools, responses.ToolParamOfFunction(name, citySchema, false))
	}
	named := responses.ResponseNewParamsToolChoiceUnion{OfFunctionTool: &responses.ToolChoiceFunctionParam{Name: "get_news"}}
	for _, tc := range []struct {
		choice responses.ResponseNewParamsToolChoiceUnion
		single bool
		calls  string
	}{
		{calls: "get_weather get_time"}, {choice: named, calls: "get_news"}, {single: true, calls: "get_weather"},
		{choice: responses.ResponseNewParamsToolChoiceUnion{OfToolChoiceMode: openai.Opt(responses.ToolChoiceOptionsNone)}},
	} {
		p.ToolChoice, p.ParallelToolCalls = tc.choice, openai.Bool(!tc.single)
		var names []string
		for _, item := range responded(t, c, p).Output {
			if item.Type == "function_call" {
				names = append(names, item.Name)
			}
		}
		if got := strings.Join(names, " "); got != tc.calls {
			t.Errorf("called %q, want %q", got, tc.calls)
		}
	}
	p.ToolChoice, p.ParallelToolCalls = responses.ResponseNewParamsToolChoiceUnion{}, openai.Bool(true)
	asked := responded(t, c, p)
	p.PreviousResponseID = openai.String(asked.ID)
	p.Input = responses.ResponseNewParamsInputUnion{}
	for _, item := range asked.Output {
		result := responses.ResponseInputItemParamOfFunctionCallOutput(item.Name + " is known")
		result.OfFunctionCallOutput.CallID = openai.String(item.CallID)
		p.Input.OfInputItemList = append(p.Input.OfInputItemList, result)
	}
	if got := responded(t, c, p).OutputText(); got != "The tool says: get_weather is known; get_time is known" {
		t.Errorf("after the results: %q", got)
	}
}

func TestResponsesSchema(t *testing.T) {
	for name, start := range map[string]func(*testing.T) string{"agent": agent, "engine": demo} {
		p := responding("Invent a person.")
		p.Temperature = openai.Float(0)
		p.Text.Format = responses.ResponseFormatTextConfigParamOfJSONSchema("person", personSchema)
		var who person
		if text := responded(t, openAI(start(t)), p).OutputText(); json.Unmarshal([]byte(text), &who) != nil || !who.ok() {
			t.Errorf("%s: %q", name, text)
		}
	}
}

func TestResponsesCancel(t *testing.T) {
	url, m := slow(t)
	ctx, cancel := context.WithCancel(t.Context())
	c := openAI(url)
	stream := c.Responses.NewStreaming(ctx, responding("Count from 1 to 10000."))
	for said := ""; !strings.Contains(said, "3"); said += stream.Current().Delta {
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
