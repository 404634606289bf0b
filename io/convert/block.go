package convert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// op is how a block's bytes are computed from the source's.
type op uint8

const (
	copyBytes  op = iota // of one array
	widen                // to F32
	widenShift           // to F32, plus 1
	widenLog             // to F32, the logarithm of what is stored with its sign changed
	narrow               // to BF16, rounded
	minusEight           // BF16 scales times -8
	quantise             // a part of an affine matrix, each from the same numbers
	zeros                // which nothing reads
	recode               // a part of a matrix, by its recipe
)

// block is one array of the target and how to compute it. Nothing is read before write.
type block struct {
	name   string
	dtype  safetensors.DType
	shape  []int
	bytes  int64
	op     op
	array  quant.Part   // which array of the matrix; for copies also of the source
	format quant.Format // of the target, for codes
	src    *numbers     // shared by the blocks of one matrix
}

// codes reports whether the block is the codes of a matrix.
func (b *block) codes() bool { return b.array == quant.Weight && b.format.Codes() }

// newBlock fills in the size.
func newBlock(b block) (block, error) {
	n, err := b.dtype.Bytes(b.shape)
	if err != nil {
		return block{}, &SourceError{Tensor: b.src.m.weight.Name, Got: err.Error()}
	}
	b.bytes = int64(n)
	return b, nil
}

// chunkElements is how many numbers are converted at a time. It is a multiple of every group size.
const chunkElements = 1 << 20

// emitter writes blocks, one after the other. It belongs to one goroutine.
type emitter struct {
	w      io.Writer
	drop   func([]byte) // is told which part of the source will not be read again
	floats []float32    // [chunkElements]
	out    []byte       // [4*chunkElements]
	panels arranger
	// scales and biases of the matrix whose codes were written last, [maxGroups*2]; valid if made
	// is that matrix.
	scales, biases []byte
	made           *numbers
}

// maxGroups bounds the scales and biases that are kept while codes are written. Those of a larger
// matrix, with over 2^28 numbers, are computed again.
const maxGroups = 1 << 22

func newEmitter(drop func([]byte)) *emitter {
	return &emitter{drop: drop, floats: make([]float32, chunkElements), out: make([]byte, 4*chunkElements)}
}

// write computes a block's bytes piece by piece.
func (e *emitter) write(b block) error {
	if b.format.Layout != quant.Panels {
		return e.rows(e.w, b)
	}
	e.panels.begin(e.w, b)
	err := e.rows(&e.panels, b)
	if err == nil && len(e.panels.part) > 0 {
		panic(fmt.Sprintf("convert: block %s of %v ends within a panel", b.name, b.shape))
	}
	return err
}

// rows writes the rows of a block to w in order.
func (e *emitter) rows(w io.Writer, b block) error {
	switch b.op {
	case copyBytes:
		for _, data := range b.src.bytes(b.array) {
			if b.array == quant.Scales {
				if err := checkScales(b, data); err != nil {
					return err
				}
			}
			if err := e.copy(w, data); err != nil {
				return err
			}
		}
		return nil
	case minusEight:
		return e.minusEight(w, b.src.bytes(quant.Scales))
	case zeros:
		_, err := w.Write(make([]byte, b.bytes))
		return err
	case recode:
		if b.array != quant.Weight {
			return e.recodeNumbers(w, b)
		}
	case quantise:
		if b.array == quant.Weight {
			e.keep(b)
		} else if kept := e.kept(b); kept != nil {
			_, err := w.Write(kept)
			return err
		}
	}
	total := b.src.count()
	for first := 0; first < total; first += chunkElements {
		n := min(chunkElements, total-first)
		out, err := e.convert(b, first, n)
		if err != nil {
			return err
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		b.src.drop(first, n, e.drop)
	}
	return nil
}

// keep makes room for the scales and biases of the matrix whose codes come next.
func (e *emitter) keep(b block) {
	e.made = nil
	n := b.src.count()
	if n/b.format.Group() > maxGroups {
		return
	}
	e.made = b.src
	scales, biases := b.format.ScaleBytes(1, n), b.format.BiasBytes(1, n)
	e.scales, e.biases = slices.Grow(e.scales[:0], scales)[:scales], slices.Grow(e.biases[:0], biases)[:biases]
}

// kept returns the bytes of scales or biases that were computed along with their codes, or nil.
func (e *emitter) kept(b block) []byte {
	switch {
	case e.made != b.src:
		return nil
	case b.array == quant.Scales:
		return e.scales
	}
	return e.biases
}

func (e *emitter) copy(w io.Writer, data []byte) error {
	const piece = 4 * chunkElements
	for len(data) > 0 {
		part := data[:min(piece, len(data))]
		if _, err := w.Write(part); err != nil {
			return err
		}
		e.drop(part)
		data = data[len(part):]
	}
	return nil
}

// minusEightOf returns -8 times a scale. The product is exact in bf16 unless the scale is among the
// largest.
func minusEightOf(scale []byte) uint16 {
	return quant.F32ToBF16(-8 * quant.BF16ToF32(binary.LittleEndian.Uint16(scale)))
}

// minusEight writes scales times -8.
func (e *emitter) minusEight(w io.Writer, scales [][]byte) error {
	for _, data := range scales {
		for len(data) > 0 {
			part := data[:min(len(e.out), len(data))]
			for i := 0; i < len(part); i += 2 {
				binary.LittleEndian.PutUint16(e.out[i:], minusEightOf(part[i:]))
			}
			if _, err := w.Write(e.out[:len(part)]); err != nil {
				return err
			}
			e.drop(part)
			data = data[len(part):]
		}
	}
	return nil
}

// convert returns the target's bytes of n elements from first on. They are valid until the next
// call.
func (e *emitter) convert(b block, first, n int) ([]byte, error) {
	// A work item is whole groups, so that codes and scales split at bytes.
	const grain = 128
	var out []byte
	switch b.op {
	case widen, widenShift, widenLog:
		out = e.out[:4*n]
	case narrow:
		out = e.out[:2*n]
	case quantise, recode:
		out = e.out[:b.format.PartBytes(b.array, 1, n)]
	default:
		panic(fmt.Sprintf("convert: block %s has operation %d", b.name, b.op))
	}
	err := parallel((n+grain-1)/grain, 64, func(lo, hi int) error {
		lo, hi = lo*grain, min(hi*grain, n)
		if b.op == recode {
			return recodeCodes(b, out[b.format.WeightBytes(1, lo):], first+lo, hi-lo)
		}
		x := e.floats[lo:hi]
		if err := b.src.fill(x, first+lo); err != nil {
			return err
		}
		var err error
		switch b.op {
		case quantise:
			err = e.quantise(b, out, x, first, lo)
		case narrow:
			for i, v := range x {
				binary.LittleEndian.PutUint16(out[2*(lo+i):], quant.F32ToBF16(v))
			}
		case widenShift:
			for i := range x {
				x[i]++
			}
			putF32(out[4*lo:], x)
		case widenLog:
			if i := logOfMinus(x); i >= 0 {
				err = &SourceError{Tensor: b.src.m.weight.Name, Got: fmt.Sprint(x[i]), Want: "a finite number below 0, the rate at which a head forgets"}
			}
			putF32(out[4*lo:], x)
		default:
			putF32(out[4*lo:], x)
		}
		var bad *quant.ValueError
		if errors.As(err, &bad) {
			at, _ := b.src.element(first + lo + bad.Index)
			bad.Index = at
			return fmt.Errorf("convert: tensor %q: %w", b.src.m.weight.Name, bad)
		}
		return err
	})
	return out, err
}

// putF32 stores numbers.
func putF32(out []byte, x []float32) {
	for i, v := range x {
		binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(v))
	}
}

// logOfMinus replaces each number by the logarithm of its opposite, and returns the index of the
// first that has none, or -1.
func logOfMinus(x []float32) int {
	for i, v := range x {
		if !(v < 0) || math.IsInf(float64(v), 0) {
			return i
		}
		x[i] = float32(math.Log(-float64(v)))
	}
	return -1
}

// quantise writes a part of the numbers x to out, where they begin at element at; they are first+at
// of the matrix. With the codes it keeps scales and biases.
func (e *emitter) quantise(b block, out []byte, x []float32, first, at int) error {
	var parts [quant.NumParts][]byte
	if b.array == quant.Weight && e.made != nil {
		parts[quant.Scales] = e.scales[b.format.ScaleBytes(1, first+at):]
		parts[quant.Biases] = e.biases[b.format.BiasBytes(1, first+at):]
	}
	parts[b.array] = out[b.format.PartBytes(b.array, 1, at):]
	return b.format.Quantize(parts[quant.Weight], parts[quant.Scales], parts[quant.Biases], x)
}

// parallel divides 0..n into a range for each processor and runs fn on them. A goroutine is worth
// at least worth items. It returns the error of the first range that fails.
func parallel(n, worth int, fn func(lo, hi int) error) error {
	workers := min(runtime.GOMAXPROCS(0), n/worth+1)
	if workers <= 1 {
		return fn(0, n)
	}
	errs := make([]error, workers)
	done := make(chan struct{})
	for i := range workers {
		go func() {
			errs[i] = guard(func() error { return fn(n*i/workers, n*(i+1)/workers) })
			done <- struct{}{}
		}()
	}
	for range workers {
		<-done
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
