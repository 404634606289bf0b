package jinja

import "fmt"

type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokData
	tokVarBegin
	tokVarEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
)

// token is one piece of a template. text is the data, the name, the string after its escapes, or
// the operator.
type token struct {
	kind tokenKind
	line int
	text string
	val  Value // of tokInt and tokFloat
}

func (t token) isOp(op string) bool     { return t.kind == tokOp && t.text == op }
func (t token) isName(name string) bool { return t.kind == tokName && t.text == name }

// describe names a token for a syntax error.
func (t token) describe() string {
	switch t.kind {
	case tokEOF:
		return "end of template"
	case tokData:
		return "template data"
	case tokVarBegin:
		return "begin of print statement"
	case tokVarEnd:
		return "end of print statement"
	case tokBlockBegin:
		return "begin of statement block"
	case tokBlockEnd:
		return "end of statement block"
	case tokString:
		return "string"
	case tokInt, tokFloat:
		return fmt.Sprint(t.val)
	}
	return t.text
}
