package constraint

import (
	"slices"
	"unicode/utf8"
)

// runeRange is the characters from lo to hi, both included.
type runeRange struct{ lo, hi rune }

// runeSet is a set of characters: sorted ranges with gaps between them, without surrogates.
type runeSet []runeRange

const (
	surrogateLow  = 0xd800
	surrogateHigh = 0xdfff
)

// anyRune is every character.
var anyRune = runeSet{{0, surrogateLow - 1}, {surrogateHigh + 1, utf8.MaxRune}}

// newSet returns the union of ranges, which may overlap and come in any order.
func newSet(ranges ...runeRange) runeSet {
	sorted := slices.Clone(ranges)
	slices.SortFunc(sorted, func(a, b runeRange) int { return int(a.lo) - int(b.lo) })
	var set runeSet
	for _, r := range sorted {
		if n := len(set); n > 0 && r.lo <= set[n-1].hi+1 {
			set[n-1].hi = max(set[n-1].hi, r.hi)
		} else if r.lo <= r.hi {
			set = append(set, r)
		}
	}
	return set.and(anyRune)
}

// setOf returns the set of the characters of a text.
func setOf(text string) runeSet {
	var ranges []runeRange
	for _, r := range text {
		ranges = append(ranges, runeRange{r, r})
	}
	return newSet(ranges...)
}

// and returns what is in both sets.
func (s runeSet) and(t runeSet) runeSet {
	var both runeSet
	for i, j := 0, 0; i < len(s) && j < len(t); {
		lo, hi := max(s[i].lo, t[j].lo), min(s[i].hi, t[j].hi)
		if lo <= hi {
			both = append(both, runeRange{lo, hi})
		}
		if s[i].hi < t[j].hi {
			i++
		} else {
			j++
		}
	}
	return both
}

// not returns every character that is not in the set.
func (s runeSet) not() runeSet {
	var gaps runeSet
	next := rune(0)
	for _, r := range s {
		if next < r.lo {
			gaps = append(gaps, runeRange{next, r.lo - 1})
		}
		next = r.hi + 1
	}
	if next <= utf8.MaxRune {
		gaps = append(gaps, runeRange{next, utf8.MaxRune})
	}
	return gaps.and(anyRune)
}

func (s runeSet) has(r rune) bool {
	_, found := slices.BinarySearchFunc(s, r, func(x runeRange, r rune) int {
		switch {
		case x.hi < r:
			return -1
		case x.lo > r:
			return 1
		}
		return 0
	})
	return found
}

// byteRange is the bytes from lo to hi, both included.
type byteRange struct{ lo, hi byte }

// sequences calls f with sequences of byte ranges that together match the UTF-8 of exactly the
// characters from lo to hi. The slice is f's until it returns.
func (r runeRange) sequences(f func([]byteRange)) {
	split := func(at rune) { // the last character of the first half
		runeRange{r.lo, at}.sequences(f)
		runeRange{at + 1, r.hi}.sequences(f)
	}
	for _, last := range []rune{0x7f, 0x7ff, 0xffff} { // where UTF-8 gets longer
		if r.lo <= last && last < r.hi {
			split(last)
			return
		}
	}
	if r.hi > 0x7f {
		// The bits of the last bytes must all be free where a byte before them is.
		for bits := 6; bits <= 18; bits += 6 {
			mask := rune(1)<<bits - 1
			switch {
			case r.lo&^mask == r.hi&^mask:
			case r.lo&mask != 0:
				split(r.lo | mask)
				return
			case r.hi&mask != mask:
				split(r.hi&^mask - 1)
				return
			}
		}
	}
	var lo, hi [utf8.UTFMax]byte
	n := utf8.EncodeRune(lo[:], r.lo)
	utf8.EncodeRune(hi[:], r.hi)
	var seq [utf8.UTFMax]byteRange
	for i := range n {
		seq[i] = byteRange{lo[i], hi[i]}
	}
	f(seq[:n])
}
