package jinja_test

import (
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/tokenizer/jinja"
)

const chatML = `{%- for m in messages %}
    {%- if m.role not in ('system', 'user', 'assistant') %}{{ raise_exception('unknown role ' ~ m.role) }}{% endif %}
    {{- '<|im_start|>' + m.role + '\n' + m.content | trim + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

func ExampleChatTemplate_Render() {
	tmpl, err := jinja.Parse("chat_template.jinja", chatML)
	if err != nil {
		fmt.Println(err)
		return
	}
	chat := jinja.ChatTemplate{Template: tmpl, EOS: "<|im_end|>"}
	text, err := chat.Render(jinja.Chat{
		Messages:            jinja.NewList(jinja.Message("user", "Hello! ")),
		AddGenerationPrompt: true,
	})
	fmt.Println(text, err)
	_, err = chat.Render(jinja.Chat{Messages: jinja.NewList(jinja.Message("critic", "no"))})
	var e *jinja.Error
	if errors.As(err, &e) && e.Kind == jinja.KindTemplate {
		fmt.Println("refused:", e.Msg)
	}
	// Output:
	// <|im_start|>user
	// Hello!<|im_end|>
	// <|im_start|>assistant
	//  <nil>
	// refused: unknown role critic
}

func ExampleDecodeJSON() {
	v, err := jinja.DecodeJSON([]byte(`{"tools": [{"name": "f", "arguments": {"y": 1.0, "x": 1}}]}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	tmpl, err := jinja.Parse("tools", "{% for t in tools %}{{ t.name }}: {{ t.arguments | tojson }}{% endfor %}")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(tmpl.Render(v.(*jinja.Dict)))
	// Output:
	// f: {"y": 1.0, "x": 1} <nil>
}

func ExampleParse() {
	_, err := jinja.Parse("broken", "{% if x %}\n{{ x }")
	fmt.Println(err)
	// Output:
	// jinja: broken:2: TemplateSyntaxError: unexpected '}'
}
