package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// DType is an element type, spelled as in the header.
type DType string

// The element types that the project computes with. Other types can be read and copied too.
const (
	F32  DType = "F32"
	F16  DType = "F16"
	BF16 DType = "BF16"
	I32  DType = "I32"
	U32  DType = "U32"
	U8   DType = "U8"
	// F8E4M3 has no infinities; quant.E4M3ToF32 widens it.
	F8E4M3 DType = "F8_E4M3"
)

// elementBits are the sizes of the format's element types.
var elementBits = map[DType]int{
	"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E5M2FNUZ": 8, "F8_E4M3FNUZ": 8,
	"F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
	"I16": 16, "U16": 16, "F16": 16, "BF16": 16,
	"I32": 32, "U32": 32, "F32": 32,
	"I64": 64, "U64": 64, "F64": 64, "C64": 64,
}

// Bytes returns the bytes of an array of this type and shape, outermost axis first. An array
// without axes has one element. The error says what is wrong with the type or the shape.
func (d DType) Bytes(shape []int) (int, error) {
	width, ok := elementBits[d]
	if !ok {
		return 0, fmt.Errorf("unknown dtype %q", string(d))
	}
	n := uint64(width)
	zero := false
	for _, s := range shape {
		if s < 0 {
			return 0, fmt.Errorf("shape %v has a negative axis", shape)
		}
		if s == 0 {
			zero = true
			continue
		}
		hi, lo := bits.Mul64(n, uint64(s))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, fmt.Errorf("shape %v overflows", shape)
		}
		n = lo
	}
	if zero {
		return 0, nil
	}
	if n%8 != 0 {
		return 0, fmt.Errorf("shape %v of %s does not fill whole bytes", shape, d)
	}
	return int(n / 8), nil
}

// Tensor is a named array in row-major order. The Data of an opened file is a view of its read-only
// mapping, with no particular alignment.
type Tensor struct {
	Name  string
	DType DType
	Shape []int // outermost first; must not be changed
	Data  []byte
}

// Elements returns the number of elements.
func (t Tensor) Elements() int {
	if width := elementBits[t.DType]; width > 0 {
		return len(t.Data) * 8 / width
	}
	return 0
}

// Floats widens elements first, first+1, … to dst. It is exact. It fails if the type is not F32,
// BF16 or F16, or if the tensor has too few elements.
func (t Tensor) Floats(dst []float32, first int) error {
	if n := t.Elements(); first < 0 || len(dst) > n-first {
		return fmt.Errorf("safetensors: tensor %q: elements %d to %d of %d", t.Name, first, first+len(dst), n)
	}
	switch t.DType {
	case F32:
		src := t.Data[4*first:]
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case BF16:
		src := t.Data[2*first:]
		for i := range dst {
			dst[i] = quant.BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case F16:
		src := t.Data[2*first:]
		for i := range dst {
			dst[i] = quant.F16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	default:
		return fmt.Errorf("safetensors: tensor %q: %s elements are not floating-point numbers of 16 or 32 bits", t.Name, t.DType)
	}
	return nil
}

// FormatError reports an invalid file.
type FormatError struct {
	Path   string
	Tensor string // "" if no single tensor is at fault
	Why    string
	Err    error // cause, if another error is one
}

func (e *FormatError) Error() string {
	if e.Tensor == "" {
		return fmt.Sprintf("safetensors: %s: %s", e.Path, e.Why)
	}
	return fmt.Sprintf("safetensors: %s: tensor %q: %s", e.Path, e.Tensor, e.Why)
}

func (e *FormatError) Unwrap() error { return e.Err }
