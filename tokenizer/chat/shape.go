package chat

import (
	"strings"

	"github.com/moeflux/moeflux-actor/tokenizer/jinja"
)

// shape is what a template takes. Templates differ: some want the arguments of a call as text,
// others as an object, and what is given otherwise fails, is written twice quoted, or is left out.
// So each template is asked, by rendering small conversations.
type shape struct {
	calls     bool // it writes calls at all
	tools     bool // it tells the model of tools
	objects   bool // arguments must be objects; else they are text, which it writes as it is
	nulls     bool // the content beside calls is null if there is none; else an empty text
	idsAlone  bool // it writes the IDs of calls and not their names
	parts     bool // content may be a list of parts
	developer bool // it knows the role
	thinking  bool // what the assistant thought is called thinking, as gpt-oss has it
}

// What the small conversations hold. The ID has the form that the strictest templates want.
const (
	probeTool  = "moeflux_tool"
	probeName  = "moeflux_function"
	probeID    = "moeflux00"
	probeKey   = "moeflux_key"
	probeValue = "moeflux_value"
	probeText  = `{"` + probeKey + `":"` + probeValue + `"}`
)

// ask finds the shape of a template.
func (t *Template) ask() shape {
	s := shape{developer: strings.Contains(t.Source(), Developer), thinking: strings.Contains(t.Source(), "message.thinking")}
	for _, objects := range []bool{false, true} {
		for _, nulls := range []bool{false, true} {
			text, ok := t.probe(objects, nulls)
			s.tools = s.tools || strings.Contains(text, probeTool)
			if ok && !s.calls {
				s.calls, s.objects, s.nulls = true, objects, nulls
				head, _, _ := strings.Cut(text, probeKey)
				s.idsAlone = strings.Contains(head, probeID) && !strings.Contains(text, probeName)
			}
		}
	}
	part := jinja.NewDict()
	part.Set("type", "text")
	part.Set("text", probeValue)
	text, err := t.Render(jinja.Chat{Messages: jinja.NewList(message(User, jinja.NewList(part))), AddGenerationPrompt: true})
	s.parts = err == nil && strings.Contains(text, probeValue) && !strings.Contains(text, "'text'") && !strings.Contains(text, `"text"`)
	return s
}

// probe renders a call and reports whether its arguments arrive.
func (t *Template) probe(objects, nulls bool) (string, bool) {
	var arguments jinja.Value = probeText
	if objects {
		d := jinja.NewDict()
		d.Set(probeKey, probeValue)
		arguments = d
	}
	var content jinja.Value = ""
	if nulls {
		content = nil
	}
	assistant, result := message(Assistant, content), message(Tool, "?")
	assistant.Set("tool_calls", jinja.NewList(callValue(probeID, probeName, arguments)))
	result.Set("tool_call_id", probeID)
	result.Set("name", probeName)
	text, err := t.Render(jinja.Chat{
		Messages: jinja.NewList(message(User, "?"), assistant, result),
		Tools:    jinja.NewList(probeFunction()), AddGenerationPrompt: true,
	})
	if err != nil {
		return "", false
	}
	if !objects {
		return text, strings.Contains(text, probeText)
	}
	return text, strings.Contains(text, probeKey) && strings.Contains(text, probeValue) && !strings.Contains(text, `\"`+probeKey)
}

// probeFunction is a tool as templates take it.
func probeFunction() *jinja.Dict {
	parameters, function, tool := jinja.NewDict(), jinja.NewDict(), jinja.NewDict()
	parameters.Set("type", "object")
	parameters.Set("properties", jinja.NewDict())
	function.Set("name", probeTool)
	function.Set("description", "?")
	function.Set("parameters", parameters)
	tool.Set("type", "function")
	tool.Set("function", function)
	return tool
}
