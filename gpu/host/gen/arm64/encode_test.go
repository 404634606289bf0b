package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// encodings are all instructions of this package, on registers whose numbers have different bits,
// as "word text".
func encodings() []string {
	var all []string
	is := func(w uint32, text string) { all = append(all, fmt.Sprintf("%08x %s", w, text)) }
	for _, o := range []op{fadd, fsub, fmul, fdiv, fmla, fmls, fmax, fmin, faddp, fcmgt, fcmge, add, sub, mla, and, orr, eor, bit, bsl,
		sdot, addp, zip1, zip2, uzp1, uzp2, trn1, trn2, zip1d, zip2d, uzp1h, uzp2h, uzp1b, ushl, umax} {
		is(o.three(1, 18, 31))
	}
	for _, o := range []op{fabs, fneg, fsqrt, frintn, fcvtns, scvtf, ucvtf, shll, shll2, uxtl, uxtl2, uxtlw, uxth2, sxtl, sxtl2, sxtlw, sxth2, rev64, neg, fmaxv, umaxv, addv, faddv} {
		is(o.two(1, 18))
	}
	for _, o := range []op{fmlaElement, fmlsElement, fmulElement, sdotElement} {
		for i := range 4 {
			is(o.element(1, 18, 31, i))
		}
	}
	for _, o := range []op{shlWords, ushrWords, sshrWords} {
		for _, bits := range []int{1, 23, 31} {
			is(o.shift(1, 18, bits))
		}
	}
	for _, bits := range []int{1, 4, 7} {
		is(ushrBytes.shift(1, 18, bits))
	}
	for _, bits := range []int{1, 15} {
		is(ushllWords.shift(1, 18, bits))
	}
	for i := range 4 {
		is(dupWord(1, 18, i))
	}
	is(dupRegister(1, 18))
	is(lookup(1, 18, 31))
	for _, bits := range []int{1, 25, 32} {
		is(fixed(1, 18, bits))
	}
	for _, b := range []uint8{0x0f, 0x80, 0xff} {
		is(fill(1, b))
	}
	for _, o := range []scalar{faddScalar, fmulScalar} {
		is(o.three(1, 18, 31))
	}
	return all
}

// TestEncodings compares with testdata/encodings.txt, whose words GNU's assembler (binutils 2.40,
// -march=armv8.2-a+dotprod) made from the texts.
func TestEncodings(t *testing.T) {
	text, err := os.ReadFile("testdata/encodings.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(text)), "\n")
	got := encodings()
	if len(got) != len(want) {
		t.Errorf("%d instructions, want %d", len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}
