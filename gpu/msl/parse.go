package msl

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	quoted = regexp.MustCompile(`^#\s*include\s*"([^"]+)"`)
	angled = regexp.MustCompile(`^#\s*include\s*<(.*)>`)
)

// table marks the "constant" that begins a table at file scope.
const table = "\x01constant"

// parse reads one file, once.
func (p *parser) parse(file string) error {
	if p.seen[file] {
		return nil
	}
	p.seen[file] = true
	src, err := p.read(file)
	if err != nil {
		return fmt.Errorf("msl: reading %s: %w", file, err)
	}
	p.file = file
	ts := lex(src)
	if !p.checkWords(ts) {
		return nil
	}
	var text []tok
	// where in text the present declaration begins; its [[max_total_threads_per_threadgroup]]
	begin, threads := 0, 0
	flush := func() {
		if len(words(text)) > 0 {
			p.module.items = append(p.module.items, item{file: file, toks: text})
		}
		text, begin = nil, 0
	}
	for i := 0; i < len(ts); i++ {
		t := ts[i]
		switch {
		case angled.MatchString(t.text):
			if name := angled.FindStringSubmatch(t.text)[1]; name != "metal_stdlib" {
				p.fail(t.line, "include <%s>: only <metal_stdlib>", name)
			}
		case quoted.MatchString(t.text):
			flush()
			if err := p.parse(quoted.FindStringSubmatch(t.text)[1]); err != nil {
				return err
			}
			p.file = file
		case t.text == "using": // using namespace metal;
			i = until(ts, i, ";")
		case t.text == "[" && textAt(ts, i+1) == "[":
			name, n := attributeOf(ts[i:])
			if name != "max_total_threads_per_threadgroup" || n <= 0 || n > 1024 || n%32 != 0 {
				p.fail(t.line, "attribute %s(%d): only max_total_threads_per_threadgroup, a multiple of 32 up to 1024", name, n)
			}
			threads, i = n, closing(ts, i)
		case t.text == "kernel":
			flush()
			k, end := p.kernel(ts, i)
			k.MaxThreads, threads, i = threads, 0, end
			p.module.items = append(p.module.items, item{file: file, kernel: k})
			p.module.Kernels = append(p.module.Kernels, k)
		case t.text == "constant" && len(words(text[begin:])) == 0:
			if e := until(ts, i, ";="); strings.Contains(join(ts[i:e]), "function_constant") {
				p.fail(t.line, "function constants cannot size arrays: use #define lines")
			}
			text = append(text, tok{word, table, t.line})
		case t.text == "{":
			e := closing(ts, i)
			p.helper(text[begin:], ts[i:e+1])
			text, i = append(text, ts[i:e+1]...), e
			begin = len(text)
		default:
			if text = append(text, t); t.text == ";" || t.kind == directive {
				begin = len(text)
			}
		}
	}
	flush()
	return nil
}

// attributeOf reads the [[name]] or [[name(n)]] at the start of ts; n is -1 if there is none.
func attributeOf(ts []tok) (name string, n int) {
	ws := words(ts[:closing(ts, 0)+1])
	n = -1
	if len(ws) > 6 {
		if v, err := strconv.Atoi(ws[4].text); err == nil {
			n = v
		}
	}
	return textAt(ws, 2), n
}

// declaration is a parameter or variable.
type declaration struct {
	space, typ, name       string
	constant, pointer, ref bool
	attribute              string
	index                  int
}

// declared reads a declaration with its trailing [[attribute]].
func declared(ts []tok) (d declaration) {
	d.index = -1
	var parts []string
	ws := words(ts)
	for i, t := range ws {
		if t.text == "[" && textAt(ws, i+1) == "[" {
			d.attribute, d.index = attributeOf(ws[i:])
			break
		}
		switch t.text {
		case "device", "constant", "threadgroup", "thread":
			d.space = t.text
			d.constant = d.constant || t.text == "constant"
		case "const":
			d.constant = true
		case "*":
			d.pointer = true
		case "&":
			d.ref = true
		default:
			parts = append(parts, t.text)
		}
	}
	if n := len(parts) - 1; n >= 0 {
		d.typ, d.name = strings.Join(parts[:n], " "), parts[n]
	}
	return d
}

// The thread attributes. Positions have the same type throughout a kernel, and indices are scalars.
// The numbers are places in kernel.go's tables.
var (
	positions = map[string]int{"thread_position_in_grid": 0, "threadgroup_position_in_grid": 1, "thread_position_in_threadgroup": 2,
		"threads_per_threadgroup": 3, "threadgroups_per_grid": 4, "threads_per_grid": 5}
	indices = map[string]int{"thread_index_in_threadgroup": 0, "thread_index_in_simdgroup": 1, "simdgroup_index_in_threadgroup": 2,
		"threads_per_simdgroup": 3, "simdgroups_per_threadgroup": 4}
)

// kernel reads the kernel whose keyword is at i, and also returns the index of its closing brace.
func (p *parser) kernel(ts []tok, i int) (*Kernel, int) {
	k := &Kernel{file: p.file}
	open := until(ts, i, "(")
	if head := words(ts[i:open]); len(head) == 3 && head[1].text == "void" {
		k.Name = head[2].text
	} else {
		p.fail(ts[i].line, "expected: kernel void name(...)")
	}
	if p.module.Kernel(k.Name) != nil {
		p.fail(ts[i].line, "a second kernel %s", k.Name)
	}
	if open == len(ts) {
		p.fail(ts[i].line, "kernel %s has no parameters", k.Name)
		return k, len(ts) - 1
	}
	end := closing(ts, open)
	k.params = ts[i : end+1]
	seen, posType := map[string]bool{}, ""
	for _, param := range split(inside(ts, open)) {
		p.parameter(k, param, seen, &posType)
	}
	i = until(ts, end, "{")
	if i == len(ts) {
		p.fail(ts[end].line, "kernel %s has no body", k.Name)
		return k, len(ts) - 1
	}
	k.body, k.line = inside(ts, i), ts[i].line
	p.checkBody(k)
	if comes, over := k.count(launchDependents), k.count(waitPrerequisites); comes != over || comes > 1 {
		p.fail(k.line, "kernel %s: use %s and %s once each, or neither", k.Name, launchDependents, waitPrerequisites)
	}
	return k, closing(ts, i)
}

// parameter reads one parameter of k. seen are the thread attributes so far, and posType is the
// type of positions.
func (p *parser) parameter(k *Kernel, param []tok, seen map[string]bool, posType *string) {
	ws := words(param)
	if len(ws) == 0 {
		return
	}
	line, d := ws[0].line, declared(param)
	_, isPosition := positions[d.attribute]
	_, isIndex := indices[d.attribute]
	switch {
	case d.attribute == "buffer":
		arg := Arg{Type: d.typ, Name: d.name, Const: d.constant}
		switch {
		case d.pointer && !d.ref && (d.space == "device" || d.space == "constant"):
		case d.ref && !d.pointer && d.space == "constant":
			arg.Kind = Bytes
		default:
			p.fail(line, "parameter %s: want device T*, constant T* or constant T&", d.name)
		}
		if d.index != len(k.Args) {
			p.fail(line, "parameter %s: [[buffer(%d)]] in place %d: indices ascend from 0 without a gap", d.name, d.index, len(k.Args))
		}
		k.Args = append(k.Args, arg)
	case isPosition:
		if d.typ != "uint" && d.typ != "uint2" && d.typ != "uint3" || *posType != "" && *posType != d.typ {
			p.fail(line, "parameter %s: positions are all uint, all uint2 or all uint3", d.name)
		}
		*posType = d.typ
		k.attributes = append(k.attributes, attribute{d.attribute, d.typ, d.name})
	case isIndex:
		if d.typ != "uint" && d.typ != "ushort" {
			p.fail(line, "parameter %s: an index is uint or ushort", d.name)
		}
		k.attributes = append(k.attributes, attribute{d.attribute, d.typ, d.name})
	default:
		p.fail(line, "parameter without a [[buffer(n)]] or a thread attribute that the subset has: %s", strings.TrimSpace(join(param)))
	}
	if d.attribute != "buffer" && seen[d.attribute] {
		p.fail(line, "%s stands twice", d.attribute)
	}
	seen[d.attribute] = true
}
