package constraint

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// JSONSchema returns the grammar of JSON texts that a schema, of draft 2020-12 or 7, allows. It
// gives only texts that are valid, and not all of them: JSON is written without blanks, but for
// one after a colon or a comma if the model likes; the members of an object come in the order of
// the schema's properties, then others; a character of a string is escaped only where it has to
// be, and an integer has neither fraction nor exponent.
//
// A keyword that is not supported is an *UnsupportedError with its name and place, and never
// ignored; one that the standard does not know is a remark, as it says, and so is an unknown
// format. A known format binds. A schema that is not well formed is a *SchemaError, one that needs
// too much a *LimitError, and one that no value satisfies ErrUnsatisfiable.
func JSONSchema(schema []byte) (*Grammar, error) {
	src := &source{}
	if _, err := addSchema(src, schema); err != nil { // its rule is the first
		return nil, err
	}
	g, err := newLimitedGrammar(src, maxSchemaNodes)
	var large *tooManyNodesError
	switch {
	case errors.Is(err, errNoText):
		return nil, ErrUnsatisfiable
	case errors.As(err, &large):
		return nil, &LimitError{What: "nodes of the automaton", Limit: maxSchemaNodes}
	}
	return g, err
}

// addSchema adds the JSON texts that a schema allows to a grammar, and returns what matches them.
func addSchema(src *source, schema []byte) (*expr, error) {
	root, err := parseJSON(schema)
	if err != nil {
		return nil, err
	}
	c := newSchemaCompiler(root)
	if err := c.index(); err != nil {
		return nil, err
	}
	t, err := c.schema(root)
	if err != nil {
		return nil, err
	}
	e, err := c.addTo(src, t)
	return e, limited(err)
}

// limited returns the error of a schema for that of an automaton.
func limited(err error) error {
	if errors.Is(err, errTooLarge) {
		return &LimitError{What: "states of the automaton of a text or number", Limit: maxStates}
	}
	return err
}

// What a schema may need.
const (
	maxSchemaBytes  = 1 << 20
	maxSchemaDepth  = 200     // of nesting, of the schema as a JSON text
	maxSchemaNodes  = 400_000 // of the automaton
	maxSchemaWork   = 4_000_000
	maxPatternBytes = 10_000
	maxNumberDigits = 1000 // of a bound
	maxAlternatives = 2000 // of one schema
	maxMultipleOf   = 10_000
)

// ErrUnsatisfiable reports a schema that no JSON value satisfies, or none that is nested less than
// some 250 deep.
var ErrUnsatisfiable = errors.New("no JSON value satisfies the schema")

// UnsupportedError reports a keyword of a schema that constraints do not support, there or at all.
type UnsupportedError struct {
	Pointer string // of the schema that has the keyword: a JSON pointer
	Keyword string
	Why     string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%q at %s is not supported: %s", e.Keyword, pointerName(e.Pointer), e.Why)
}

// SchemaError reports what is not a schema.
type SchemaError struct {
	Pointer string // of what is wrong: a JSON pointer
	Why     string
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("%s: %s", pointerName(e.Pointer), e.Why)
}

// LimitError reports a schema that needs more than constraints grant.
type LimitError struct {
	What  string
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the schema needs more than %d %s", e.Limit, e.What)
}

func pointerName(p string) string {
	switch {
	case p == "":
		return "the top of the schema"
	case strings.ContainsFunc(p, unicode.IsControl):
		return strconv.Quote(p)
	}
	return p
}
