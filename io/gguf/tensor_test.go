package gguf

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// Every number of every type is, to the last bit, what make_gguf.py computed from the codes. Only a
// zero may have another sign.
func TestFloats(t *testing.T) {
	m, want := open(t, "types.gguf"), read(t, "types.f32")
	seen := map[*quant.Block]bool{}
	for x := range m.Tensors {
		got := make([]float32, x.Elements())
		if err := x.Floats(got, 0); err != nil {
			t.Fatal(err)
		}
		wrong := 0
		for i, v := range got {
			bits := binary.LittleEndian.Uint32(want[4*i:])
			if math.Float32bits(v) == bits || v == 0 && bits == 1<<31 {
				continue
			}
			if wrong++; wrong < 4 {
				t.Errorf("%s: number %d is %v, want %v (%#x)", x.Name, i, v, math.Float32frombits(bits), bits)
			}
		}
		want = want[4*len(got):]
		seen[x.Type.Format] = true
	}
	if len(seen) != len(quant.Blocks()) || len(want) != 0 {
		t.Errorf("%d of %d formats, %d bytes left", len(seen), len(quant.Blocks()), len(want))
	}
}

// Parts of a tensor are whole blocks of it.
func TestSomeFloats(t *testing.T) {
	m := open(t, "types.gguf")
	x := m.Tensor("q4_k.weight")
	all, some := make([]float32, 512), make([]float32, 256)
	if err := errors.Join(x.Floats(all, 0), x.Floats(some, 256)); err != nil {
		t.Fatal(err)
	}
	for i, v := range some {
		if math.Float32bits(v) != math.Float32bits(all[256+i]) {
			t.Fatalf("number %d is %v as part and %v in all", 256+i, v, all[256+i])
		}
	}
	for _, c := range []struct{ n, first int }{{256, 1}, {255, 0}, {256, 512}, {512, 256}, {256, -256}} {
		if err := x.Floats(make([]float32, c.n), c.first); err == nil {
			t.Errorf("%d numbers from %d on are taken", c.n, c.first)
		}
	}
}

// Types without a rule have sizes, so that their files open, and are refused by name.
func TestTypesWithoutRule(t *testing.T) {
	bits := map[string]float64{"IQ1_S": 1.5625, "IQ1_M": 1.75, "IQ2_XXS": 2.0625, "IQ2_XS": 2.3125, "IQ2_S": 2.5625, "IQ3_XXS": 3.0625, "IQ3_S": 3.4375}
	for _, s := range sized {
		h, err := Parse("file", forge(3, 1, 0).tensor("a", s.ID, 0, uint64(2*s.BlockLen)).data(2*s.BlockBytes))
		if err != nil {
			t.Errorf("%v: %v", &s, err)
			continue
		}
		x := &h.Tensors[0]
		var refused *UnpackError
		if err := x.Floats(make([]float32, s.BlockLen), 0); !errors.As(err, &refused) || refused.Type.Name != s.Name || refused.Tensor != "a" {
			t.Errorf("%v: got %v", &s, err)
		}
		if want, ok := bits[s.Name]; ok && float64(s.BlockBytes*8)/float64(s.BlockLen) != want {
			t.Errorf("%v takes %d bytes for %d numbers, want %v bits", &s, s.BlockBytes, s.BlockLen, want)
		}
	}
	if n := len(quant.Blocks()); len(types) != n+len(sized) {
		t.Errorf("%d types, %d and %d: a number is there twice", len(types), n, len(sized))
	}
}
