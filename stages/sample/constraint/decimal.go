package constraint

import (
	"cmp"
	"math/big"
	"strconv"
	"strings"
)

// decimal is an exact number.
type decimal struct {
	negative bool
	whole    string // digits, without zeros before them but the one of 0
	fraction string // digits, without zeros after them
}

// parseDecimal reads a JSON number.
func parseDecimal(v *value) (decimal, error) {
	text, negative := strings.CutPrefix(v.text, "-")
	mantissa, exponent, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	if strings.Trim(whole+fraction, "0") == "" {
		return decimal{whole: "0"}, nil
	}
	shift := 0
	if exponent != "" {
		n, err := strconv.Atoi(exponent)
		if err != nil || n > maxNumberDigits || n < -maxNumberDigits {
			return decimal{}, &LimitError{What: "digits of a number", Limit: maxNumberDigits}
		}
		shift = n
	}
	if len(whole)+len(fraction) > maxNumberDigits {
		return decimal{}, &LimitError{What: "digits of a number", Limit: maxNumberDigits}
	}
	if shift > 0 {
		fraction += strings.Repeat("0", max(0, shift-len(fraction)))
		whole, fraction = whole+fraction[:shift], fraction[shift:]
	} else {
		whole = strings.Repeat("0", max(0, -shift-len(whole))) + whole
		whole, fraction = whole[:len(whole)+shift], whole[len(whole)+shift:]+fraction
	}
	if whole = strings.TrimLeft(whole, "0"); whole == "" {
		whole = "0"
	}
	return decimal{negative: negative, whole: whole, fraction: strings.TrimRight(fraction, "0")}, nil
}

func digitRange(d int) runeRange { return runeRange{'0' + rune(d), '0' + rune(d)} }

// numberPhase is how far a number has been read.
type numberPhase uint8

const (
	numberBegin numberPhase = iota
	numberSign
	numberZero   // the whole part is 0
	numberWhole  // in the whole part
	numberPoint  // a digit must follow
	numberDigits // in the fraction
)

type numberKey[K comparable] struct {
	phase    numberPhase
	negative bool
	k        K
}

// numberDFA returns the automaton of the numbers without an exponent that are accepted, having
// been read digit by digit: digit returns the state after one more, which is false if no number
// that begins so is accepted.
func numberDFA[K comparable](begin K, digit func(k K, d int, fraction bool) (K, bool), accept func(k K, negative bool) bool) (*dfa, error) {
	return explore(numberKey[K]{k: begin}, func(n numberKey[K]) (bool, []exploreEdge[numberKey[K]], error) {
		var to []exploreEdge[numberKey[K]]
		edge := func(r runeRange, phase numberPhase, k K) {
			to = append(to, exploreEdge[numberKey[K]]{r, numberKey[K]{phase, n.negative || r.lo == '-', k}})
		}
		digits := func(from int, after func(d int) numberPhase) {
			for d := from; d <= 9; d++ {
				if k, ok := digit(n.k, d, n.phase >= numberPoint); ok {
					edge(digitRange(d), after(d), k)
				}
			}
		}
		always := func(p numberPhase) func(int) numberPhase { return func(int) numberPhase { return p } }
		if n.phase == numberBegin {
			edge(runeRange{'-', '-'}, numberSign, n.k)
		}
		if n.phase == numberZero || n.phase == numberWhole {
			edge(runeRange{'.', '.'}, numberPoint, n.k)
		}
		switch n.phase {
		case numberBegin, numberSign:
			digits(0, func(d int) numberPhase {
				if d == 0 {
					return numberZero
				}
				return numberWhole
			})
		case numberWhole:
			digits(0, always(numberWhole))
		case numberPoint, numberDigits:
			digits(0, always(numberDigits))
		}
		final := n.phase == numberZero || n.phase == numberWhole || n.phase == numberDigits
		return final && accept(n.k, n.negative), to, nil
	})
}

// compared is how a number that is being read compares with a bound, both without signs.
type compared struct {
	at     int // how many digits of the part have been read, no more than matter
	sign   int
	inside bool // the fraction
}

// compareDFA returns the automaton of the numbers whose comparison with a bound, -1, 0 or 1, is
// accepted.
func compareDFA(b decimal, accept func(sign int) bool) (*dfa, error) {
	digit := func(k compared, d int, fraction bool) (compared, bool) {
		if fraction {
			return k.settled(b).digit(d, b.fraction), true
		}
		if k = k.digit(d, b.whole); k.at > len(b.whole) {
			k.sign = 1
		}
		return k, true
	}
	return numberDFA(compared{}, digit, func(k compared, negative bool) bool {
		k = k.settled(b)
		if k.sign == 0 && k.at < len(b.fraction) {
			k.sign = -1
		}
		switch {
		case negative && !b.negative && (b.whole != "0" || b.fraction != ""):
			k.sign = -1
		case negative:
			k.sign = -k.sign
		case b.negative:
			k.sign = 1
		}
		return accept(k.sign)
	})
}

// digit compares one more digit with that of a part of the bound.
func (k compared) digit(d int, part string) compared {
	if k.sign == 0 && k.at < len(part) {
		k.sign = cmp.Compare(d, int(part[k.at]-'0'))
	} else if k.sign == 0 && k.inside {
		k.sign = cmp.Compare(d, 0)
	}
	if k.at = min(k.at+1, len(part)+1); k.inside && (k.sign != 0 || k.at > len(part)) {
		k.at = len(part)
	}
	return k
}

// settled compares the lengths of the whole parts, at their end.
func (k compared) settled(b decimal) compared {
	switch {
	case k.inside:
		return k
	case k.at < len(b.whole):
		k.sign = -1
	}
	return compared{sign: k.sign, inside: true}
}

// multiple is what is left of a number that is being read by a modulus, and the digits of its
// fraction.
type multiple struct{ rest, digits int }

// multipleDFA returns the automaton of the multiples of modulus/10^digits.
func multipleDFA(modulus, digits int) (*dfa, error) {
	return numberDFA(multiple{}, func(k multiple, d int, fraction bool) (multiple, bool) {
		if fraction && k.digits == digits {
			return k, d == 0
		}
		if fraction {
			k.digits++
		}
		k.rest = (k.rest*10 + d) % modulus
		return k, true
	}, func(k multiple, _ bool) bool {
		for ; k.digits < digits; k.digits++ {
			k.rest = k.rest * 10 % modulus
		}
		return k.rest == 0
	})
}

// modulus returns the m and n of a number m/10^n, false if m is too large.
func (d decimal) modulus() (m, n int, ok bool) {
	v, _ := new(big.Int).SetString(d.whole+d.fraction, 10)
	if !v.IsInt64() || v.Int64() > maxMultipleOf {
		return 0, 0, false
	}
	return int(v.Int64()), len(d.fraction), true
}
