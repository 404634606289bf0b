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

// op is how a block's bytes are made from the source's.
type op uint8

const (
	copyBytes  op = iota
	widen         // to F32
	widenShift    // to F32, plus 1
	quantCodes    // the three parts of an affine matrix, each from the same numbers
	quantScales
	quantBiases
)

// block is one array of the target and how to make it: nothing is read before write.
type block struct {
	name   string
	dtype  safetensors.DType
	shape  []int
	bytes  int64
	op     op
	format quant.Format       // of the target, for codes
	src    safetensors.Tensor // or a part of one: only DType, Name and Data count
}

// newBlock fills in the size.
func newBlock(name string, dtype safetensors.DType, shape []int, o op, f quant.Format, src safetensors.Tensor) (block, error) {
	n, err := dtype.Bytes(shape)
	if err != nil {
		return block{}, &SourceError{Tensor: src.Name, Got: err.Error()}
	}
	return block{name: name, dtype: dtype, shape: shape, bytes: int64(n), op: o, format: f, src: src}, nil
}

// chunkElements is how many numbers are converted at a time; a multiple of every group size.
const chunkElements = 1 << 20

// emitter writes blocks. It belongs to one goroutine and is used for one after the other.
type emitter struct {
	w      io.Writer
	drop   func([]byte) // tells that a part of the source was read for the last time
	floats []float32    // [chunkElements]
	out    []byte       // [4*chunkElements]
	// scales and biases of the matrix whose codes were written last, [maxGroups*2]; good if made is that matrix's data.
	scales, biases []byte
	made           []byte
}

// maxGroups bounds the scales and biases that are kept while codes are written. Those of a larger matrix, over
// 2^28 numbers, are made again from its numbers.
const maxGroups = 1 << 22

func newEmitter(drop func([]byte)) *emitter {
	return &emitter{drop: drop, floats: make([]float32, chunkElements), out: make([]byte, 4*chunkElements)}
}

// write makes a block's bytes, piece after piece.
func (e *emitter) write(b block) error {
	if b.op == copyBytes {
		return e.copy(b.src.Data)
	}
	if b.op == quantCodes {
		e.keep(b)
	} else if kept := e.kept(b); kept != nil {
		_, err := e.w.Write(kept)
		return err
	}
	total := b.src.Elements()
	for first := 0; first < total; first += chunkElements {
		n := min(chunkElements, total-first)
		out, err := e.convert(b, first, n)
		if err != nil {
			return err
		}
		if _, err := e.w.Write(out); err != nil {
			return err
		}
		width := len(b.src.Data) / total
		e.drop(b.src.Data[first*width : (first+n)*width])
	}
	return nil
}

// keep makes room for scales and biases of the matrix whose codes are about to be made.
func (e *emitter) keep(b block) {
	e.made = nil
	groups := b.src.Elements() / b.format.Group
	if groups > maxGroups {
		return
	}
	e.made = b.src.Data
	e.scales, e.biases = slices.Grow(e.scales[:0], 2*groups)[:2*groups], slices.Grow(e.biases[:0], 2*groups)[:2*groups]
}

// kept returns the bytes of scales or biases that were made with the codes before them, nil if they were not.
func (e *emitter) kept(b block) []byte {
	if len(e.made) == 0 || len(b.src.Data) != len(e.made) || &b.src.Data[0] != &e.made[0] {
		return nil
	}
	switch b.op {
	case quantScales:
		return e.scales
	case quantBiases:
		return e.biases
	}
	return nil
}

func (e *emitter) copy(data []byte) error {
	const piece = 4 * chunkElements
	for len(data) > 0 {
		part := data[:min(piece, len(data))]
		if _, err := e.w.Write(part); err != nil {
			return err
		}
		e.drop(part)
		data = data[len(part):]
	}
	return nil
}

// convert returns the target's bytes of n elements from first on. They are good until the next call.
func (e *emitter) convert(b block, first, n int) ([]byte, error) {
	// What a work item is made of: a whole number of groups, so that codes and scales split at bytes.
	const grain = 128
	var out []byte
	switch b.op {
	case widen, widenShift:
		out = e.out[:4*n]
	case quantCodes:
		out = e.out[:n*b.format.Bits/8]
	case quantScales, quantBiases:
		out = e.out[:n/b.format.Group*2]
	default:
		panic(fmt.Sprintf("convert: block %s has operation %d", b.name, b.op))
	}
	err := parallel((n+grain-1)/grain, func(lo, hi int) error {
		lo, hi = lo*grain, min(hi*grain, n)
		x := e.floats[lo:hi]
		if err := b.src.Floats(x, first+lo); err != nil {
			return err
		}
		var err error
		switch b.op {
		case quantCodes:
			var scales, biases []byte
			if e.made != nil {
				at := (first + lo) / b.format.Group * 2
				scales, biases = e.scales[at:], e.biases[at:]
			}
			err = b.format.Quantize(out[lo*b.format.Bits/8:], scales, biases, x)
		case quantScales:
			err = b.format.Quantize(nil, out[lo/b.format.Group*2:], nil, x)
		case quantBiases:
			err = b.format.Quantize(nil, nil, out[lo/b.format.Group*2:], x)
		case widenShift:
			for i := range x {
				x[i]++
			}
			fallthrough
		default:
			for i, v := range x {
				binary.LittleEndian.PutUint32(out[4*(lo+i):], math.Float32bits(v))
			}
		}
		var bad *quant.ValueError
		if errors.As(err, &bad) {
			bad.Index += first + lo
			return fmt.Errorf("convert: tensor %q: %w", b.src.Name, bad)
		}
		return err
	})
	return out, err
}

// parallel cuts 0..n into one range a processor and runs fn on them. The first error in the order of the ranges wins.
func parallel(n int, fn func(lo, hi int) error) error {
	workers := min(runtime.GOMAXPROCS(0), n/64+1) // small works are not worth a goroutine
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
