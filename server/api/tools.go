package api

import (
	"encoding/json"
	"fmt"
	"slices"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/body"
)

// ReadTools reads functions that the model may call. Tools of other types are left out: agents send
// some that only their own service has.
func ReadTools(o *body.Object, c *Call) {
	for i, raw := range o.List("tools", MaxTools) {
		tool := o.Element("tools", i, raw)
		if tool == nil {
			return
		}
		if kind, _ := tool.Text("type"); kind != "function" {
			continue
		}
		t := new(moeflux.Tool)
		if err := json.Unmarshal(raw, t); err != nil {
			o.Fail(fmt.Sprintf("tools[%d]", i), "tools[%d]: %v", i, err)
			return
		}
		c.Request.Tools = append(c.Request.Tools, t)
	}
	if many, given := o.Boolean("parallel_tool_calls"); given && !many {
		c.OneCall = true
	}
	ReadToolChoice(o, c)
}

// ReadNamedTools reads tools whose name and schema, under its name here, are fields of their own.
// Those that are not wanted are left out.
func ReadNamedTools(o *body.Object, c *Call, schemaName string, wanted func(*body.Object) bool) {
	for i, raw := range o.List("tools", MaxTools) {
		t := o.Element("tools", i, raw)
		if t == nil {
			return
		}
		if !wanted(t) {
			continue
		}
		name, _ := t.Text("name")
		description, _ := t.Text("description")
		var schema any
		if t.Has(schemaName) {
			schema = t.Fields[schemaName]
		}
		tool, err := moeflux.NewTool(name, description, schema)
		if err != nil {
			o.Fail(fmt.Sprintf("tools[%d]", i), "tools[%d]: %v", i, err)
			return
		}
		c.Request.Tools = append(c.Request.Tools, tool)
	}
}

// ReadToolChoice reads tool_choice in the forms of OpenAI's APIs. It comes after the tools.
func ReadToolChoice(o *body.Object, c *Call) {
	if !o.Has("tool_choice") {
		return
	}
	var word string
	if json.Unmarshal(o.Fields["tool_choice"], &word) == nil {
		if !chooseMode(c, word) {
			o.Fail("tool_choice", "tool_choice must be auto, none, required or a function")
		}
	} else if f := o.Object("tool_choice"); f != nil {
		switch f.Word("type", "function", "allowed_tools") {
		case "function":
			chooseNamed(f, c)
		case "allowed_tools":
			chooseAllowed(f, c)
		default:
			f.Fail("type", "%stype must be function or allowed_tools", f.Path)
		}
	}
	choice := &c.Request.ToolChoice
	if (choice.Required || choice.Name != "") && len(c.Request.Tools) == 0 {
		o.Fail("tool_choice", "tool_choice: there are no tools to choose from")
	}
}

// chooseMode takes a choice that is one word, and reports whether there is such a word.
func chooseMode(c *Call, word string) bool {
	choice := &c.Request.ToolChoice
	switch word {
	case "auto":
	case "none":
		choice.None = len(c.Request.Tools) > 0
	case "required":
		choice.Required = true
	default:
		return false
	}
	return true
}

// toolNameOf returns the name of a function, which chat completions have in an object of its own.
func toolNameOf(f *body.Object) string {
	named := f.Object("function")
	if named == nil {
		named = f // the form of Responses
	}
	name, _ := named.Text("name")
	if name == "" {
		named.Fail("name", "%sname is missing", named.Path)
	}
	return name
}

func chooseNamed(f *body.Object, c *Call) { c.Request.ToolChoice.Name = toolNameOf(f) }

// chooseAllowed leaves the tools that are allowed, and no others: the model does not hear of them.
func chooseAllowed(f *body.Object, c *Call) {
	inner := f.Object("allowed_tools")
	if inner == nil {
		inner = f // the form of Responses
	}
	var allowed []string
	for i, raw := range inner.List("tools", MaxTools) {
		if t := inner.Element("tools", i, raw); t != nil {
			allowed = append(allowed, toolNameOf(t))
		}
	}
	for _, name := range allowed {
		if !slices.ContainsFunc(c.Request.Tools, func(t *moeflux.Tool) bool { return t.Name() == name }) {
			inner.Fail("tools", "%stools: there is no tool %q", inner.Path, name)
			return
		}
	}
	c.Request.Tools = slices.DeleteFunc(c.Request.Tools, func(t *moeflux.Tool) bool { return !slices.Contains(allowed, t.Name()) })
	mode := inner.Word("mode", "auto", "required")
	if mode == "" {
		inner.Fail("mode", "%smode must be auto or required", inner.Path)
		return
	}
	chooseMode(c, mode)
}
