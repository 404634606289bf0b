package jinja

import "strings"

// Marked text, the result of escape and safe. Automatic escaping is off, so the mark matters only
// where marked and plain text meet: the plain text is escaped then.

var htmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;")

// escapeText is a string as it is written into marked text.
func escapeText(v Value) string {
	switch v := v.(type) {
	case markup:
		return string(v)
	case string:
		return htmlEscaper.Replace(v)
	}
	return ""
}

// likeText is s with the mark of v.
func likeText(v Value, s string) Value {
	if _, ok := v.(markup); ok {
		return markup(s)
	}
	return s
}

// markResult marks what a method of marked text returned: the string, or those in the list or
// tuple.
func markResult(v Value) Value {
	mark := func(items []Value) []Value {
		out := make([]Value, len(items))
		for i, item := range items {
			out[i] = markResult(item)
		}
		return out
	}
	switch v := v.(type) {
	case string:
		return markup(v)
	case *List:
		return &List{mark(v.items)}
	case *Tuple:
		return &Tuple{items: mark(v.items)}
	}
	return v
}

// escapeArgs escapes those arguments of a method of marked text that become part of the result.
func escapeArgs(name string, a arguments) arguments {
	from := len(a.pos)
	switch name {
	case "replace", "ljust", "rjust", "center":
		from = 1
	}
	if from >= len(a.pos) {
		return a
	}
	pos := append([]Value(nil), a.pos...)
	for i := from; i < len(pos); i++ {
		if s, ok := pos[i].(string); ok {
			pos[i] = escapeText(s)
		}
	}
	return arguments{pos, a.kw}
}
