package msl

import "regexp"

// forbidden are words outside the subset, each with the reason.
var forbidden = map[string]string{
	"double": "not in Metal", "std": "not in Metal", "new": "not in Metal", "delete": "not in Metal", "try": "not in Metal", "throw": "not in Metal",
	"virtual": "not in Metal", "goto": "not in Metal", "thread_local": "not in Metal", "size_t": "use uint or ulong",
	"bfloat": "store bf16 as ushort", "asm": "not portable", "printf": "not portable", "assert": "not portable",
	"simd_ballot": "use simd_any or simd_all", "simd_active_threads_mask": "not portable", "quad_sum": "not portable",
	"quad_shuffle": "not portable", "quad_shuffle_xor": "not portable", "quad_broadcast": "not portable", "simdgroup_matrix": "not portable",
	"simdgroup_float8x8": "not portable", "simdgroup_half8x8": "not portable", "atomic_float": "sums of floats have no order",
	"texture2d": "not portable", "host_name": "no template kernels", "isnan": "Metal's fast math assumes there is none",
	"isinf": "Metal's fast math assumes there is none",
}

// beforeLambda are the tokens after which a bracket begins an expression.
var beforeLambda = map[string]bool{"=": true, "(": true, ",": true, "{": true, "return": true}

var (
	swizzle = regexp.MustCompile(`^([xyzw]{2,4}|[rgba]{2,4})$`)
	packed  = regexp.MustCompile(`^packed_`)
)

// checkWords refuses words and phrases that the subset never has. It returns false if brackets do
// not match, and nothing more can be checked.
func (p *parser) checkWords(ts []tok) bool {
	ws := words(ts)
	for i, t := range ws {
		before := ""
		if i > 0 {
			before = ws[i-1].text
		}
		why, bad := forbidden[t.text]
		switch {
		case bad:
			p.fail(t.line, "%s: %s", t.text, why)
		case packed.MatchString(t.text):
			p.fail(t.line, "%s: vectors are 2 or 4 wide and aligned to their size", t.text)
		case before == "." && swizzle.MatchString(t.text):
			p.fail(t.line, ".%s: no swizzles, name one member", t.text)
		case t.text == "[" && beforeLambda[before] && textAt(ws, i+1) != "[":
			p.fail(t.line, "a lambda: not in Metal")
		}
	}
	depth := 0
	for _, t := range ws {
		if depth += nesting(t); depth < 0 {
			p.fail(t.line, "%s closes nothing", t.text)
			return false
		}
	}
	if depth > 0 {
		p.fail(ws[len(ws)-1].line, "the file ends inside brackets")
		return false
	}
	return true
}

// helper checks the text before a top-level brace and inside the braces. A function must be inline
// and have no threadgroup variables, and its pointers must name their address spaces.
func (p *parser) helper(head, body []tok) {
	ws := words(head)
	open := until(ws, 0, "(=")
	if open == len(ws) || open == 0 || ws[open].text == "=" {
		return
	}
	switch ws[0].text {
	case "struct", "enum", "typedef":
		return
	}
	inline := false
	for _, t := range ws {
		inline = inline || t.text == "inline"
	}
	if !inline {
		p.fail(ws[0].line, "helper function %s must be inline", ws[open-1].text)
	}
	for _, param := range split(inside(ws, open)) {
		if d := declared(param); (d.pointer || d.ref) && d.space == "" {
			p.fail(param[0].line, "parameter %s points to no address space", d.name)
		}
	}
	for i, t := range body {
		if _, ok := threadgroupVariable(body, i); ok {
			p.fail(t.line, "a threadgroup variable in a helper: only kernels declare them")
		}
	}
}

// threadgroupVariable reports whether a declaration of a threadgroup variable begins at i, and
// where its semicolon, or whatever is in its place, is.
func threadgroupVariable(ts []tok, i int) (end int, ok bool) {
	if ts[i].text != "threadgroup" {
		return 0, false
	}
	for end = i + 1; end < len(ts) && (ts[end].kind != punct || ts[end].text == ","); end++ {
	}
	for textAt(ts, end) == "[" { // dimensions are expressions
		end = next(ts, closing(ts, end))
		for textAt(ts, end) == "," { // a second variable, which checkBody refuses
			for end++; end < len(ts) && ts[end].kind != punct; end++ {
			}
		}
	}
	return end, textAt(ts, end) == ";" || textAt(ts, end) == "="
}

// checkBody checks the threadgroup variables and barriers in a kernel's body.
func (p *parser) checkBody(k *Kernel) {
	returned := 0
	for i, t := range k.body {
		if end, ok := threadgroupVariable(k.body, i); ok {
			if len(split(k.body[i:end])) > 1 {
				p.fail(t.line, "one variable to a threadgroup declaration")
			}
			if k.body[end].text == "=" {
				p.fail(t.line, "threadgroup memory has no initialiser")
			}
		}
		switch {
		case t.text == "return":
			returned = t.line
		case t.text == "threadgroup_barrier" && returned > 0:
			p.fail(returned, "kernel %s: a return before a threadgroup_barrier", k.Name)
		}
	}
}
