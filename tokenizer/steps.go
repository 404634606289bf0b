package tokenizer

import (
	"encoding/json"
	"fmt"

	"golang.org/x/text/unicode/norm"
)

// maxNesting bounds Sequences within Sequences.
const maxNesting = 8

// normalForms are the normalizers that Unicode defines in full.
var normalForms = map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}

// component begins reading one of the components of tokenizer.json; raw is not nil.
func component(key string, raw []byte, depth int) (o *object, kind string) {
	o = newObject(key, raw)
	if depth > maxNesting {
		o.fail("type", "more than %d components within each other", maxNesting)
	}
	if o.err == nil {
		kind = o.text("type")
	}
	return o, kind
}

// items takes the list of a Sequence and calls read for each element.
func (o *object) items(name string, read func(key string, raw []byte) error) error {
	var list []json.RawMessage
	o.into(name, &list)
	if err := o.end(); err != nil {
		return err
	}
	for i, raw := range list {
		if err := read(fmt.Sprintf("%s[%d]", o.key(name), i), raw); err != nil {
			return err
		}
	}
	return nil
}

// unsupported refuses the type of a component.
func (o *object) unsupported(kind string) error {
	o.refuse("type", []byte(fmt.Sprintf("%q", excerpt(kind))))
	return o.err
}

func parseNormalizer(key string, raw []byte, depth int) (normalizer, error) {
	if isNull(raw) {
		return nil, nil
	}
	o, kind := component(key, raw, depth)
	if form, ok := normalForms[kind]; ok {
		return normalizer{form}, o.end()
	}
	if kind != "Sequence" {
		return nil, o.unsupported(kind)
	}
	var all normalizer
	err := o.items("normalizers", func(key string, raw []byte) error {
		n, err := parseNormalizer(key, raw, depth+1)
		all = append(all, n...)
		return err
	})
	return all, err
}

// parsePreTokenizer adds one pre-tokenizer. ByteLevel must come last, since after it there is no
// text to split.
func (t *Tokenizer) parsePreTokenizer(key string, raw []byte, depth int) error {
	if isNull(raw) {
		return &UnsupportedError{Key: key, Value: "null"}
	}
	o, kind := component(key, raw, depth)
	if o.err == nil && kind != "Sequence" && t.pre.byteLevel {
		return &UnsupportedError{Key: key, Value: fmt.Sprintf("%q after ByteLevel", excerpt(kind))}
	}
	switch kind {
	case "Sequence":
		return o.items("pretokenizers", func(key string, raw []byte) error {
			return t.parsePreTokenizer(key, raw, depth+1)
		})
	case "ByteLevel":
		o.ignore("trim_offsets") // offsets are not reported
		t.pre.byteLevel = true
		t.pre.addPrefixSpace = o.flag("add_prefix_space", false)
		t.pre.useRegex = o.flag("use_regex", true)
		return o.end()
	case "Split":
		step, err := parseSplit(o)
		t.pre.splits = append(t.pre.splits, step)
		return err
	}
	return o.unsupported(kind)
}

func parseSplit(o *object) (splitStep, error) {
	var step splitStep
	name, ok := o.text("behavior"), false
	if step.behavior, ok = behaviors[name]; !ok {
		o.refuse("behavior", []byte(fmt.Sprintf("%q", excerpt(name))))
	}
	step.invert = o.flag("invert", false)
	rawPattern := o.take("pattern")
	if err := o.end(); err != nil {
		return step, err
	}
	p := newObject(o.key("pattern"), rawPattern)
	_, isRegex := p.fields["Regex"]
	regex := p.text("Regex")
	step.literal = p.text("String")
	if err := p.end(); err != nil {
		return step, err
	}
	if (step.literal != "") == (regex != "") {
		return step, fmt.Errorf("tokenizer: %s needs either Regex or String, not empty", p.path)
	}
	if !isRegex {
		return step, nil
	}
	if step.cut = knownPatterns[regex]; step.cut != nil && step.behavior == isolated {
		return step, nil
	}
	var err error
	step.cut = nil
	step.pattern, err = compilePattern(p.key("Regex"), regex)
	return step, err
}

// parseDecoder accepts the ByteLevel decoder, the inverse of the alphabet.
func parseDecoder(key string, raw []byte, depth int) error {
	if isNull(raw) {
		return &UnsupportedError{Key: key, Value: "null"}
	}
	o, kind := component(key, raw, depth)
	switch kind {
	case "ByteLevel":
		// they mean something in other places only
		o.ignore("add_prefix_space", "trim_offsets", "use_regex")
		return o.end()
	case "Sequence":
		count := 0
		err := o.items("decoders", func(key string, raw []byte) error {
			if count++; count > 1 {
				return &UnsupportedError{Key: key, Value: excerpt(string(raw)) + " after another decoder"}
			}
			return parseDecoder(key, raw, depth+1)
		})
		if err == nil && count == 0 {
			return &UnsupportedError{Key: o.key("decoders"), Value: "[]"}
		}
		return err
	}
	return o.unsupported(kind)
}

// parsePostProcessor adds what a post-processor puts around a text. ByteLevel only moves offsets.
func (t *Tokenizer) parsePostProcessor(key string, raw []byte, depth int) error {
	if isNull(raw) {
		return nil
	}
	o, kind := component(key, raw, depth)
	switch kind {
	case "ByteLevel":
		o.ignore("add_prefix_space", "trim_offsets", "use_regex")
		return o.end()
	case "Sequence":
		return o.items("processors", func(key string, raw []byte) error {
			return t.parsePostProcessor(key, raw, depth+1)
		})
	case "TemplateProcessing":
		return t.parseTemplate(o)
	}
	return o.unsupported(kind)
}

// templatePart is one element of a template: a special token or the text.
type templatePart struct {
	SpecialToken *struct {
		ID string `json:"id"`
	}
	Sequence *struct {
		ID string `json:"id"`
	}
}

// parseTemplate reads the template for one text. The one for a pair of texts is not used.
func (t *Tokenizer) parseTemplate(o *object) error {
	var single []templatePart
	var tokens map[string]struct {
		IDs []int32 `json:"ids"`
	}
	o.into("single", &single)
	o.into("special_tokens", &tokens)
	o.ignore("pair")
	if err := o.end(); err != nil {
		return err
	}
	var before, after []int32
	texts := 0
	for i, part := range single {
		switch {
		case part.Sequence != nil && part.SpecialToken == nil && part.Sequence.ID == "A":
			texts++
		case part.SpecialToken != nil && part.Sequence == nil:
			token, ok := tokens[part.SpecialToken.ID]
			if !ok {
				return fmt.Errorf("tokenizer: %s[%d]: %q is not in special_tokens", o.key("single"), i, excerpt(part.SpecialToken.ID))
			}
			for _, id := range token.IDs {
				if !t.has(id) {
					return fmt.Errorf("tokenizer: %s: no token has id %d", o.key("special_tokens"), id)
				}
			}
			if texts == 0 {
				before = append(before, token.IDs...)
			} else {
				after = append(after, token.IDs...)
			}
		default:
			return fmt.Errorf("tokenizer: %s[%d] is neither a SpecialToken nor the Sequence A", o.key("single"), i)
		}
	}
	if texts != 1 {
		return fmt.Errorf("tokenizer: %s has the text %d times instead of once", o.key("single"), texts)
	}
	t.before, t.after = append(before, t.before...), append(t.after, after...)
	return nil
}
