package jinja

import (
	"fmt"
	"strings"
	"time"
)

// strftime is Python's datetime.strftime in the C locale, for a time without a zone.
func (r *run) strftime(t time.Time, format string) (Value, error) {
	out := &buffer{run: r}
	for format != "" {
		k := strings.IndexByte(format, '%')
		if k < 0 {
			k = len(format)
		}
		if err := out.write(format[:k]); err != nil {
			return nil, err
		}
		if format = format[k:]; format == "" {
			break
		}
		pad, rest := byte(0), format[1:]
		if rest != "" && strings.IndexByte("-_0^#", rest[0]) >= 0 {
			pad, rest = rest[0], rest[1:]
		}
		if rest == "" {
			return nil, fail(KindValue, "strftime: the format ends in the middle of a directive")
		}
		s, ok := directive(t, rest[0], pad)
		if !ok {
			return nil, fail(KindUnsupported, "strftime: the directive %%%c is not supported", rest[0])
		}
		if err := out.write(s); err != nil {
			return nil, err
		}
		format = rest[1:]
	}
	return out.String(), nil
}

// directive is one field. pad is a flag before its letter: - for no padding, _ for blanks, ^ for
// capitals.
func directive(t time.Time, c, pad byte) (string, bool) {
	num := func(n, width int, fill byte) (string, bool) {
		s := fmt.Sprint(n)
		switch pad {
		case '-':
			return s, true
		case '_':
			fill = ' '
		case '0':
			fill = '0'
		}
		return strings.Repeat(string(fill), max(width-len(s), 0)) + s, true
	}
	text := func(layout string) (string, bool) {
		s := t.Format(layout)
		if pad == '^' {
			s = strings.ToUpper(s)
		}
		return s, true
	}
	hour12 := (t.Hour()+11)%12 + 1
	switch c {
	case '%', 'n', 't':
		return map[byte]string{'%': "%", 'n': "\n", 't': "\t"}[c], true
	case 'a', 'A', 'b', 'B', 'h', 'p':
		return text(map[byte]string{'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan", 'p': "PM"}[c])
	case 'c', 'D', 'F', 'R', 'r', 'T', 'x', 'X':
		return text(map[byte]string{'c': "Mon Jan _2 15:04:05 2006", 'D': "01/02/06", 'F': "2006-01-02", 'R': "15:04",
			'r': "03:04:05 PM", 'T': "15:04:05", 'x': "01/02/06", 'X': "15:04:05"}[c])
	case 'Y':
		return num(t.Year(), 1, '0')
	case 'C':
		return num(t.Year()/100, 2, '0')
	case 'y':
		return num(t.Year()%100, 2, '0')
	case 'm':
		return num(int(t.Month()), 2, '0')
	case 'd':
		return num(t.Day(), 2, '0')
	case 'e':
		return num(t.Day(), 2, ' ')
	case 'H':
		return num(t.Hour(), 2, '0')
	case 'k':
		return num(t.Hour(), 2, ' ')
	case 'I':
		return num(hour12, 2, '0')
	case 'l':
		return num(hour12, 2, ' ')
	case 'M':
		return num(t.Minute(), 2, '0')
	case 'S':
		return num(t.Second(), 2, '0')
	case 'f':
		return fmt.Sprintf("%06d", t.Nanosecond()/1000), true
	case 'j':
		return num(t.YearDay(), 3, '0')
	case 'w':
		return num(int(t.Weekday()), 1, '0')
	case 'u':
		return num((int(t.Weekday())+6)%7+1, 1, '0')
	case 'U':
		return num((t.YearDay()+6-int(t.Weekday()))/7, 2, '0')
	case 'W':
		return num((t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2, '0')
	case 'V', 'G':
		year, week := t.ISOWeek()
		if c == 'V' {
			return num(week, 2, '0')
		}
		return num(year, 1, '0')
	case 'z', 'Z': // a time without a zone has neither
		return "", true
	}
	return "", false
}
