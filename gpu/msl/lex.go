package msl

import (
	"regexp"
	"strings"
)

// kind is the kind of a token.
type kind int

const (
	space     kind = iota // white space and comments
	directive             // a whole preprocessor line, continuations included
	word                  // identifiers and numbers
	punct                 // one character, or a string
)

type tok struct {
	kind kind
	text string
	line int
}

var token = regexp.MustCompile(`(?s)(//[^\n]*|/\*.*?\*/|\s+)|(#(?:[^\\\n]|\\.)*)|([A-Za-z_]\w*|\.?[0-9](?:[eE][+-]|[\w.])*)|("(?:\\.|[^"\\])*"|.)`)

// lex cuts src into tokens, whose texts joined are src.
func lex(src string) []tok {
	var all []tok
	line := 1
	for _, m := range token.FindAllStringSubmatch(src, -1) {
		k := space
		for k < punct && m[k+1] == "" {
			k++
		}
		all = append(all, tok{k, m[0], line})
		line += strings.Count(m[0], "\n")
	}
	return all
}

func join(ts []tok) string {
	var b strings.Builder
	for _, t := range ts {
		b.WriteString(t.text)
	}
	return b.String()
}

// words returns the tokens of ts without white space.
func words(ts []tok) []tok {
	var all []tok
	for _, t := range ts {
		if t.kind != space {
			all = append(all, t)
		}
	}
	return all
}

// next returns the index of the first token after i that is not white space, or len(ts).
func next(ts []tok, i int) int {
	for i++; i < len(ts) && ts[i].kind == space; i++ {
	}
	return i
}

// textAt returns the text of token i, or "" past the end.
func textAt(ts []tok, i int) string {
	if i >= len(ts) {
		return ""
	}
	return ts[i].text
}

// nesting returns by how much t changes the depth of brackets.
func nesting(t tok) int {
	switch {
	case t.kind == punct && strings.Contains("([{", t.text):
		return 1
	case t.kind == punct && strings.Contains(")]}", t.text):
		return -1
	}
	return 0
}

// closing returns the index of the bracket that closes the one at i, or the last index.
func closing(ts []tok, i int) int {
	for depth := 0; i < len(ts); i++ {
		if depth += nesting(ts[i]); depth <= 0 {
			return i
		}
	}
	return len(ts) - 1
}

// inside returns the tokens between the bracket at i and the one that closes it.
func inside(ts []tok, i int) []tok { return ts[i+1 : max(closing(ts, i), i+1)] }

// split cuts ts at the commas outside brackets.
func split(ts []tok) [][]tok {
	var all [][]tok
	depth, from := 0, 0
	for i, t := range ts {
		if depth += nesting(t); depth == 0 && t.text == "," {
			all, from = append(all, ts[from:i]), i+1
		}
	}
	if len(words(ts[from:])) > 0 {
		all = append(all, ts[from:])
	}
	return all
}

// until returns the index of the first token at or after i that is one of stops, or len(ts).
func until(ts []tok, i int, stops string) int {
	for i < len(ts) && (ts[i].kind != punct || !strings.Contains(stops, ts[i].text)) {
		i++
	}
	return i
}
