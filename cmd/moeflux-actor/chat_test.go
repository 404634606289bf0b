package main

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/converse"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// withTemplate returns the packed model with another chat template; "" for none.
func withTemplate(t *testing.T, model, template string) string {
	t.Helper()
	return fixtures.Overlay(t, model, map[string]string{"chat_template.jinja": template, "tokenizer_config.json": ""})
}

// chatML is a template without reasoning; opening one whose prompt ends within it.
const (
	chatML  = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
	opening = chatML + "{% if add_generation_prompt and enable_thinking is not false %}<think>\n{% endif %}"
)

// From messages to text to ids to greedy ids to text, as the reference implementation does it.
func TestChatAsTheReference(t *testing.T) {
	model, ref := loadE2E(t)
	if len(ref.Messages) != 2 || ref.Messages[0].Role != chat.System || ref.Messages[1].Role != chat.User {
		t.Fatalf("the reference has the messages %+v, want a system's and a user's", ref.Messages)
	}
	system, message := ref.Messages[0].Content, ref.Messages[1].Content
	base := []string{"run", "--model", model, "--chat", "-n", "24", "--activations", "f32"}
	for _, c := range []struct {
		name, stdin string
		flags       []string
	}{
		{"-p", "", []string{"-p", message, "--system", system}},
		{"files", "", []string{"-f", writeFile(t, "message", message+"\r\n"), "--system", "@" + writeFile(t, "system", system+"\n")}},
		{"stdin", message + "\n", []string{"-", "--system", system}},
		{"piped without a word", message, []string{"--system", system}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := mustCall(t, c.stdin, slices.Concat(base, c.flags, []string{"--json"})...)
			r := parseRun(t, o)
			if *r.Prompt != ref.Text || !slices.Equal(r.PromptIDs, ref.IDs) || !slices.Equal(r.NewIDs, ref.DecodeIDs) || r.Text != ref.DecodeText || *r.Content != ref.DecodeText || *r.Reasoning != "" {
				t.Errorf("got %s\nwant prompt %q, ids %v, new ids %v, text %q", o.stdout, ref.Text, ref.IDs, ref.DecodeIDs, ref.DecodeText)
			}
			checkFigures(t, o.stderr, r)
		})
	}
	if o := mustCall(t, "", append(base, "-p", message, "--system", system)...); o.stdout != ref.DecodeText {
		t.Errorf("streamed %q, want %q", o.stdout, ref.DecodeText)
	}
}

// With the demo model, which is no chat model, it works mechanically.
func TestChatOfTheDemo(t *testing.T) {
	r := parseRun(t, mustCall(t, "", "run", "--chat", "-p", "hello", "-n", "5", "--json"))
	if *r.Prompt != "<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n" || r.PromptIDs[0] != 4094 || len(r.NewIDs) != 5 || *r.Content != r.Text {
		t.Errorf("got %+v", r)
	}
}

func TestChatTemplateArg(t *testing.T) {
	model, _ := loadE2E(t)
	for _, c := range []struct{ arg, want string }{
		{"enable_thinking=false", "<think>\n\n</think>\n\n"}, {"enable_thinking=true", "assistant\n"}, {"enable_thinking=no", "assistant\n"},
	} {
		r := parseRun(t, mustCall(t, "", "run", "--model", model, "--chat", "-p", "x", "-n", "1", "--json", "--template-arg", c.arg))
		if !strings.HasSuffix(*r.Prompt, c.want) {
			t.Errorf("%s: the prompt is %q, want it to end with %q", c.arg, *r.Prompt, c.want)
		}
	}
}

func TestChatWithoutTemplate(t *testing.T) {
	model, _ := loadE2E(t)
	dir := withTemplate(t, model, "")
	o := call(t, "", "run", "--chat", "-p", "x", "--model", dir)
	for _, want := range []string{"this model cannot chat", dir, "as chat_template.jinja"} {
		if o.code != exitFailed || !strings.Contains(o.stderr, want) {
			t.Errorf("exit %d, stderr %q, want %d and %q", o.code, o.stderr, exitFailed, want)
		}
	}
	checkErrorLine(t, o)
	o = call(t, "", "run", "--chat", "-p", "x", "--model", withTemplate(t, model, "{{ raise_exception('only on Sundays') }}"))
	if o.code != exitFailed || !strings.Contains(o.stderr, "the model's chat template refuses the conversation: only on Sundays") {
		t.Errorf("a template that refuses: exit %d, stderr %q", o.code, o.stderr)
	}
}

// The turn ends with the special token that the template puts after the assistant's words, though
// the model's own files name another one. A bias makes the model choose it.
func TestChatEndsTheTurn(t *testing.T) {
	model, _ := loadE2E(t)
	template := strings.ReplaceAll(chatML, "<|im_end|>", "<|im_start|>")
	args := []string{"run", "--model", withTemplate(t, model, template), "-p", "x", "-n", "3", "--json", "--logit-bias", "504=100"}
	if r := parseRun(t, mustCall(t, "", append(args, "--chat")...)); r.StopReason != "eos" || len(r.NewIDs) != 0 {
		t.Errorf("new ids %v, reason %q, want none and eos", r.NewIDs, r.StopReason)
	}
	if r := parseRun(t, mustCall(t, "", args...)); r.StopReason != "length" || !slices.Equal(r.NewIDs, []int32{504, 504, 504}) {
		t.Errorf("without --chat: new ids %v, reason %q, want three of 504 and length", r.NewIDs, r.StopReason)
	}
}

// Reasoning that the prompt opens and the model closes. A bias makes </think> likely, the seed lets
// something come before it.
func TestChatReasoning(t *testing.T) {
	model, _ := loadE2E(t)
	args := []string{"run", "--model", withTemplate(t, model, opening), "--chat", "-p", "x", "-n", "24", "--temperature", "1", "--seed", "3", "--logit-bias", "510=5"}
	r := parseRun(t, mustCall(t, "", append(args, "--json")...))
	thought, said := chat.SplitReasoning("<think>", r.Text)
	if *r.Reasoning != thought || *r.Content != said || thought == "" || said == "" || !strings.HasPrefix(r.Text, thought) {
		t.Fatalf("text %q: reasoning %q, content %q; want %q and %q, neither empty", r.Text, *r.Reasoning, *r.Content, thought, said)
	}
	// Into a pipe the text goes as it is.
	if o := mustCall(t, "", args...); o.stdout != r.Text {
		t.Errorf("piped %q, want %q", o.stdout, r.Text)
	}
	// On a terminal the reasoning is dim, the marks are gone.
	e := testEnv()
	e.Terminal = func(stream any) bool { _, isOut := stream.(*bytes.Buffer); return isOut }
	want := converse.DimOn + converse.Visible(thought) + converse.DimOff + "\n\n" + converse.Visible(said)
	if o := callWith(t.Context(), e, "", args...); o.stdout != want+"\n" && o.stdout != want {
		t.Errorf("on a terminal %q, want %q", o.stdout, want)
	}
	e.NoColour = true
	want = "<think>\n" + converse.Visible(thought) + "\n</think>\n\n" + converse.Visible(said)
	if o := callWith(t.Context(), e, "", args...); o.stdout != want+"\n" && o.stdout != want {
		t.Errorf("on a terminal without colours %q, want %q", o.stdout, want)
	}
}

func TestRunLogProbs(t *testing.T) {
	model, ref := loadE2E(t)
	args := []string{"run", "--model", model, "-p", ref.Text, "-n", "24", "--json", "--activations", "f32"}
	r := parseRun(t, mustCall(t, "", append(args, "--logprobs", "3")...))
	if len(r.LogProbs) != 24 {
		t.Fatalf("%d log-probabilities of 24 tokens", len(r.LogProbs))
	}
	var text []byte
	for i, p := range r.LogProbs {
		// The text is greedy: what was chosen is the most likely.
		if p.ID != ref.DecodeIDs[i] || len(p.Top) != 3 || p.Top[0].ID != p.ID || p.Top[0].LogProb != p.LogProb || p.Top[1].LogProb > p.LogProb || p.LogProb >= 0 {
			t.Errorf("token %d: %+v, want %d, most likely of three", i, p, ref.DecodeIDs[i])
		}
		for _, b := range p.Bytes {
			text = append(text, byte(b))
		}
	}
	if got := strings.ToValidUTF8(string(text), "\uFFFD"); got != ref.DecodeText {
		t.Errorf("the bytes make %q, want %q", got, ref.DecodeText)
	}
	if r := parseRun(t, mustCall(t, "", append(args, "--logprobs", "0")...)); len(r.LogProbs) != 24 || len(r.LogProbs[0].Top) != 0 || r.LogProbs[0].Top == nil {
		t.Errorf("--logprobs 0 gives %+v, want the chosen tokens alone", r.LogProbs)
	}
	if r := parseRun(t, mustCall(t, "", args...)); r.LogProbs != nil {
		t.Errorf("without the flag: %+v", r.LogProbs)
	}
}

// The sampling flags reach the sampler.
func TestRunPenaltiesAndBias(t *testing.T) {
	model, ref := loadE2E(t)
	draw := func(flags ...string) runResult {
		return parseRun(t, mustCall(t, "", append([]string{"run", "--model", model, "-p", ref.Text, "-n", "16", "--json", "--activations", "f32"}, flags...)...))
	}
	if r := draw("--logit-bias", "41=-100", "--logit-bias", "300=-100"); r.NewIDs[0] == ref.DecodeIDs[0] || slices.Contains(r.NewIDs, 41) {
		t.Errorf("without token 41: %v", r.NewIDs)
	}
	same := draw("--logit-bias", "7=60")
	for i, id := range same.NewIDs {
		if id != 7 {
			t.Fatalf("biased to token 7: %v at %d", same.NewIDs, i)
		}
	}
	if r := draw("--logit-bias", "7=4", "--frequency-penalty", "2", "--presence-penalty", "2"); slices.Equal(r.NewIDs, same.NewIDs) {
		t.Errorf("penalties change nothing: %v", r.NewIDs)
	}
	if a, b := draw("--presence-penalty", "2"), draw("--frequency-penalty", "-2"); slices.Equal(a.NewIDs, b.NewIDs) && slices.Equal(a.NewIDs, ref.DecodeIDs[:16]) {
		t.Errorf("penalties change nothing: %v", a.NewIDs)
	}
	if p := draw("--logit-bias", "7=100", "--logprobs", "1").LogProbs[0]; p.ID != 7 || p.Top[0].ID != ref.DecodeIDs[0] || !(p.LogProb < p.Top[0].LogProb) || math.IsInf(p.LogProb, 0) {
		t.Errorf("log-probabilities beside a bias %+v, want the model's own", p)
	}
}

// The template is told of tools, and what cannot be used is said by name.
func TestChatTools(t *testing.T) {
	model, _ := loadE2E(t)
	dir := withTemplate(t, model, "{% for t in tools %}{{ t | tojson }}{% endfor %}"+chatML)
	file := writeFile(t, "tools", `[{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]`)
	r := parseRun(t, mustCall(t, "", "run", "--model", dir, "--chat", "-p", "x", "-n", "2", "--json", "--tools", file))
	if !strings.HasPrefix(*r.Prompt, `{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}<|im_start|>user`) || r.ToolCalls != nil {
		t.Errorf("prompt %q, calls %v", *r.Prompt, r.ToolCalls)
	}
	calling := withTemplate(t, model, "{% for t in tools %}{{ t | tojson }}{% endfor %}<tool_call>"+chatML)
	narrow := writeFile(t, "narrow", `[{"name": "weather", "parameters": {"properties": {"n": {"enum": [1, 2]}}, "required": ["n"], "additionalProperties": false}}]`)
	for _, choice := range []string{"required", "weather", "none", "auto"} {
		r := parseRun(t, mustCall(t, "", "run", "--model", calling, "--chat", "-p", "x", "-n", "90", "--json", "--tools", narrow, "--tool-choice", choice))
		if must := choice == "required" || choice == "weather"; must != (len(r.ToolCalls) > 0) {
			t.Errorf("%s: calls %v", choice, r.ToolCalls)
		}
	}
	silent := withTemplate(t, model, chatML)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-p", "x", "--tools", file}, exitUsage, "--tools does nothing without --chat"},
		{[]string{"--chat", "-p", "x", "--tools", file + "x"}, exitFailed, "the tools cannot be read"},
		{[]string{"--chat", "-p", "x", "--tools", writeFile(t, "bad", `[{"name": 1}]`)}, exitFailed, "tool 0: name is 1, not a string"},
		{[]string{"--chat", "-p", "x", "--tools", file, "--model", silent}, exitFailed, "does not tell the model of tools"},
		{[]string{"-p", "x", "--tool-choice", "none"}, exitUsage, "--tool-choice does nothing without --chat"},
		{[]string{"--chat", "-p", "x", "--tool-choice", "none"}, exitUsage, "--tool-choice does nothing without --tools"},
		{[]string{"--chat", "-p", "x", "--tools", file, "--tool-choice", "x"}, exitUsage, `--tool-choice "x" is not auto, none, required or one of weather`},
		{[]string{"--chat", "-p", "x", "--tools", writeFile(t, "odd", `[{"name": "odd", "parameters": {"properties": {"x": {"not": {"$dynamicRef": "#y"}, "type": "number"}}}}]`), "--tool-choice", "required"}, exitFailed,
			"--tool-choice: the parameter x of the function odd:"},
	} {
		o := call(t, "", append([]string{"run", "--model", dir}, c.args...)...)
		if slices.Contains(c.args, "--model") {
			o = call(t, "", append([]string{"run"}, c.args...)...)
		}
		if o.code != c.code || !strings.Contains(o.stderr, c.want) {
			t.Errorf("%q: exit %d, stderr %q; want %d and %q", c.args, o.code, o.stderr, c.code, c.want)
		}
		checkErrorLine(t, o)
	}
}
