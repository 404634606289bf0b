package scripted

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// schema is what an instance is made of; keywords beyond these are left alone.
type schema struct {
	Type       any                `json:"type"`
	Const      json.RawMessage    `json:"const"`
	Enum       []json.RawMessage  `json:"enum"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Items      *schema            `json:"items"`
	MinItems   int                `json:"minItems"`
	AnyOf      []*schema          `json:"anyOf"`
	Minimum    float64            `json:"minimum"`
}

var backquoted = regexp.MustCompile("`([^`]+)`")

// instance returns the smallest JSON that a schema allows, with what the user put in backquotes, or
// else the last word that begins with a capital letter, as its strings.
func instance(raw json.RawMessage, said string) string {
	s := new(schema)
	if len(raw) > 0 {
		if json.Unmarshal(raw, s) != nil {
			s = new(schema) // clients send what no schema is, too
		}
	}
	text := "text"
	if quoted := backquoted.FindStringSubmatch(said); quoted != nil {
		text = quoted[1]
	} else {
		for word := range strings.FieldsSeq(said) {
			if word[0] >= 'A' && word[0] <= 'Z' {
				text = strings.Trim(word, "?!.,")
			}
		}
	}
	out, err := json.Marshal(s.instance(text))
	if err != nil {
		panic(err)
	}
	return string(out)
}

func (s *schema) instance(text string) any {
	switch {
	case s == nil:
		return text
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.AnyOf) > 0:
		return s.AnyOf[0].instance(text)
	}
	kind, _ := s.Type.(string)
	if list, ok := s.Type.([]any); ok && len(list) > 0 {
		kind, _ = list[0].(string)
	}
	switch kind {
	case "string":
		return text
	case "integer", "number":
		return max(s.Minimum, 1)
	case "boolean":
		return true
	case "null":
		return nil
	case "array":
		items := make([]any, max(s.MinItems, 1))
		for i := range items {
			items[i] = s.Items.instance(text)
		}
		return items
	}
	fields := make(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if slices.Contains(s.Required, name) {
			fields[name] = s.Properties[name].instance(text)
		}
	}
	return fields
}
