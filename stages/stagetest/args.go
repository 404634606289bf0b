package stagetest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Args is the key=value pairs of a script command. What is asked of it with a bad value, and what
// is never asked of it, is an error in the end.
type Args struct {
	word  string // the first, if it has no =
	pairs map[string]string
	asked map[string]bool
	err   error
}

// parseArgs splits at spaces; a value in double quotes may have some.
func parseArgs(text string) (*Args, error) {
	a := &Args{pairs: make(map[string]string), asked: make(map[string]bool)}
	for first := true; ; first = false {
		text = strings.TrimLeft(text, " ")
		if text == "" {
			return a, nil
		}
		end := strings.IndexAny(text, "= ")
		if end < 0 {
			end = len(text)
		}
		key := text[:end]
		text = text[end:]
		if !strings.HasPrefix(text, "=") {
			if !first {
				return nil, fmt.Errorf("%q is not key=value", key)
			}
			a.word = key
			continue
		}
		text = text[1:]
		value, _, _ := strings.Cut(text, " ")
		text = text[len(value):]
		if strings.HasPrefix(value, `"`) {
			quoted, err := strconv.QuotedPrefix(value + text)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			text = (value + text)[len(quoted):]
			if value, err = strconv.Unquote(quoted); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
		}
		a.pairs[key] = value
	}
}

// Err returns the first bad value, or names the keys that nobody asked for.
func (a *Args) Err() error {
	var strange []string
	for k := range a.pairs {
		if !a.asked[k] {
			strange = append(strange, k)
		}
	}
	if a.err == nil && len(strange) > 0 {
		slices.Sort(strange)
		return fmt.Errorf("unknown keys %q", strange)
	}
	return a.err
}

func (a *Args) fail(key string, err error) {
	if a.err == nil && err != nil {
		a.err = fmt.Errorf("%s=%s: %w", key, a.pairs[key], err)
	}
}

// Word returns the word before the pairs, or "".
func (a *Args) Word() string { return a.word }

// String returns a value, or otherwise.
func (a *Args) String(key, otherwise string) string {
	a.asked[key] = true
	if v, ok := a.pairs[key]; ok {
		return v
	}
	return otherwise
}

// Int returns a whole number, or otherwise.
func (a *Args) Int(key string, otherwise int) int {
	v := a.String(key, "")
	if v == "" {
		return otherwise
	}
	n, err := strconv.Atoi(v)
	a.fail(key, err)
	return n
}

// Bool returns true if the value is true.
func (a *Args) Bool(key string) bool {
	v := a.String(key, "false")
	b, err := strconv.ParseBool(v)
	a.fail(key, err)
	return b
}
