package msl

import (
	"fmt"
	"strings"
)

// ArgKind says how an argument is bound.
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
	Const bool // the kernel only reads the buffer
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

// Module is a file and those that it includes.
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

// SubsetError reports what is outside the subset, with a line of the form "file:line: what" for
// each place.
type SubsetError struct{ Lines []string }

func (e *SubsetError) Error() string {
	return "msl: outside the subset of the Metal Shading Language:\n" + strings.Join(e.Lines, "\n")
}

// Parse reads a file and those that it includes; read returns a file's text by name. If anything is
// outside the subset the error is a *SubsetError.
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

// parser reads files, one at a time, into a module.
type parser struct {
	module *Module
	read   func(string) (string, error)
	seen   map[string]bool
	file   string // being read
	wrong  []string
}

func (p *parser) fail(line int, format string, args ...any) {
	p.wrong = append(p.wrong, fmt.Sprintf("%s:%d: %s", p.file, line, fmt.Sprintf(format, args...)))
}
