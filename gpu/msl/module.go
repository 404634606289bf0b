package msl

import (
	"fmt"
	"strings"
)

// ArgKind tells how an argument is bound.
type ArgKind int

// The kinds of arguments.
const (
	Buffer ArgKind = iota // device T*, constant T*: memory and an offset
	Bytes                 // constant T&: constants by value
)

// Arg is one bound argument of a kernel. Its place among the arguments is its Metal index.
type Arg struct {
	Kind  ArgKind
	Type  string
	Name  string
	Const bool // a buffer that is only read
}

// attribute is a parameter that says where the thread is.
type attribute struct{ name, typ, variable string }

// Kernel is an entry point.
type Kernel struct {
	Name       string
	MaxThreads int // of a threadgroup; 0: not given
	Args       []Arg

	attributes   []attribute
	params, body []tok // from "kernel" to ")", and between the outer braces
	file         string
	line         int // of the body
}

// item is a piece of a file: a kernel or other text.
type item struct {
	file   string
	toks   []tok
	kernel *Kernel
}

// Module is a file with those it includes.
type Module struct {
	Kernels []*Kernel
	items   []item
}

// Kernel finds a kernel by name; nil if there is none.
func (m *Module) Kernel(name string) *Kernel {
	for _, k := range m.Kernels {
		if k.Name == name {
			return k
		}
	}
	return nil
}

// SubsetError reports what in a source is outside the subset, one line of the form "file:line:
// what" each.
type SubsetError struct{ Lines []string }

func (e *SubsetError) Error() string {
	return "msl: outside the subset of the Metal Shading Language:\n" + strings.Join(e.Lines, "\n")
}

// Parse reads a file and those it includes; read gives a file's text by name. What is outside the
// subset is reported as a *SubsetError.
func Parse(file string, read func(string) (string, error)) (*Module, error) {
	p := &parser{module: &Module{}, read: read, seen: map[string]bool{}}
	if err := p.parse(file); err != nil {
		return nil, err
	}
	if len(p.wrong) > 0 {
		return nil, &SubsetError{p.wrong}
	}
	return p.module, nil
}

// parser reads one file after the other into a module.
type parser struct {
	module *Module
	read   func(string) (string, error)
	seen   map[string]bool
	file   string // under way
	wrong  []string
}

func (p *parser) fail(line int, format string, args ...any) {
	p.wrong = append(p.wrong, fmt.Sprintf("%s:%d: %s", p.file, line, fmt.Sprintf(format, args...)))
}
