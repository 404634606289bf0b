package server

import (
	"encoding/json"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
)

// readConstraint reads what bounds the text: a format, or a grammar of one of the extensions.
func readConstraint(o *object, r *moeflux.Request) {
	set := func(name string, c *moeflux.Constraint) {
		if r.Constraint != nil {
			o.fail(name, "%s: only one thing may bound the text", name)
			return
		}
		if err := c.Validate(); err != nil {
			o.fail(name, "%s: %v", name, err)
			return
		}
		r.Constraint = c
	}
	if f := o.object("response_format"); f != nil {
		if c := readFormat(f); c != nil {
			set("response_format", c)
		}
	}
	if text, ok := o.text("grammar"); ok && text != "" {
		set("grammar", moeflux.GBNF(text))
	}
	if text, ok := o.text("guided_regex"); ok && text != "" {
		set("guided_regex", moeflux.Regexp(text))
	}
	if o.has("guided_json") {
		set("guided_json", moeflux.JSONSchema(o.fields["guided_json"]))
	}
	if o.has("guided_choice") {
		var texts []string
		if o.value("guided_choice", "a list of strings", &texts) {
			set("guided_choice", moeflux.Choices(texts...))
		}
	}
}

// bound has a format, an object of the request, bound the text.
func bound(format *object, c *call, by *moeflux.Constraint) {
	name := strings.TrimSuffix(format.path, ".")
	if err := by.Validate(); err != nil {
		format.fail("schema", "%s: %v", name, err)
		return
	}
	c.request.Constraint = by
}

// readFormat reads a response_format; nil means any text.
func readFormat(f *object) *moeflux.Constraint {
	switch f.word("type", "text", "json_object", "json_schema") {
	case "json_object":
		return moeflux.JSONSchema([]byte(`{"type":"object"}`))
	case "json_schema":
		inner := f.object("json_schema")
		if inner == nil {
			f.fail("json_schema", "%sjson_schema is missing", f.path)
			return nil
		}
		if !inner.has("schema") {
			inner.fail("schema", "%sschema is missing", inner.path)
			return nil
		}
		return moeflux.JSONSchema(inner.fields["schema"])
	case "text":
	default:
		if !f.has("type") {
			f.fail("type", "%stype is missing", f.path)
		}
	}
	return nil
}

// templateArgs are the variables of chat templates that clients may set. All others are refused:
// some belong to the engine.
var templateArgs = map[string]bool{
	"enable_thinking": true, "thinking": true, "preserve_thinking": true, "clear_thinking": true, "thinking_budget": true,
	"reasoning_effort": true, "model_identity": true, "date_string": true, "add_vision_id": true,
}

// readTemplateArgs reads chat_template_kwargs: known names with scalars.
func readTemplateArgs(o *object, r *moeflux.Request) {
	args := o.object("chat_template_kwargs")
	if args == nil {
		return
	}
	for name, raw := range args.fields {
		if !templateArgs[name] {
			args.note(unsupported(args.path+name, "%s%s is not a variable that may be set", args.path, name))
			return
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			continue // the body was valid JSON
		}
		switch v.(type) {
		case map[string]any, []any:
			args.fail(name, "%s%s must be a text, a number, true or false", args.path, name)
			return
		}
		setTemplateArg(r, name, v)
	}
}

func setTemplateArg(r *moeflux.Request, name string, v any) {
	if r.TemplateArgs == nil {
		r.TemplateArgs = make(map[string]any)
	}
	r.TemplateArgs[name] = v
}

// settleFormat decides between a format and tools. A schema bounds an answer unless it calls; a
// call that has to come leaves the format nothing to say. Other constraints know nothing of calls.
func settleFormat(o *object, c *call) {
	r := &c.request
	switch {
	case r.Constraint == nil || len(r.Tools) == 0 || r.ToolChoice.None:
	case r.ToolChoice != moeflux.ToolChoice{}:
		r.Constraint = nil
	case r.Constraint.Schema() == nil:
		o.fail("tools", "tools with a grammar of one's own are not supported: a call would break it")
	}
}

// readEffort reads how much the model is to think, for templates that ask.
func readEffort(o *object, name string, r *moeflux.Request) string {
	effort := o.word(name, "none", "minimal", "low", "medium", "high", "xhigh")
	if effort != "" {
		setTemplateArg(r, "reasoning_effort", effort)
	}
	if effort == "none" {
		setTemplateArg(r, "enable_thinking", false)
	}
	return effort
}
