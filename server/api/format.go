package api

import (
	"encoding/json"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/body"
	"github.com/moeflux/moeflux-actor/server/fault"
)

// ReadConstraint reads what bounds the text: a format, or a grammar of one of the extensions.
func ReadConstraint(o *body.Object, r *moeflux.Request) {
	set := func(name string, c *moeflux.Constraint) {
		if r.Constraint != nil {
			o.Fail(name, "%s: only one thing may bound the text", name)
			return
		}
		if err := c.Validate(); err != nil {
			o.Fail(name, "%s: %v", name, err)
			return
		}
		r.Constraint = c
	}
	if f := o.Object("response_format"); f != nil {
		if c := ReadFormat(f); c != nil {
			set("response_format", c)
		}
	}
	if text, ok := o.Text("grammar"); ok && text != "" {
		set("grammar", moeflux.GBNF(text))
	}
	if text, ok := o.Text("guided_regex"); ok && text != "" {
		set("guided_regex", moeflux.Regexp(text))
	}
	if o.Has("guided_json") {
		set("guided_json", moeflux.JSONSchema(o.Fields["guided_json"]))
	}
	if o.Has("guided_choice") {
		var texts []string
		if o.Value("guided_choice", "a list of strings", &texts) {
			set("guided_choice", moeflux.Choices(texts...))
		}
	}
}

// Bind has a format, an object of the request, bound the text.
func Bind(format *body.Object, c *Call, by *moeflux.Constraint) {
	name := strings.TrimSuffix(format.Path, ".")
	if err := by.Validate(); err != nil {
		format.Fail("schema", "%s: %v", name, err)
		return
	}
	c.Request.Constraint = by
}

// ReadFormat reads a response_format; nil means any text.
func ReadFormat(f *body.Object) *moeflux.Constraint {
	switch f.Word("type", "text", "json_object", "json_schema") {
	case "json_object":
		return moeflux.JSONSchema([]byte(`{"type":"object"}`))
	case "json_schema":
		inner := f.Object("json_schema")
		if inner == nil {
			f.Fail("json_schema", "%sjson_schema is missing", f.Path)
			return nil
		}
		if !inner.Has("schema") {
			inner.Fail("schema", "%sschema is missing", inner.Path)
			return nil
		}
		return moeflux.JSONSchema(inner.Fields["schema"])
	case "text":
	default:
		if !f.Has("type") {
			f.Fail("type", "%stype is missing", f.Path)
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

// ReadTemplateArgs reads chat_template_kwargs: known names with scalars.
func ReadTemplateArgs(o *body.Object, r *moeflux.Request) {
	args := o.Object("chat_template_kwargs")
	if args == nil {
		return
	}
	for name, raw := range args.Fields {
		if !templateArgs[name] {
			args.Note(fault.Unsupported(args.Path+name, "%s%s is not a variable that may be set", args.Path, name))
			return
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			continue // the body was valid JSON
		}
		switch v.(type) {
		case map[string]any, []any:
			args.Fail(name, "%s%s must be a text, a number, true or false", args.Path, name)
			return
		}
		SetTemplateArg(r, name, v)
	}
}

// SetTemplateArg sets a variable of the chat template.
func SetTemplateArg(r *moeflux.Request, name string, v any) {
	if r.TemplateArgs == nil {
		r.TemplateArgs = make(map[string]any)
	}
	r.TemplateArgs[name] = v
}

// SettleFormat decides between a format and tools. A schema bounds an answer unless it calls; a
// call that has to come leaves the format nothing to say. Other constraints know nothing of calls.
func SettleFormat(o *body.Object, c *Call) {
	r := &c.Request
	switch {
	case r.Constraint == nil || len(r.Tools) == 0 || r.ToolChoice.None:
	case r.ToolChoice != moeflux.ToolChoice{}:
		r.Constraint = nil
	case r.Constraint.Schema() == nil:
		o.Fail("tools", "tools with a grammar of one's own are not supported: a call would break it")
	}
}

// ReadEffort reads how much the model is to think, for templates that ask.
func ReadEffort(o *body.Object, name string, r *moeflux.Request) string {
	effort := o.Word(name, "none", "minimal", "low", "medium", "high", "xhigh")
	if effort != "" {
		SetTemplateArg(r, "reasoning_effort", effort)
	}
	if effort == "none" {
		SetTemplateArg(r, "enable_thinking", false)
	}
	return effort
}
