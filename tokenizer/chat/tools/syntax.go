package tools

import (
	"strings"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

// Format names a form of calls.
type Format string

// The forms of calls. Their files show them.
const (
	None     Format = ""         // no calls: all is text
	Hermes   Format = "hermes"   // Hermes 2, Qwen2.5, Qwen3: JSON in <tool_call>
	Coder    Format = "coder"    // Qwen3-Coder, Qwen3.5: <function=NAME> and <parameter=KEY>
	DeepSeek Format = "deepseek" // DeepSeek V3, R1, V3.1: <｜tool▁calls▁begin｜>
	Kimi     Format = "kimi"     // Kimi K2: <|tool_calls_section_begin|>
	GLM      Format = "glm"      // GLM 4.5 to 4.7: <arg_key> and <arg_value>
	MiniMax  Format = "minimax"  // MiniMax M2: <minimax:tool_call>
	MiniMax3 Format = "minimax3" // MiniMax M3: ]<]minimax[>[ before each tag
	Hunyuan  Format = "hunyuan"  // Hy3: <tool_calls:opensource>
	List     Format = "list"     // Hunyuan-A13B: a JSON list in <tool_calls>
	Mistral  Format = "mistral"  // Mistral Small 4: [TOOL_CALLS] and [ARGS]
	Harmony  Format = "harmony"  // gpt-oss: <|channel|>commentary to=functions.NAME
)

// Syntax is how a model marks what is not text.
type Syntax struct {
	Calls     Format
	Reasoning chat.Marks // none: all is content
}

var forms = map[Format]form{
	Hermes: hermesForm{}, Coder: coder, DeepSeek: deepSeek, Kimi: kimi, GLM: glm, MiniMax: miniMax, MiniMax3: miniMax3, Hunyuan: hunyuan,
	List: listForm{}, Mistral: mistralForm{}, Harmony: harmonyForm{},
}

// signs are what templates hold that tell a form, the tellingest first: several hold <tool_call>.
var signs = []struct {
	sign   string
	format Format
}{
	{"<|channel|>", Harmony},
	{"<arg_key>", GLM},
	{"<tool_calls:opensource>", Hunyuan},
	{"[ARGS]", Mistral},
	{miniMaxWord, MiniMax3},
	{"<minimax:tool_call>", MiniMax},
	{"<function=", Coder},
	{"<｜tool▁calls▁begin｜>", DeepSeek},
	{"<|tool_calls_section_begin|>", Kimi},
	{"<tool_call>", Hermes},
	{listCalls, List},
}

// answered are the marks of Hunyuan-A13B, whose templates hold none of them.
var answered = chat.Marks{Begin: chat.Think.Begin, End: chat.Think.End, Answer: "<answer>", AnswerEnd: "</answer>"}

// reasons are marks of reasoning that templates hold.
var reasons = []chat.Marks{chat.Think, {Begin: "[THINK]", End: "[/THINK]"}, {Begin: "<seed:think>", End: "</seed:think>"},
	{Begin: "<think:opensource>", End: "</think:opensource>"}, {Begin: "<mm:think>", End: "</mm:think>"}}

// Detect tells the syntax of a model from the text of its chat template: by the marks that the
// template itself writes around calls and reasoning. A family trains models on several forms, and
// people change templates, so the template is right where both tell something. The family's form
// decides if the template holds no mark, as one does whose calls are texts already. Without marks
// of reasoning <think> is taken: answers without it are not changed.
func Detect(template string, family Format) Syntax {
	s := Syntax{Calls: family, Reasoning: chat.Think}
	for _, sign := range signs {
		if strings.Contains(template, sign.sign) {
			s.Calls = sign.format
			break
		}
	}
	for _, marks := range reasons {
		if strings.Contains(template, marks.Begin) || strings.Contains(template, marks.End) {
			s.Reasoning = marks
			break
		}
	}
	switch {
	case s.Framed():
		s.Reasoning = chat.Marks{}
	case s.Calls == List && s.Reasoning == chat.Think:
		s.Reasoning = answered
	}
	return s
}

// Framed reports whether the form of calls is that of the whole answer, in which marks are special
// tokens and reasoning is a part like others.
func (s Syntax) Framed() bool {
	_, framed := forms[s.Calls].(framing)
	return framed
}
