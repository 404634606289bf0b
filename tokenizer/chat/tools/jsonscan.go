package tools

// jsonScan checks a JSON value byte by byte. The zero value waits for a value.
type jsonScan struct {
	state  jsonState
	stack  []byte // open brackets
	isKey  bool   // the string is a key
	rest   string // of a literal
	digits int    // of an escape, to come
}

type jsonState int

const (
	jsonValue      jsonState = iota // a value must come
	jsonFirst                       // a value or the end of a list
	jsonKeyOrEnd                    // after {
	jsonKey                         // after a comma in an object
	jsonColon                       // after a key
	jsonString                      // within one
	jsonEscape                      // after a backslash
	jsonHex                         // of an escape
	jsonLiteral                     // within true, false, null
	jsonMinus                       // of a number
	jsonZero                        // a number that is 0 so far
	jsonInt                         // digits
	jsonDot                         // after the point
	jsonFraction                    // digits after the point
	jsonExp                         // after e
	jsonSign                        // after the sign of an exponent
	jsonExponent                    // digits of an exponent
	jsonNext                        // after a value within a list or an object
	jsonDone                        // after the value
	maxJSONNesting = 500
)

// reset waits for a value again.
func (s *jsonScan) reset() { *s = jsonScan{stack: s.stack[:0]} }

// number reports whether a number is being read. It ends only with what follows it.
func (s *jsonScan) number() bool { return s.state >= jsonMinus && s.state <= jsonExponent }

// step reads a byte and reports whether the text can be JSON still.
func (s *jsonScan) step(c byte) bool {
	if s.number() {
		return s.stepNumber(c)
	}
	switch s.state {
	case jsonString:
		return s.stepString(c)
	case jsonEscape:
		return s.stepEscape(c)
	case jsonHex:
		s.digits--
		if s.digits == 0 {
			s.state = jsonString
		}
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	case jsonLiteral:
		if c != s.rest[0] {
			return false
		}
		if s.rest = s.rest[1:]; s.rest == "" {
			s.ended()
		}
		return true
	}
	if c == ' ' || c == '\t' || c == '\n' || c == '\r' {
		return true
	}
	switch s.state {
	case jsonValue:
		return s.begin(c)
	case jsonFirst:
		return c == ']' && s.close(c) || c != ']' && s.begin(c)
	case jsonKeyOrEnd:
		if c == '}' {
			return s.close(c)
		}
		return s.key(c)
	case jsonKey:
		return s.key(c)
	case jsonColon:
		s.state = jsonValue
		return c == ':'
	case jsonNext:
		return s.stepNext(c)
	}
	return false
}

func (s *jsonScan) key(c byte) bool {
	s.state, s.isKey = jsonString, true
	return c == '"'
}

// begin reads the first byte of a value.
func (s *jsonScan) begin(c byte) bool {
	switch {
	case c == '{' || c == '[':
		s.stack = append(s.stack, c)
		s.state = jsonKeyOrEnd
		if c == '[' {
			s.state = jsonFirst
		}
		return len(s.stack) <= maxJSONNesting
	case c == '"':
		s.state, s.isKey = jsonString, false
	case c == 't':
		s.state, s.rest = jsonLiteral, "rue"
	case c == 'f':
		s.state, s.rest = jsonLiteral, "alse"
	case c == 'n':
		s.state, s.rest = jsonLiteral, "ull"
	case c == '-':
		s.state = jsonMinus
	case c == '0':
		s.state = jsonZero
	case c >= '1' && c <= '9':
		s.state = jsonInt
	default:
		return false
	}
	return true
}

// ended goes on after a value.
func (s *jsonScan) ended() {
	s.state = jsonNext
	if len(s.stack) == 0 {
		s.state = jsonDone
	}
}

func (s *jsonScan) close(c byte) bool {
	n := len(s.stack) - 1
	if s.stack[n] != c-2 { // { and }, [ and ] are two apart
		return false
	}
	s.stack = s.stack[:n]
	s.ended()
	return true
}

func (s *jsonScan) stepNext(c byte) bool {
	if c != ',' {
		return (c == '}' || c == ']') && s.close(c)
	}
	s.state = jsonValue
	if s.stack[len(s.stack)-1] == '{' {
		s.state = jsonKey
	}
	return true
}

func (s *jsonScan) stepString(c byte) bool {
	switch {
	case c == '\\':
		s.state = jsonEscape
	case c == '"' && s.isKey:
		s.state = jsonColon
	case c == '"':
		s.ended()
	}
	return c >= ' '
}

func (s *jsonScan) stepEscape(c byte) bool {
	switch c {
	case 'u':
		s.state, s.digits = jsonHex, 4
		return true
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.state = jsonString
		return true
	}
	return false
}

func (s *jsonScan) stepNumber(c byte) bool {
	digit := c >= '0' && c <= '9'
	switch {
	case s.state == jsonMinus && c == '0':
		s.state = jsonZero
	case s.state == jsonMinus && digit:
		s.state = jsonInt
	case s.state == jsonInt && digit, s.state == jsonFraction && digit, s.state == jsonExponent && digit:
	case (s.state == jsonZero || s.state == jsonInt) && c == '.':
		s.state = jsonDot
	case s.state == jsonDot && digit:
		s.state = jsonFraction
	case (s.state == jsonZero || s.state == jsonInt || s.state == jsonFraction) && (c == 'e' || c == 'E'):
		s.state = jsonExp
	case s.state == jsonExp && (c == '+' || c == '-'):
		s.state = jsonSign
	case (s.state == jsonExp || s.state == jsonSign) && digit:
		s.state = jsonExponent
	case s.state == jsonMinus || s.state == jsonDot || s.state == jsonExp || s.state == jsonSign:
		return false
	default:
		s.ended()
		return s.step(c)
	}
	return true
}
