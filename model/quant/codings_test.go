package quant

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// Every row of the table is whole: nothing that files, checks and kernels ask of a format is
// missing, and its facts do not contradict each other.
func TestCodings(t *testing.T) {
	names, types := map[string]bool{}, map[uint32]bool{}
	for c := range Coding(NumCodings) {
		d := &codings[c]
		if d.name == "" || d.dtype == "" || d.word == 0 || names[d.name] {
			t.Errorf("row %d, %q: no name, no type in files, no size of words, or a name that another has", c, d.name)
		}
		names[d.name] = true
		if (d.widen == nil) != c.Codes() || c.Codes() == (len(d.groups) == 0) {
			t.Errorf("%s: it has codes in groups with a scale, or a function that widens", c)
		}
		if c.Codes() {
			checkCodes(t, c)
		}
		if d.plain != nil && d.block != nil || c.Codes() && (d.plain != nil || d.block != nil) {
			t.Errorf("%s is a format of GGUF files twice", c)
		}
	}
	for _, b := range Blocks() {
		if types[b.Type] {
			t.Errorf("%s: another format has number %d", b, b.Type)
		}
		types[b.Type] = true
		checkBlock(t, b)
	}
}

// checkCodes compares the facts of a row of codes.
func checkCodes(t *testing.T, c Coding) {
	d := &codings[c]
	if d.bits != 2 && d.bits != 4 && d.bits != 8 || d.values != nil && len(d.values) != 1<<d.bits {
		t.Errorf("%s: %d values of %d bits", c, len(d.values), d.bits)
		return
	}
	if d.biased && d.factor {
		t.Errorf("%s: factors of rows lie where biases do", c)
	}
	for code := range 1 << d.bits {
		if !c.Stepped() {
			break
		}
		if w := c.Whole(code); w < 0 || w > 255 || d.step*float32(w)+d.least != c.Value(code) {
			t.Errorf("%s: code %d is %v, which is not %d steps above the least", c, code, c.Value(code), w)
		}
	}
}

// checkBlock compares the facts of a row of blocks.
func checkBlock(t *testing.T, b *Block) {
	scales := 1
	if b.Biased {
		scales = 2
	}
	switch b.Len {
	case 1:
		if b.widen == nil || b.Group != 0 {
			t.Errorf("%s: nothing widens it, or its numbers have groups", b)
		}
		return
	case 32:
		size := 2*len(b.Halves) + b.Bits*32/8
		if b.Power {
			scales, size = 0, size+1
		}
		if b.Group != 32 || b.Size != size || b.Bits != 4 && b.Bits != 5 && b.Bits != 8 || b.Table != nil && b.Bits != 4 {
			t.Errorf("%s: blocks of %d bytes with codes of %d bits, want %d bytes", b, b.Size, b.Bits, size)
		}
	case maxBlock:
		if b.whole == nil || b.Group != 16 && b.Group != 32 || b.Power || b.Bits != 0 {
			t.Errorf("%s: nothing takes it apart, or it has what blocks of 32 have", b)
		}
	default:
		t.Errorf("%s: kernels take blocks of 32 and of %d numbers, not of %d", b, maxBlock, b.Len)
	}
	if len(b.Halves) != scales || slices.ContainsFunc(b.Halves, func(at int) bool { return at < 0 || at+2 > b.Size }) {
		t.Errorf("%s: fp16 numbers at %d of %d bytes, want %d", b, b.Halves, b.Size, scales)
	}
	if b.Biased && b.Least != 0 {
		t.Errorf("%s has biases and a least code", b)
	}
}

// The pages for users name every format of GGUF files.
func TestBlocksAreDocumented(t *testing.T) {
	for _, page := range []string{"formats.md", "convert.md"} {
		raw, err := os.ReadFile("../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range Blocks() {
			if !regexp.MustCompile(`\b` + b.Name + `\b`).Match(raw) {
				t.Errorf("docs/%s does not name %s", page, b)
			}
		}
	}
}
