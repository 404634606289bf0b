package store

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxName is the most bytes of a session's name.
const MaxName = 64

// The files of a folder. The store leaves all others alone.
const (
	sessionSuffix = ".snapshot"
	writingPrefix = "writing-"
	writingSuffix = ".tmp"
	holdSuffix    = ".lock" // after sessionSuffix
	lockName      = ".lock"
)

// CheckName reports why a text cannot name a session: names are 1 to MaxName bytes of UTF-8 that
// can be printed on a line, and neither begin nor end with a space.
func CheckName(name string) error {
	why := ""
	switch {
	case name == "":
		why = "it is empty"
	case len(name) > MaxName:
		why = fmt.Sprintf("%d bytes are too many, want at most %d", len(name), MaxName)
	case !utf8.ValidString(name):
		why = "it is not UTF-8 text"
	case strings.TrimSpace(name) != name:
		why = "it begins or ends with a space"
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		why = "it has characters that cannot be printed"
	}
	if why == "" {
		return nil
	}
	return &Error{Op: "name", Session: name, Kind: ErrName, Err: fmt.Errorf("%s", why)}
}

// plain reports whether a byte stands for itself in a file's name. Capitals do not: some file
// systems take them for small letters.
func plain(b byte, first bool) bool {
	return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b == '-' || b == '_' || b == '.' && !first
}

// fileOf returns the name of a session's file: its own name, with all but plain bytes as % and two
// hexadecimal digits.
func fileOf(name string) string {
	const digits = "0123456789abcdef"
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; plain(c, i == 0) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', digits[c>>4], digits[c&15]})
		}
	}
	return b.String() + sessionSuffix
}

// sessionOf returns the session whose file has this name. Each session has one file name only.
func sessionOf(file string) (name string, ok bool) {
	rest, ok := strings.CutSuffix(file, sessionSuffix)
	if !ok || len(rest) > 3*MaxName {
		return "", false
	}
	var b []byte
	for ; rest != ""; rest = rest[1:] {
		c := rest[0]
		if c == '%' {
			if len(rest) < 3 {
				return "", false
			}
			c = nibble(rest[1])<<4 | nibble(rest[2])
			rest = rest[2:]
		}
		b = append(b, c)
	}
	name = string(b)
	return name, CheckName(name) == nil && fileOf(name) == file
}

// nibble returns what a hexadecimal digit stands for. For other bytes the result does not matter,
// because fileOf never writes such a name.
func nibble(c byte) byte {
	if c >= 'a' {
		return c - 'a' + 10
	}
	return c - '0'
}

// writingName returns the n-th temporary name.
func writingName(n int) string { return fmt.Sprintf("%s%d%s", writingPrefix, n, writingSuffix) }

func isWriting(file string) bool {
	return strings.HasPrefix(file, writingPrefix) && strings.HasSuffix(file, writingSuffix)
}
