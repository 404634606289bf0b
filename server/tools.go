package server

import (
	"encoding/json"
	"fmt"
	"slices"

	moeflux "github.com/moeflux/moeflux-actor"
)

// readTools reads functions that the model may call. Tools of other types are left out: agents send
// some that only their own service has.
func readTools(o *object, c *call) {
	for i, raw := range o.list("tools", maxTools) {
		tool := o.element("tools", i, raw)
		if tool == nil {
			return
		}
		if kind, _ := tool.text("type"); kind != "function" {
			continue
		}
		t := new(moeflux.Tool)
		if err := json.Unmarshal(raw, t); err != nil {
			o.fail(fmt.Sprintf("tools[%d]", i), "tools[%d]: %v", i, err)
			return
		}
		c.request.Tools = append(c.request.Tools, t)
	}
	if many, given := o.boolean("parallel_tool_calls"); given && !many {
		c.oneCall = true
	}
	readToolChoice(o, c)
}

// readNamedTools reads tools whose name and schema, under its name here, are fields of their own.
// Those that are not wanted are left out.
func readNamedTools(o *object, c *call, schemaName string, wanted func(*object) bool) {
	for i, raw := range o.list("tools", maxTools) {
		t := o.element("tools", i, raw)
		if t == nil {
			return
		}
		if !wanted(t) {
			continue
		}
		name, _ := t.text("name")
		description, _ := t.text("description")
		var schema any
		if t.has(schemaName) {
			schema = t.fields[schemaName]
		}
		tool, err := moeflux.NewTool(name, description, schema)
		if err != nil {
			o.fail(fmt.Sprintf("tools[%d]", i), "tools[%d]: %v", i, err)
			return
		}
		c.request.Tools = append(c.request.Tools, tool)
	}
}

// readToolChoice reads tool_choice in the forms of OpenAI's APIs. It comes after the tools.
func readToolChoice(o *object, c *call) {
	if !o.has("tool_choice") {
		return
	}
	var word string
	if json.Unmarshal(o.fields["tool_choice"], &word) == nil {
		if !chooseMode(c, word) {
			o.fail("tool_choice", "tool_choice must be auto, none, required or a function")
		}
	} else if f := o.object("tool_choice"); f != nil {
		switch f.word("type", "function", "allowed_tools") {
		case "function":
			chooseNamed(f, c)
		case "allowed_tools":
			chooseAllowed(f, c)
		default:
			f.fail("type", "%stype must be function or allowed_tools", f.path)
		}
	}
	choice := &c.request.ToolChoice
	if (choice.Required || choice.Name != "") && len(c.request.Tools) == 0 {
		o.fail("tool_choice", "tool_choice: there are no tools to choose from")
	}
}

// chooseMode takes a choice that is one word, and reports whether there is such a word.
func chooseMode(c *call, word string) bool {
	choice := &c.request.ToolChoice
	switch word {
	case "auto":
	case "none":
		choice.None = len(c.request.Tools) > 0
	case "required":
		choice.Required = true
	default:
		return false
	}
	return true
}

// toolNameOf returns the name of a function, which chat completions have in an object of its own.
func toolNameOf(f *object) string {
	named := f.object("function")
	if named == nil {
		named = f // the form of Responses
	}
	name, _ := named.text("name")
	if name == "" {
		named.fail("name", "%sname is missing", named.path)
	}
	return name
}

func chooseNamed(f *object, c *call) { c.request.ToolChoice.Name = toolNameOf(f) }

// chooseAllowed leaves the tools that are allowed, and no others: the model does not hear of them.
func chooseAllowed(f *object, c *call) {
	inner := f.object("allowed_tools")
	if inner == nil {
		inner = f // the form of Responses
	}
	var allowed []string
	for i, raw := range inner.list("tools", maxTools) {
		if t := inner.element("tools", i, raw); t != nil {
			allowed = append(allowed, toolNameOf(t))
		}
	}
	for _, name := range allowed {
		if !slices.ContainsFunc(c.request.Tools, func(t *moeflux.Tool) bool { return t.Name() == name }) {
			inner.fail("tools", "%stools: there is no tool %q", inner.path, name)
			return
		}
	}
	c.request.Tools = slices.DeleteFunc(c.request.Tools, func(t *moeflux.Tool) bool { return !slices.Contains(allowed, t.Name()) })
	mode := inner.word("mode", "auto", "required")
	if mode == "" {
		inner.fail("mode", "%smode must be auto or required", inner.path)
		return
	}
	chooseMode(c, mode)
}
