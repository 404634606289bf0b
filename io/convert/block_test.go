package convert

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// large is a tensor of more than two chunks, the last of which ends in the middle of a work item.
func large() (safetensors.Tensor, []float32) {
	const n = 2*chunkElements + 5*64
	rng := rand.New(rand.NewPCG(1, 1))
	t := safetensors.Tensor{Name: "large", DType: safetensors.BF16, Shape: []int{n / 64, 64}, Data: make([]byte, 2*n)}
	x := make([]float32, n)
	for i := range x {
		b := quant.F32ToBF16(float32(rng.NormFloat64()))
		binary.LittleEndian.PutUint16(t.Data[2*i:], b)
		x[i] = quant.BF16ToF32(b)
	}
	return t, x
}

func matrixOf(t safetensors.Tensor) *numbers {
	return (&found{rows: t.Shape[0], cols: t.Shape[1], weight: t}).all()
}

// A matrix that several workers convert in pieces equals one that is converted at once, whether
// scales and biases are kept or computed again.
func TestEmitterPieces(t *testing.T) {
	src, x := large()
	f := quant.Affine(4, 64)
	want := make([][]byte, 3)
	for i, n := range []int{len(x) / 2, len(x) / 32, len(x) / 32} {
		want[i] = make([]byte, n)
	}
	if err := f.Quantize(want[0], want[1], want[2], x); err != nil {
		t.Fatal(err)
	}
	for _, keep := range []bool{true, false} {
		dropped := 0
		x := matrixOf(src)
		e := newEmitter(func(b []byte) { dropped += len(b) })
		for i, p := range []quant.Part{quant.Weight, quant.Scales, quant.Biases} {
			var got bytes.Buffer
			e.w = &got
			if !keep {
				e.made = nil
			}
			if err := e.write(block{op: quantise, array: p, format: f, src: x}); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want[i]) {
				t.Errorf("keep %v: part %d: %d bytes differ from the %d wanted", keep, i, got.Len(), len(want[i]))
			}
		}
		if wantDropped := map[bool]int{true: 1, false: 3}[keep] * len(src.Data); dropped != wantDropped {
			t.Errorf("keep %v: %d bytes of the source dropped, want %d", keep, dropped, wantDropped)
		}
	}
	// Kept scales and biases belong to one matrix.
	e := newEmitter(func([]byte) {})
	e.w = &bytes.Buffer{}
	if err := e.write(block{op: quantise, format: f, src: matrixOf(src)}); err != nil {
		t.Fatal(err)
	}
	if e.kept(block{op: quantise, array: quant.Scales, format: f, src: matrixOf(src)}) != nil {
		t.Error("scales of another matrix are taken")
	}
}

func TestEmitterWiden(t *testing.T) {
	src, x := large()
	for o, shift := range map[op]float32{widen: 0, widenShift: 1} {
		var got bytes.Buffer
		e := newEmitter(func([]byte) {})
		e.w = &got
		if err := e.write(block{op: o, src: matrixOf(src)}); err != nil {
			t.Fatal(err)
		}
		if got.Len() != 4*len(x) {
			t.Fatalf("%d bytes, want %d", got.Len(), 4*len(x))
		}
		for i, v := range x {
			if b := math.Float32frombits(binary.LittleEndian.Uint32(got.Bytes()[4*i:])); b != v+shift {
				t.Fatalf("element %d: got %v, want %v + %v", i, b, v, shift)
			}
		}
	}
}

// The index of a number that cannot be quantised counts from the start of the tensor.
func TestEmitterBadNumber(t *testing.T) {
	src, _ := large()
	const at = chunkElements + 777777
	binary.LittleEndian.PutUint16(src.Data[2*at:], 0x7f80)
	e := newEmitter(func([]byte) {})
	e.w = &bytes.Buffer{}
	err := e.write(block{op: quantise, format: quant.Affine(4, 64), src: matrixOf(src)})
	var bad *quant.ValueError
	if !errors.As(err, &bad) || bad.Index != at || !strings.Contains(err.Error(), "large") {
		t.Errorf("got %v, want element %d of large", err, at)
	}
}

func TestParallel(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 1000, 8192} {
		seen := make([]byte, n)
		if err := parallel(n, 64, func(lo, hi int) error {
			for i := lo; i < hi; i++ {
				seen[i]++
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		if i := bytes.IndexFunc(seen, func(r rune) bool { return r != 1 }); i >= 0 {
			t.Errorf("n = %d: %d was done %d times", n, i, seen[i])
		}
	}
	first, second := errors.New("first"), errors.New("second")
	if err := parallel(8192, 64, func(lo, _ int) error {
		if lo == 0 {
			return first
		}
		return second
	}); !errors.Is(err, first) {
		t.Errorf("got %v, want the error of the first range", err)
	}
}
