package launch

import (
	"slices"
	"testing"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
)

// TestLimbParts wants products of the same rows to be one launch, with the parameters of each.
func TestLimbParts(t *testing.T) {
	f := &fake{record: true, limbs: true}
	d, err := New(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	v, q := newBuffer(t, d, 64<<14), newQueue(t, d)
	at := func(i int) gpu.View { return v.At(i << 14) }
	for _, c := range []struct {
		rows   int
		kernel string
		groups [3]int
		split  bool
	}{{1, "limbs_matmul", [3]int{6, 1, 1}, false}, {7, "limbs_matmul", [3]int{6, 1, 1}, true}, {17, "limbs_matmul", [3]int{6, 1, 1}, true}} {
		var ops gpu.Commands
		for i := range 3 {
			gpu.Encode(&ops, gpu.MatMul{W: affine(16*(i+1), 64, at(1+i)), X: at(0), Y: at(10 + i), Rows: c.rows})
		}
		f.launched = nil
		if err := wait(t, q, &ops); err != nil {
			t.Fatal(err)
		}
		if (len(f.launched) == 2) != c.split || f.launched[len(f.launched)-1].Kernel.Name != c.kernel {
			t.Fatalf("%d rows: %d launches, the last of %s", c.rows, len(f.launched), f.launched[len(f.launched)-1].Kernel.Name)
		}
		l := f.launched[len(f.launched)-1]
		if l.Groups != c.groups {
			t.Errorf("%d rows: grid %v, want %v", c.rows, l.Groups, c.groups)
		}
		p := l.Args[len(l.Args)-1].Bytes
		if len(p) != 16+3*16 {
			t.Fatalf("%d rows: parameters of %d bytes, want 64", c.rows, len(p))
		}
		parts := unsafe.Slice((*limbPartParams)(unsafe.Pointer(&p[16])), 3)
		for i, part := range parts {
			if part.rows != uint32(16*(i+1)) || part.yStride != part.rows || i > 0 && part.first <= parts[i-1].first {
				t.Errorf("%d rows: part %d is %+v", c.rows, i, part)
			}
		}
	}
}

// TestLimbSwiGLU wants a gate, an up and their SwiGLU to be one launch of few rows, and of many the
// products one.
func TestLimbSwiGLU(t *testing.T) {
	f := &fake{record: true, limbs: true}
	d, err := New(f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	v, q := newBuffer(t, d, 64<<14), newQueue(t, d)
	at := func(i int) gpu.View { return v.At(i << 14) }
	for rows, want := range map[int][]string{1: {"limbs_swiglu"}, 8: {"limbs_split", "limbs_swiglu"}, 17: {"limbs_split", "limbs_matmul", "swiglu"}} {
		var ops gpu.Commands
		for i := range 2 {
			gpu.Encode(&ops, gpu.MatMul{W: affine(32, 64, at(1+i)), X: at(0), Y: at(10 + i), Rows: rows})
		}
		gpu.Encode(&ops, gpu.SwiGLU{Gate: at(10), Up: at(11), Y: at(10), Rows: rows, Dim: 32})
		f.launched = nil
		if err := wait(t, q, &ops); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range f.launched {
			got = append(got, l.Kernel.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d rows: kernels %v, want %v", rows, got, want)
		}
	}
}
