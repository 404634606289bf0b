package jinja

import (
	"math"
	"math/big"
	"strings"
	"unicode/utf8"
)

// percentFormat is one run of Python's % operator on a string.
type percentFormat struct {
	run    *run
	whole  string // the format
	args   []Value
	used   int
	dict   Value // what %(name)s looks in, or missing
	byName bool
	mark   bool // the format is marked text: what goes into it is escaped
	out    *buffer
}

// percent is format % arg.
func (r *run) percent(format, arg Value) (Value, error) {
	s, _ := asString(format)
	p := &percentFormat{run: r, args: []Value{arg}, dict: missing, out: &buffer{run: r}}
	_, p.mark = format.(markup)
	switch a := arg.(type) {
	case *Tuple:
		p.args = a.items
	case *Dict, *List, *rangeValue:
		p.dict = arg
	}
	for p.whole = s; s != ""; {
		k := strings.IndexByte(s, '%')
		if k < 0 {
			k = len(s)
		}
		if err := p.out.write(s[:k]); err != nil {
			return nil, err
		}
		if s = s[k:]; s == "" {
			break
		}
		rest, err := p.directive(s[1:])
		if err != nil {
			return nil, err
		}
		s = rest
	}
	if p.used < len(p.args) && p.dict == missing && !p.byName {
		return nil, typeErr("not all arguments converted during string formatting")
	}
	return likeText(format, p.out.String()), nil
}

// next takes the next argument.
func (p *percentFormat) next() (Value, error) {
	if p.used >= len(p.args) {
		return nil, typeErr("not enough arguments for format string")
	}
	p.used++
	return p.args[p.used-1], nil
}

// directive writes what s, which follows a percent sign, asks for, and returns the rest.
func (p *percentFormat) directive(s string) (string, error) {
	f := formatSpec{fill: " ", sign: '-', precision: -1}
	v := missing
	if strings.HasPrefix(s, "(") {
		var err error
		if v, s, err = p.named(s[1:]); err != nil {
			return "", err
		}
	}
	zero := false
	for s != "" && strings.IndexByte("-+ #0", s[0]) >= 0 {
		switch s[0] {
		case '-':
			f.align = '<'
		case '+':
			f.sign = '+'
		case ' ':
			if f.sign != '+' {
				f.sign = ' '
			}
		case '#':
			f.alternate = true
		case '0':
			zero = true
		}
		s = s[1:]
	}
	var err error
	if f.width, s, err = p.count(s, 0); err != nil {
		return "", err
	}
	if f.width < 0 {
		f.align, f.width = '<', -f.width
	}
	if strings.HasPrefix(s, ".") {
		if f.precision, s, err = p.count(s[1:], 0); err != nil {
			return "", err
		}
		f.precision = max(f.precision, 0)
	}
	s = strings.TrimLeft(s, "hlL")
	if s == "" {
		return "", fail(KindValue, "incomplete format")
	}
	f.verb = s[0]
	if f.verb == '%' {
		return s[1:], p.out.write("%")
	}
	if v == missing {
		if v, err = p.next(); err != nil {
			return "", err
		}
	}
	if err := p.run.charge(max(f.width, f.precision)); err != nil {
		return "", err
	}
	if strings.IndexByte("diouxXeEfFgGcrsa", f.verb) < 0 {
		verb, _ := utf8.DecodeRuneInString(s)
		return "", fail(KindValue, "unsupported format character '%c' (%#x) at index %d", verb, verb, strLen(p.whole[:len(p.whole)-len(s)]))
	}
	text, err := p.convert(&f, v, zero)
	if err != nil {
		return "", err
	}
	return s[1:], p.out.write(text)
}

// named resolves the name in %(name)s; s begins after the parenthesis.
func (p *percentFormat) named(s string) (Value, string, error) {
	depth, end := 1, -1
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			end = i
			break
		}
	}
	if end < 0 {
		return nil, "", fail(KindValue, "incomplete format key")
	}
	d, ok := p.dict.(*Dict)
	if !ok {
		return nil, "", typeErr("format requires a mapping")
	}
	p.byName = true
	v, ok := d.Get(s[:end])
	if !ok {
		return nil, "", fail(KindKey, "%s", reprString(s[:end]))
	}
	return v, s[end+1:], nil
}

// count reads a width or precision: digits, or * for an argument.
func (p *percentFormat) count(s string, def int) (int, string, error) {
	if !strings.HasPrefix(s, "*") {
		return leadingInt(s, def)
	}
	v, err := p.next()
	if err != nil {
		return 0, s, err
	}
	if _, ok := asBig(v); !ok {
		return 0, s, typeErr("* wants int")
	}
	n, err := size(v)
	return n, s[1:], err
}

// convert is v as the directive f wants it.
func (p *percentFormat) convert(f *formatSpec, v Value, zero bool) (string, error) {
	align := f.align
	if zero && align == 0 {
		f.fill, f.align = "0", '='
	}
	switch f.verb {
	case 's', 'r', 'a', 'c':
		s, err := p.text(f.verb, v)
		if err != nil {
			return "", err
		}
		if f.precision >= 0 && f.verb != 'c' {
			s = s[:byteOffset(s, f.precision)]
		}
		if align == 0 {
			align = '>'
		}
		return pad(s, " ", align, f.width), nil
	case 'd', 'i', 'u', 'o', 'x', 'X':
		return p.integer(f, v)
	}
	if !isNumber(v) {
		return "", typeErr("must be real number, not %s", typeName(v))
	}
	x, err := toFloat(v)
	if err != nil {
		return "", err
	}
	if math.IsInf(x, 0) || math.IsNaN(x) {
		f.fill = " "
		if f.align == '=' {
			f.align = '>'
		}
	}
	return f.float(x)
}

// text is v for s, r, a and c.
func (p *percentFormat) text(verb byte, v Value) (string, error) {
	var s string
	var err error
	switch verb {
	case 's':
		s, err = p.run.str(v)
	case 'r':
		s, err = p.run.repr(v)
	case 'a':
		s, err = p.run.ascii(v)
	default:
		if t, ok := asString(v); ok && strLen(t) == 1 {
			return t, nil
		}
		n, ok := asInt64(v)
		if !ok {
			return "", typeErr("%%c requires int or char")
		}
		if n < 0 || n > 0x10ffff {
			return "", fail(KindOverflow, "%%c arg not in range(0x110000)")
		}
		return string(rune(n)), nil
	}
	if _, marked := v.(markup); p.mark && !(marked && verb == 's') {
		s = htmlEscaper.Replace(s)
	}
	return s, err
}

// ascii is Python's ascii(v).
func (r *run) ascii(v Value) (string, error) {
	if s, ok := v.(string); ok {
		return quoteString(s, true), nil
	}
	s, err := r.repr(v)
	if err != nil || isASCII(s) {
		return s, err
	}
	var b strings.Builder
	for _, c := range s {
		if c < 0x80 {
			b.WriteRune(c)
		} else {
			q := quoteString(string(c), true)
			b.WriteString(q[1 : len(q)-1])
		}
	}
	return b.String(), nil
}

func (p *percentFormat) integer(f *formatSpec, v Value) (string, error) {
	if x, ok := v.(float64); ok && (f.verb == 'd' || f.verb == 'i' || f.verb == 'u') {
		n, err := truncFloat(x)
		if err != nil {
			return "", err
		}
		v = n
	}
	n, ok := asBig(v)
	if !ok {
		if f.verb == 'o' || f.verb == 'x' || f.verb == 'X' {
			return "", typeErr("%%%c format: an integer is required, not %s", f.verb, typeName(v))
		}
		return "", typeErr("%%%c format: a real number is required, not %s", f.verb, typeName(v))
	}
	if f.verb == 'i' || f.verb == 'u' {
		f.verb = 'd'
	}
	if f.precision < 0 {
		return f.integer(n)
	}
	prec := f.precision
	f.precision = -1
	plain := formatSpec{fill: " ", sign: '-', precision: -1, verb: f.verb}
	digits, err := plain.integer(new(big.Int).Abs(n))
	if err != nil {
		return "", err
	}
	digits = strings.Repeat("0", max(prec-len(digits), 0)) + digits
	prefix := ""
	if f.alternate && f.verb != 'd' {
		prefix = "0" + string(f.verb)
	}
	return f.number(n.Sign() < 0, prefix, digits, "", 3), nil
}
