package jinja

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// formatSpec is Python's format specification:
// [[fill]align][sign][z][#][0][width][grouping][.precision][type].
type formatSpec struct {
	fill      string
	align     byte // one of < > ^ =, or 0
	sign      byte // + - or blank
	alternate bool
	width     int
	group     byte // , or _ or 0
	precision int  // -1 if not given
	verb      byte // 0 if not given
}

// parseSpec reads a specification.
func parseSpec(s string) (formatSpec, error) {
	f := formatSpec{fill: " ", sign: '-', precision: -1}
	whole := s
	if _, n := utf8.DecodeRuneInString(s); n > 0 && len(s) > n && strings.IndexByte("<>^=", s[n]) >= 0 {
		f.fill, f.align, s = s[:n], s[n], s[n+1:]
	} else if s != "" && strings.IndexByte("<>^=", s[0]) >= 0 {
		f.align, s = s[0], s[1:]
	}
	if s != "" && strings.IndexByte("+- ", s[0]) >= 0 {
		f.sign, s = s[0], s[1:]
	}
	if strings.HasPrefix(s, "#") {
		f.alternate, s = true, s[1:]
	}
	if strings.HasPrefix(s, "0") {
		if f.align == 0 {
			f.fill, f.align = "0", '='
		}
		s = s[1:]
	}
	var err error
	if f.width, s, err = leadingInt(s, 0); err != nil {
		return f, err
	}
	if s != "" && (s[0] == ',' || s[0] == '_') {
		f.group, s = s[0], s[1:]
	}
	if strings.HasPrefix(s, ".") {
		if f.precision, s, err = leadingInt(s[1:], -1); err != nil {
			return f, err
		}
		if f.precision < 0 {
			return f, fail(KindValue, "Format specifier missing precision")
		}
	}
	if len(s) == 1 {
		f.verb, s = s[0], ""
	}
	if s != "" {
		return f, fail(KindValue, "Invalid format specifier %s", reprString(whole))
	}
	return f, nil
}

// leadingInt reads a decimal number at the start of s, def if there is none.
func leadingInt(s string, def int) (int, string, error) {
	end := 0
	for end < len(s) && isDigit(s[end]) {
		end++
	}
	if end == 0 {
		return def, s, nil
	}
	n, err := strconv.ParseInt(s[:end], 10, 32)
	if err != nil {
		return 0, s, fail(KindValue, "Too many decimal digits in format string")
	}
	return int(n), s[end:], nil
}

// format is Python's format(v, spec).
func (r *run) format(v Value, spec string) (string, error) {
	if spec == "" {
		return r.str(v)
	}
	f, err := parseSpec(spec)
	if err != nil {
		return "", err
	}
	if err := r.charge(max(f.width, f.precision)); err != nil {
		return "", err
	}
	if s, ok := asString(v); ok {
		return f.text(s)
	}
	if b, ok := asBig(v); ok { // a bool with a specification is its number
		return f.integer(b)
	}
	if x, ok := v.(float64); ok {
		return f.float(x)
	}
	return "", typeErr("unsupported format string passed to %s.__format__", typeName(v))
}

func (f *formatSpec) badVerb(v string) error {
	return fail(KindValue, "Unknown format code '%c' for object of type '%s'", f.verb, v)
}

func (f *formatSpec) text(s string) (string, error) {
	switch {
	case f.verb != 0 && f.verb != 's':
		return "", f.badVerb("str")
	case f.sign != '-':
		return "", fail(KindValue, "Sign not allowed in string format specifier")
	case f.alternate:
		return "", fail(KindValue, "Alternate form (#) not allowed in string format specifier")
	case f.group != 0:
		return "", fail(KindValue, "Cannot specify '%c' with 's'.", f.group)
	case f.align == '=' && f.fill != "0":
		return "", fail(KindValue, "'=' alignment not allowed in string format specifier")
	}
	if f.precision >= 0 {
		s = s[:byteOffset(s, f.precision)]
	}
	align := f.align
	if align == 0 || align == '=' {
		align = '<'
	}
	return pad(s, f.fill, align, f.width), nil
}

// pad fills s up to width characters.
func pad(s, fill string, align byte, width int) string {
	n := width - strLen(s)
	if n <= 0 {
		return s
	}
	left := n
	switch align {
	case '<':
		left = 0
	case '^':
		left = n / 2
	}
	return strings.Repeat(fill, left) + s + strings.Repeat(fill, n-left)
}

func (f *formatSpec) integer(n *big.Int) (string, error) {
	base, prefix := 10, ""
	switch f.verb {
	case 0, 'd', 'n':
	case 'b':
		base, prefix = 2, "0b"
	case 'o':
		base, prefix = 8, "0o"
	case 'x', 'X':
		base, prefix = 16, "0"+string(f.verb)
	case 'c':
		if !n.IsInt64() || n.Int64() < 0 || n.Int64() > utf8.MaxRune {
			return "", fail(KindOverflow, "%%c arg not in range(0x110000)")
		}
		return pad(string(rune(n.Int64())), f.fill, '<', f.width), nil
	case 'e', 'E', 'f', 'F', 'g', 'G', '%':
		x, err := toFloat(normInt(n))
		if err != nil {
			return "", err
		}
		return f.float(x)
	default:
		return "", f.badVerb("int")
	}
	if f.precision >= 0 {
		return "", fail(KindValue, "Precision not allowed in integer format specifier")
	}
	if base == 10 {
		if _, err := intString(n); err != nil {
			return "", err
		}
	}
	digits := new(big.Int).Abs(n).Text(base)
	if f.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if !f.alternate {
		prefix = ""
	}
	size := 3
	if base != 10 {
		size = 4
		if f.group == ',' {
			return "", fail(KindValue, "Cannot specify ',' with '%c'.", f.verb)
		}
	}
	return f.number(n.Sign() < 0, prefix, digits, "", size), nil
}

func (f *formatSpec) float(x float64) (string, error) {
	verb, prec, suffix := f.verb, f.precision, ""
	if prec < 0 {
		prec = 6
	}
	a := math.Abs(x)
	var s string
	switch verb {
	case 'e', 'E', 'f', 'F':
		s = strconv.FormatFloat(a, verb|0x20, prec, 64)
	case 'g', 'G', 'n':
		s = generalFloat(a, prec, f.alternate)
	case '%':
		s, suffix = strconv.FormatFloat(a*100, 'f', prec, 64), "%"
	case 0:
		if f.precision < 0 {
			s = floatString(a)
		} else if s = generalFloat(a, prec, false); !strings.ContainsAny(s, ".en") && len(s) < prec {
			s += ".0"
		} else if !strings.ContainsAny(s, ".en") {
			s = strconv.FormatFloat(a, 'e', max(prec-1, 0), 64)
			s = trimFraction(s)
		}
	default:
		return "", f.badVerb("float")
	}
	if math.IsNaN(x) || math.IsInf(x, 0) {
		s = strings.TrimPrefix(floatString(a), "+")
	}
	if verb == 'E' || verb == 'F' || verb == 'G' {
		s = strings.ToUpper(s)
	}
	whole := strings.IndexFunc(s, func(c rune) bool { return c < '0' || c > '9' })
	if whole < 0 {
		whole = len(s)
	}
	if f.alternate && whole == len(s) && verb != 'g' && verb != 'G' {
		s += "."
	}
	return f.number(math.Signbit(x) && !math.IsNaN(x), "", s[:whole], s[whole:]+suffix, 3), nil
}

// generalFloat is %g: prec digits, an exponent where it is shorter, no zeros at the end unless
// keep.
func generalFloat(a float64, prec int, keep bool) string {
	prec = max(prec, 1)
	e := strconv.FormatFloat(a, 'e', prec-1, 64)
	k := strings.IndexByte(e, 'e')
	if k < 0 {
		return e // inf or nan
	}
	exp, _ := strconv.Atoi(e[k+1:])
	s := e
	if exp >= -4 && exp < prec {
		s = strconv.FormatFloat(a, 'f', prec-1-exp, 64)
	}
	if keep {
		return s
	}
	return trimFraction(s)
}

// trimFraction takes away the zeros at the end of the fraction of s, which may have an exponent.
func trimFraction(s string) string {
	mantissa, exp := s, ""
	if k := strings.IndexByte(s, 'e'); k >= 0 {
		mantissa, exp = s[:k], s[k:]
	}
	if strings.IndexByte(mantissa, '.') >= 0 {
		mantissa = strings.TrimRight(strings.TrimRight(mantissa, "0"), ".")
	}
	return mantissa + exp
}

// number puts a number together: sign, prefix, digits in groups of size, rest, and fills it up.
func (f *formatSpec) number(negative bool, prefix, digits, rest string, size int) string {
	sign := ""
	switch {
	case negative:
		sign = "-"
	case f.sign != '-':
		sign = string(f.sign)
	}
	head := sign + prefix
	if f.align == '=' {
		width := f.width - len(head) - len(rest)
		if f.fill == "0" && f.group != 0 {
			return head + groupZeros(digits, f.group, size, width) + rest
		}
		return head + pad(group(digits, f.group, size), f.fill, '>', width) + rest
	}
	align := f.align
	if align == 0 {
		align = '>'
	}
	return pad(head+group(digits, f.group, size)+rest, f.fill, align, f.width)
}

// group puts sep between groups of digits, counted from the right.
func group(digits string, sep byte, size int) string {
	if sep == 0 || len(digits) <= size {
		return digits
	}
	var b strings.Builder
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%size == 0 {
			b.WriteByte(sep)
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

// groupZeros is group with zeros before it, themselves in groups, up to a width that a separator
// does not begin.
func groupZeros(digits string, sep byte, size, width int) string {
	n := len(digits)
	for n+(n-1)/size < width {
		n++
	}
	return group(fmt.Sprintf("%s%s", strings.Repeat("0", n-len(digits)), digits), sep, size)
}
