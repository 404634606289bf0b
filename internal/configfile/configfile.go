// Package configfile reads files of settings in YAML: names with a value each, or a list of values.
// It knows where each stands, and leaves to its caller what they mean.
package configfile

import (
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Setting is a name with its values, as texts: one, or those of a list.
type Setting struct {
	Name   string
	Values []string
	List   bool
	Line   int
}

// maxBytes bounds a file. No sensible one comes near it.
const maxBytes = 1 << 20

// Read reads the settings of a file, in their order. The error is a *Error where a line is wrong.
func Read(r io.Reader) ([]Setting, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxBytes {
		return nil, fmt.Errorf("the file is longer than %d bytes", maxBytes)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, err
	}
	if len(root.Content) == 0 {
		return nil, nil // it is empty, or has comments alone
	}
	top := root.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, &Error{top.Line, "there must be lines of NAME: VALUE"}
	}
	var all []Setting
	lines := make(map[string]int)
	for i := 0; i+1 < len(top.Content); i += 2 {
		s, err := setting(top.Content[i], top.Content[i+1])
		if err != nil {
			return nil, err
		}
		if first := lines[s.Name]; first > 0 {
			return nil, &Error{s.Line, fmt.Sprintf("%s is there twice, in line %d as well", s.Name, first)}
		}
		lines[s.Name] = s.Line
		all = append(all, s)
	}
	return all, nil
}

func setting(name, value *yaml.Node) (s Setting, err error) {
	s = Setting{Name: name.Value, Line: name.Line}
	if name.Kind != yaml.ScalarNode {
		return s, &Error{name.Line, "a name must be a text"}
	}
	switch value.Kind {
	case yaml.ScalarNode:
		if value.Tag == "!!null" {
			return s, &Error{name.Line, s.Name + " has no value; leave the line out for the default"}
		}
		s.Values = []string{value.Value}
		return s, nil
	case yaml.SequenceNode:
		s.List = true
		for _, v := range value.Content {
			if v.Kind != yaml.ScalarNode || v.Tag == "!!null" {
				return s, &Error{v.Line, s.Name + " must be a list of plain values"}
			}
			s.Values = append(s.Values, v.Value)
		}
		return s, nil
	}
	return s, &Error{name.Line, s.Name + " must be a value, or a list of values"}
}

// Write writes a setting as Read reads it.
func (s *Setting) Write(w io.Writer) error {
	var value any = s.Values
	if !s.List {
		if len(s.Values) != 1 {
			return errors.New("configfile: a setting that is not a list has one value")
		}
		value = s.Values[0]
	}
	text, err := yaml.Marshal(map[string]any{s.Name: value})
	if err != nil {
		return err
	}
	_, err = w.Write(text)
	return err
}

// Error is a mistake in a line of a file.
type Error struct {
	Line int
	What string
}

func (e *Error) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }
