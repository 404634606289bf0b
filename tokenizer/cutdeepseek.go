package tokenizer

import (
	"unicode/utf8"
)

// cutDeepSeekWords is patternDeepSeekWords, which leaves some characters unmatched: numbers,
// control characters and unassigned ones, where no letter follows.
func cutDeepSeekWords(s string) int {
	for i := 0; i < len(s); {
		if n := matchDeepSeekWord(s[i:]); n > 0 {
			if i > 0 {
				return i
			}
			return n
		}
		_, n := classAt(s, i)
		i += n
	}
	return len(s)
}

// matchDeepSeekWord returns the length of the match at 0, or 0.
func matchDeepSeekWord(s string) int {
	const word, sign = letter | mark, punct | symbol
	c, n := classAt(s, 0)
	if c&sign != 0 && s[0] < utf8.RuneSelf && len(s) > 1 && isASCIILetter(s[1]) {
		end := 2
		for end < len(s) && isASCIILetter(s[end]) {
			end++
		}
		return end
	}
	switch {
	case c&word != 0, c&(newline|sign) == 0 && isAt(s, n, word):
		return runEnd(s, n, word)
	case c&sign != 0, s[0] == ' ' && isAt(s, n, sign):
		return runEnd(s, runEnd(s, n, sign), newline)
	case c&space != 0:
		return cutSpace(s)
	}
	return 0
}

func isASCIILetter(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z'
}

// cutNumbers3 is patternNumbers3.
func cutNumbers3(s string) int {
	c, n := classAt(s, 0)
	if c&number == 0 {
		return otherEnd(s, n, number)
	}
	for range 2 {
		if !isAt(s, n, number) {
			break
		}
		_, m := classAt(s, n)
		n += m
	}
	return n
}

// cutCJK is patternCJK: a run of Han, Hiragana and Katakana, or a run of anything else.
func cutCJK(s string) int {
	first, end := false, 0
	for i, r := range s {
		is := r >= 0x4e00 && r <= 0x9fa5 || r >= 0x3040 && r <= 0x30ff
		if i == 0 {
			first = is
		}
		if is != first {
			return i
		}
		end = i + utf8.RuneLen(r)
	}
	return end
}

// cutGPT2 is patternGPT2. It has no rule for line ends and minds case.
func cutGPT2(s string) int {
	if s[0] == '\'' {
		if n := contraction(s, false); n > 0 {
			return n
		}
	}
	c, n := classAt(s, 0)
	if s[0] == ' ' && n < len(s) && !isAt(s, n, space) {
		var m int
		c, m = classAt(s, n)
		n += m
	}
	switch {
	case c&letter != 0:
		return runEnd(s, n, letter)
	case c&number != 0:
		return runEnd(s, n, number)
	case c&space == 0:
		return otherEnd(s, n, space|letter|number)
	}
	end, last, _ := spaceRun(s)
	return allButLast(s, end, last)
}
