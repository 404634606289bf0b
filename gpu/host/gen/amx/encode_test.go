package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// encodings are instructions of this package, on registers whose numbers have different bits, as
// "bytes text".
func encodings() []string {
	var all []string
	is := func(code []byte, text string) { all = append(all, fmt.Sprintf("%x %s", code, text)) }
	is(loadConfig(ax))
	is(loadConfig(r10))
	is(release())
	is(zero(0))
	is(zero(5))
	is(load(1, si, r12))
	is(load(2, bx, r15))
	is(load(7, r8, r9))
	is(store(0, r14, r15))
	is(dot(0, 1, 2))
	is(dot(5, 6, 7))
	return all
}

// TestEncodings compares with testdata/encodings.txt, whose bytes GNU's assembler (binutils 2.44)
// made from the texts in its own syntax.
func TestEncodings(t *testing.T) {
	text, err := os.ReadFile("testdata/encodings.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(text)), "\n")
	got := encodings()
	if len(got) != len(want) {
		t.Fatalf("%d instructions, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}
