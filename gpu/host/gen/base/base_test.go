package base

import "testing"

// TestArgs compares with places that Go's vet confirms in the assembly of NEON, which is written
// with them.
func TestArgs(t *testing.T) {
	for _, c := range []struct {
		signature string
		size      int
		offsets   map[string]int
	}{
		{"(a *byte)", 8, map[string]int{"a": 0}},
		{"(row *byte, x *float32, blocks int) (y float32)", 28, map[string]int{"row": 0, "x": 8, "blocks": 16, "y": 24}},
		{"(row, x0, x1 *float32, blocks int) (y0, y1 float32)", 40, map[string]int{"x1": 16, "y0": 32, "y1": 36}},
		{"(y, x []float32, f, h float32)", 56, map[string]int{"x": 24, "f": 48, "h": 52}},
		{"(c, a []float32, rows int, sum bool, next *byte)", 72, map[string]int{"rows": 48, "sum": 56, "next": 64}},
		{"(x []float32, r float32) (sum float32)", 36, map[string]int{"r": 24, "sum": 32}},
	} {
		f := Func{Signature: c.signature}
		a := f.Args()
		if a.Size != c.size {
			t.Errorf("%s: %d bytes, want %d", c.signature, a.Size, c.size)
		}
		for name, want := range c.offsets {
			if got := a.Offset(name); got != want {
				t.Errorf("%s: %s at %d, want %d", c.signature, name, got, want)
			}
		}
	}
}

// TestFunctions checks that every product takes a tile of one row, and that names are not used
// twice.
func TestFunctions(t *testing.T) {
	for _, isa := range []ISA{AVX512, AVX2, NEON} {
		seen := map[string]bool{}
		for _, f := range Functions(isa) {
			if seen[f.Name] {
				t.Errorf("two functions are called %s", f.Name)
			}
			seen[f.Name] = true
		}
		if !seen[Product(isa, 4, 1, true)] {
			t.Errorf("%s has no product of one row", isa.Name)
		}
	}
}
