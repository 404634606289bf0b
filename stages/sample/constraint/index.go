package constraint

import (
	"errors"
	"net/url"
	"slices"
	"strings"
)

// resource is a schema with a name of its own, by which references find it.
type resource struct {
	base    *url.URL
	root    *value
	anchors map[string]*value
}

// draft is a version of the standard.
type draft uint8

const (
	draft2020 draft = iota
	draft7
)

// Keywords whose values are schemas.
var (
	oneSchema   = []string{"additionalProperties", "propertyNames", "items", "additionalItems", "contains", "not", "if", "then", "else", "unevaluatedItems", "unevaluatedProperties", "contentSchema"}
	schemaLists = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	schemaNames = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)

// index finds the schemas with names of their own.
func (c *schemaCompiler) index() error {
	if d, ok := c.root.member["$schema"]; ok {
		if err := c.setDraft(d); err != nil {
			return err
		}
	}
	c.resources = map[string]*resource{}
	c.resourceOf = map[*value]*resource{}
	if err := c.addResource(c.root, &url.URL{}); err != nil {
		return err
	}
	return c.indexSchema(c.root, c.resourceOf[c.root])
}

func (c *schemaCompiler) setDraft(v *value) error {
	if err := v.is(kindString); err != nil {
		return err
	}
	switch name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(v.text, "https://"), "http://"), "#"); name {
	case "json-schema.org/draft/2020-12/schema":
	case "json-schema.org/draft-07/schema":
		c.draft = draft7
	default:
		return keyword{c.root, "$schema"}.unsupported("%q is not draft 2020-12 or 7", v.text)
	}
	return nil
}

// addResource adds a schema under its name, relative to that of the schema around it.
func (c *schemaCompiler) addResource(v *value, base *url.URL) error {
	name := ""
	if id := v.member["$id"]; id != nil {
		if err := id.is(kindString); err != nil {
			return err
		}
		name = id.text
	}
	u, err := base.Parse(name)
	if err != nil {
		return v.wrong("the $id is not a URI: %v", errors.Unwrap(err))
	}
	u.Fragment, u.RawFragment = "", ""
	r := &resource{base: u, root: v, anchors: map[string]*value{}}
	if _, twice := c.resources[u.String()]; twice {
		return v.wrong("two schemas have the $id %q", u)
	}
	c.resources[u.String()] = r
	c.resourceOf[v] = r
	return nil
}

func (c *schemaCompiler) indexSchema(v *value, in *resource) error {
	if v.kind != kindObject {
		return nil
	}
	in, err := c.indexNames(v, in)
	if err != nil {
		return err
	}
	for _, name := range v.names {
		m := v.member[name]
		if err := c.indexBelow(name, m, in); err != nil {
			return err
		}
	}
	return nil
}

// indexNames notes the names that a schema gives itself, and returns the resource it is of.
func (c *schemaCompiler) indexNames(v *value, in *resource) (*resource, error) {
	_, isRef := v.member["$ref"]
	if id := v.member["$id"]; id != nil && id.kind == kindString && v != c.root && !(isRef && c.draft == draft7) {
		if anchor, ok := strings.CutPrefix(id.text, "#"); ok && c.draft == draft7 {
			in.anchors[anchor] = v
		} else {
			if err := c.addResource(v, in.base); err != nil {
				return nil, err
			}
			in = c.resourceOf[v]
		}
	}
	for _, name := range []string{"$anchor", "$dynamicAnchor"} {
		if a := v.member[name]; a != nil && a.kind == kindString && c.draft == draft2020 {
			in.anchors[a.text] = v
		}
	}
	return in, nil
}

func (c *schemaCompiler) indexBelow(name string, m *value, in *resource) error {
	var below []*value
	if slices.Contains(oneSchema, name) {
		below = append(below, m)
	}
	if slices.Contains(schemaLists, name) {
		below = append(below, m.items...)
	}
	if slices.Contains(schemaNames, name) {
		for _, x := range m.names {
			below = append(below, m.member[x])
		}
	}
	for _, s := range below {
		if err := c.indexSchema(s, in); err != nil {
			return err
		}
	}
	return nil
}

// resolve returns the schema that a reference leads to.
func (c *schemaCompiler) resolve(ref keyword) (*value, error) {
	v := ref.at.member[ref.name]
	if err := v.is(kindString); err != nil {
		return nil, err
	}
	in := ref.at
	for c.resourceOf[in] == nil {
		in = in.parent
	}
	u, err := c.resourceOf[in].base.Parse(v.text)
	if err != nil {
		return nil, v.wrong("%q is not a reference", v.text)
	}
	fragment := u.Fragment
	u.Fragment, u.RawFragment = "", ""
	r := c.resources[u.String()]
	if r == nil {
		return nil, ref.unsupported("%q leads out of the schema", v.text)
	}
	to := r.anchors[fragment]
	if fragment == "" || fragment[0] == '/' {
		to = r.root.at(fragment)
	}
	if to == nil {
		return nil, v.wrong("%q leads nowhere", v.text)
	}
	return to, nil
}
