package constraint

import "slices"

var keywords map[string]readFunc

// Those without a function are read together with others.
func init() {
	keywords = map[string]readFunc{
		"$ref": readRef, "type": readType, "enum": readEnum, "const": readConst,
		"allOf": readAllOf, "anyOf": readAnyOf, "oneOf": readOneOf, "not": readNot, "if": readIf,
		"dependentRequired": readDependent, "dependentSchemas": readDependent, "dependencies": readDependent,
		"unevaluatedProperties": readUnevaluatedProperties, "unevaluatedItems": readUnevaluatedItems,
		"multipleOf": readMultipleOf, "pattern": readPattern, "format": readFormat,
		"minimum":          readBound(func(sign int) bool { return sign >= 0 }),
		"maximum":          readBound(func(sign int) bool { return sign <= 0 }),
		"exclusiveMinimum": readBound(func(sign int) bool { return sign > 0 }),
		"exclusiveMaximum": readBound(func(sign int) bool { return sign < 0 }),
		"minLength":        readCount(func(r *reader, n int) { r.string.least = n }),
		"maxLength":        readCount(func(r *reader, n int) { r.string.most = n }),
		"prefixItems":      nil, "items": nil, "additionalItems": nil, "minItems": nil, "maxItems": nil, "uniqueItems": nil,
		"properties": nil, "additionalProperties": nil, "required": nil, "minProperties": nil, "maxProperties": nil,
		"patternProperties": nil, "propertyNames": nil,
	}
}

var typeNames = []string{"null", "boolean", "number", "integer", "string", "array", "object"}

func readType(r *reader, v *value, _ keyword) error {
	r.types = []string{}
	list := []*value{v}
	if v.kind == kindArray {
		list = v.items
	}
	for _, t := range list {
		if err := t.is(kindString); err != nil {
			return err
		}
		if !slices.Contains(typeNames, t.text) {
			return t.wrong("%q is not a type", t.text)
		}
		r.types = append(r.types, t.text)
	}
	return nil
}

func readRef(r *reader, _ *value, k keyword) error {
	to, err := r.c.resolve(k)
	if err != nil {
		return err
	}
	t, err := r.sub(to)
	if err != nil {
		return err
	}
	return r.add(t)
}

// add says that the value must be in a term, too.
func (r *reader) add(t *term) error {
	v, err := r.c.of(t)
	r.also = append(r.also, v)
	return err
}

func readConst(r *reader, v *value, _ keyword) error { return r.add(r.c.constant(v)) }

func readEnum(r *reader, v *value, _ keyword) error {
	if err := v.is(kindArray); err != nil {
		return err
	}
	set := noValues()
	var texts []string
	for _, item := range v.items {
		if item.kind == kindString {
			texts = append(texts, item.text)
			continue
		}
		one, err := r.c.of(r.c.constant(item))
		if err == nil {
			err = r.c.include(set, one)
		}
		if err != nil {
			return err
		}
	}
	if len(texts) > 0 {
		set.strings = []stringShape{{dfa: words(texts), most: unbounded}}
	}
	r.also = append(r.also, set)
	return nil
}

func readAllOf(r *reader, v *value, _ keyword) error {
	terms, err := r.list(v)
	for _, t := range terms {
		if err := r.add(t); err != nil {
			return err
		}
	}
	return err
}

func readAnyOf(r *reader, v *value, _ keyword) error {
	terms, err := r.list(v)
	if err != nil {
		return err
	}
	set, err := r.c.union(terms)
	r.also = append(r.also, set)
	return err
}

// union returns the values that one of some terms has.
func (c *schemaCompiler) union(terms []*term) (*values, error) {
	set := noValues()
	for _, t := range terms {
		v, err := c.of(t)
		if err == nil {
			err = c.include(set, v)
		}
		if err != nil {
			return nil, err
		}
	}
	return set, nil
}

func readBound(accept func(sign int) bool) readFunc {
	return func(r *reader, v *value, _ keyword) error {
		if err := v.is(kindNumber); err != nil {
			return err
		}
		b, err := parseDecimal(v)
		if err != nil {
			return err
		}
		d, err := r.c.spent(compareDFA(b, accept))
		if err == nil {
			r.numbers, err = r.c.and(r.numbers, d)
		}
		return err
	}
}

func readCount(set func(r *reader, n int)) readFunc {
	return func(r *reader, v *value, _ keyword) error {
		n, err := v.count()
		set(r, n)
		return err
	}
}

// number returns the value of a keyword that counts, or what stands for it.
func (r *reader) number(name string, without int) (int, error) {
	if v := r.at.member[name]; v != nil {
		return v.count()
	}
	return without, nil
}

// items reads the keywords of arrays.
func (r *reader) items() (*arrayShape, error) {
	a := r.c.anyArray()
	var err error
	if a.least, err = r.number("minItems", 0); err != nil {
		return nil, err
	}
	if a.most, err = r.number("maxItems", unbounded); err != nil {
		return nil, err
	}
	if v := r.at.member["uniqueItems"]; v != nil && v.kind == kindTrue {
		a.unique = keyword{r.at, "uniqueItems"}
	}
	prefix, rest := r.at.member["prefixItems"], r.at.member["items"]
	if r.c.draft == draft7 {
		if prefix = nil; rest != nil && rest.kind == kindArray {
			prefix, rest = rest, r.at.member["additionalItems"]
		}
	}
	if prefix != nil && (r.c.draft == draft2020 || len(prefix.items) > 0) {
		if a.prefix, err = r.list(prefix); err != nil {
			return nil, err
		}
	}
	if rest != nil {
		if a.rest, err = r.sub(rest); err != nil {
			return nil, err
		}
	}
	return a.short(r.c), nil
}
