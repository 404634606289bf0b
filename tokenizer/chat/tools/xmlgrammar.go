package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/tokenizer/chat"
)

func (f *xmlForm) callRule(g *grammarMaker, function *chat.Function, number string) (string, error) {
	schema, err := parametersOf(function)
	if err != nil {
		return "", err
	}
	var required []string
	if raw := schema["required"]; raw != nil {
		if err := json.Unmarshal(raw, &required); err != nil {
			return "", fmt.Errorf("its required parameters: %w", err)
		}
	}
	names, properties, err := inOrder(schema["properties"])
	if err != nil {
		return "", fmt.Errorf("its properties: %w", err)
	}
	rule := literal(f.call+function.Name()+f.nameEnd) + ` "\n"?`
	for i, name := range names {
		if strings.ContainsAny(name, "<>\"\n") || f.nested && strings.ContainsAny(name, notInTags) {
			return "", fmt.Errorf("the name of its parameter %q has characters that calls cannot have", name)
		}
		own := fmt.Sprintf("value-%s-%d", number, i)
		g.names[own] = "the parameter " + name + " of the function " + function.Name()
		value, err := f.valueRule(g, schema, properties[name], own, f.endOf(name))
		if err != nil {
			return "", fmt.Errorf("its parameter %s: %w", name, err)
		}
		param := literal(f.param + name + f.keyEnd)
		if f.value != "" {
			param += ` "\n"? ` + literal(f.value)
		}
		param += " " + value + ` "\n"?`
		if slices.Contains(required, name) {
			rule += " " + param
		} else {
			rule += " (" + param + ")?"
		}
	}
	for _, name := range required {
		if properties[name] == nil {
			return "", fmt.Errorf("its parameter %s is required, but not among its properties", name)
		}
	}
	return rule + " " + literal(f.callEnd), nil
}

// valueRule returns how a value with the tag that ends it is written.
func (f *xmlForm) valueRule(g *grammarMaker, root map[string]json.RawMessage, raw json.RawMessage, name, tag string) (string, error) {
	begin, end := "", literal(tag)
	if f.lines {
		begin, end = `"\n" `, literal("\n"+tag)
	}
	whole, err := json.Marshal(root)
	if err != nil {
		return "", err
	}
	switch texts, err := enumTexts(raw, tag); {
	case err != nil:
		return "", err
	case texts != nil:
		return begin + "(" + strings.Join(texts, " | ") + ") " + end, nil
	}
	t := schemaTypes(whole, raw, 0)
	if f.nested && (t == 0 || t&(typeArray|typeObject) != 0) {
		return "", errNested
	}
	if t == 0 || t&typeString != 0 {
		markRules(g.define, name, true, tag)
		return begin + name, nil
	}
	if g.schemas[name], err = valueSchema(root, raw); err != nil {
		return "", err
	}
	return begin + name + " " + end, nil
}

// enumTexts returns the literals of a schema that lists its values, nil of another. None may hold
// the tag that ends a value.
func enumTexts(raw json.RawMessage, tag string) (literals []string, err error) {
	var s struct{ Enum, Const json.RawMessage }
	if json.Unmarshal(raw, &s) != nil || s.Enum == nil && s.Const == nil {
		return nil, nil // what is not an object says nothing, or is refused below
	}
	values := []json.RawMessage{s.Const}
	if s.Const == nil {
		if err := json.Unmarshal(s.Enum, &values); err != nil {
			return nil, err
		}
	}
	for _, v := range values {
		text := string(v)
		if json.Unmarshal(v, &text) == nil && strings.Contains(text, tag) {
			return nil, fmt.Errorf("its value %s holds what ends a value", v)
		}
		literals = append(literals, literal(text))
	}
	if len(literals) == 0 {
		return nil, fmt.Errorf("its enum is empty")
	}
	return literals, nil
}

// valueSchema returns the schema of one parameter as one of its own, with what it may refer to.
func valueSchema(root map[string]json.RawMessage, raw json.RawMessage) ([]byte, error) {
	const own = "value of a call"
	defs := map[string]json.RawMessage{}
	if root["$defs"] != nil {
		if err := json.Unmarshal(root["$defs"], &defs); err != nil {
			return nil, err
		}
	}
	defs[own] = raw
	schema := map[string]any{"$defs": defs, "$ref": "#/$defs/" + own}
	if root["definitions"] != nil {
		schema["definitions"] = root["definitions"]
	}
	return json.Marshal(schema)
}

// inOrder reads an object, nil for an empty one, and returns its keys in their order, too.
func inOrder(raw json.RawMessage) (keys []string, values map[string]json.RawMessage, err error) {
	if raw == nil {
		return nil, nil, nil
	}
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if _, err := d.Token(); err != nil {
		return nil, nil, err
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, nil, err
		}
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return nil, nil, err
		}
		if name := key.(string); !slices.Contains(keys, name) {
			keys = append(keys, name)
		}
	}
	return keys, values, nil
}

// answerRule: each call of Qwen3-Coder has a section of its own, those of MiniMax have one.
func (f *xmlForm) answerRule(many bool) string {
	switch {
	case f.section == "":
		return lead + repeated("call", many, `"\n"?`)
	case f.loose:
		return lead + repeated(literal(f.section+"\n")+" call "+literal("\n"+f.sectionEnd), many, `"\n"`)
	}
	return lead + literal(f.section+"\n") + " " + repeated("call", many, `"\n"`) + " " + literal("\n"+f.sectionEnd)
}
