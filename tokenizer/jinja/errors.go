package jinja

import (
	"errors"
	"fmt"
)

// Kind says what class of error a template ran into, by the name of the exception that the
// reference raises.
type Kind string

// The kinds that a caller may branch on. KindLimit and KindUnsupported are this package's own.
const (
	// raise_exception; Msg is exactly the text given to it
	KindTemplate      Kind = "TemplateError"
	KindSyntax        Kind = "TemplateSyntaxError"    // from Parse
	KindAssertion     Kind = "TemplateAssertionError" // from Parse: an unknown filter or test
	KindRuntime       Kind = "TemplateRuntimeError"
	KindPythonRuntime Kind = "RuntimeError"
	KindUndefined     Kind = "UndefinedError"
	KindSecurity      Kind = "SecurityError" // what the sandbox forbids
	KindFilterArg     Kind = "FilterArgumentError"
	KindType          Kind = "TypeError"
	KindValue         Kind = "ValueError"
	KindIndex         Kind = "IndexError"
	KindKey           Kind = "KeyError"
	KindAttribute     Kind = "AttributeError"
	KindZeroDivide    Kind = "ZeroDivisionError"
	KindOverflow      Kind = "OverflowError"
	KindAssert        Kind = "AssertionError"
	KindRecursion     Kind = "RecursionError"   // nested too deeply
	KindLimit         Kind = "LimitError"       // a bound of Config
	KindUnsupported   Kind = "UnsupportedError" // part of the language, but not of this package
)

// Error is what Parse and Render return when a template is wrong or fails.
type Error struct {
	Kind Kind
	Name string // the template's, as given to Parse
	Line int    // counted from 1; 0 without a template, as in DecodeJSON
	Msg  string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("jinja: %s: %s", e.Kind, e.Msg)
	}
	return fmt.Sprintf("jinja: %s:%d: %s: %s", e.Name, e.Line, e.Kind, e.Msg)
}

// fail makes an error that has no place yet; at adds it.
func fail(kind Kind, format string, args ...any) error {
	return &Error{Kind: kind, Msg: fmt.Sprintf(format, args...)}
}

// typeErr is fail(KindType, ...), by far the most frequent.
func typeErr(format string, args ...any) error { return fail(KindType, format, args...) }

// at gives err its place unless one further inside did so before.
func at(err error, name string, line int) error {
	var e *Error
	if errors.As(err, &e) && e.Line == 0 {
		e.Name, e.Line = name, line
	}
	return err
}

// hasKind reports whether err is of one of the kinds.
func hasKind(err error, kinds ...Kind) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	for _, k := range kinds {
		if e.Kind == k {
			return true
		}
	}
	return false
}
