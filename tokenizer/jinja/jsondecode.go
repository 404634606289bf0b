package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/big"
	"strconv"
	"strings"
)

// maxJSONDepth bounds the nesting of a JSON text, as Python's reader does.
const maxJSONDepth = 990

// DecodeJSON reads one JSON value as Python's json.loads does: keys of objects stay in order, 1 is
// an int and 1.0 a float, ints may be of any size. A key that comes twice keeps its first place and
// its last value. Halves of surrogate pairs, which are no text, become U+FFFD. The error is an
// *Error.
func DecodeJSON(data []byte) (Value, error) {
	if !json.Valid(data) {
		var discard json.RawMessage
		err := json.Unmarshal(data, &discard)
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fail(KindValue, "invalid JSON at byte %d: %v", syntax.Offset, err)
		}
		return nil, fail(KindValue, "invalid JSON: %v", err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return decodeValue(d, 0)
}

func decodeValue(d *json.Decoder, depth int) (Value, error) {
	if depth > maxJSONDepth {
		return nil, fail(KindRecursion, "JSON nested more than %d levels deep", maxJSONDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, fail(KindValue, "invalid JSON: %v", err)
	}
	switch t := t.(type) {
	case json.Number:
		return decodeNumber(string(t))
	case json.Delim:
		if t == '[' {
			return decodeList(d, depth)
		}
		return decodeDict(d, depth)
	}
	return t, nil // nil, bool or string
}

func decodeList(d *json.Decoder, depth int) (Value, error) {
	l := NewList()
	for d.More() {
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, v)
	}
	_, err := d.Token()
	return l, err
}

func decodeDict(d *json.Decoder, depth int) (Value, error) {
	out := NewDict()
	for d.More() {
		k, err := d.Token()
		if err != nil {
			return nil, fail(KindValue, "invalid JSON: %v", err)
		}
		name, _ := k.(string) // a valid text has only strings here
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		out.Set(name, v)
	}
	_, err := d.Token()
	return out, err
}

func decodeNumber(s string) (Value, error) {
	if strings.ContainsAny(s, ".eE") {
		f, _ := strconv.ParseFloat(s, 64) // beyond the range it is an infinity, as in Python
		return f, nil
	}
	if len(strings.TrimPrefix(s, "-")) > maxIntDigits {
		return nil, fail(KindValue, "Exceeds the limit (%d digits) for integer string conversion", maxIntDigits)
	}
	n, ok := new(big.Int).SetString(s, 10)
	if !ok {
		return nil, fail(KindValue, "invalid number %s", s)
	}
	return normInt(n), nil
}
