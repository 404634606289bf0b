package quant

import (
	"fmt"
	"slices"
	"strings"
)

// Part is one of the arrays that a matrix is stored in.
type Part uint8

// The parts, in the order in which records hold them.
const (
	Weight   Part = iota // numbers or codes
	Scales               // of groups
	Biases               // of groups; or factors of rows, see Coding.Factor
	NumParts = iota
)

var partNames = [NumParts]string{Weight: "weight", Scales: "scales", Biases: "biases"}

// String returns the part's name in files.
func (p Part) String() string { return partNames[p] }

// Array describes an array of a matrix.
type Array struct {
	Part  Part
	DType string // of elements, as in safetensors: U32 for words of codes
	Shape []int  // of a matrix in rows: codes count words
	Bytes int
}

// PartBytes returns the bytes of a part of a [rows, cols] matrix, 0 if the format has none.
func (f Format) PartBytes(p Part, rows, cols int) int {
	switch p {
	case Weight:
		return f.WeightBytes(rows, cols)
	case Scales:
		return f.ScaleBytes(rows, cols)
	default:
		return f.BiasBytes(rows, cols)
	}
}

// numberBytes returns the bytes of a scale, a bias or a factor.
func (f Format) numberBytes(p Part) int {
	if p == Biases && f.Coding().Factor() {
		return scaleF32.bytes
	}
	return f.Coding().ScaleBytes()
}

// Arrays describes the arrays of a [rows, cols] matrix, in the order of parts.
func (f Format) Arrays(rows, cols int) []Array {
	d := &codings[f.Coding()]
	out := []Array{{Part: Weight, DType: d.dtype, Shape: []int{rows, cols}}}
	if f.Codes() {
		out[0].Shape[1] = cols * d.bits / 8 / d.word
		groups := cols / f.Group()
		out = append(out, Array{Part: Scales, DType: d.scale.dtype, Shape: []int{rows, groups}})
		if d.biased {
			out = append(out, Array{Part: Biases, DType: d.scale.dtype, Shape: []int{rows, groups}})
		}
		if d.factor {
			out = append(out, Array{Part: Biases, DType: scaleF32.dtype, Shape: []int{rows}})
		}
	}
	for i := range out {
		out[i].Bytes = f.PartBytes(out[i].Part, rows, cols)
	}
	return out
}

// FromArrays returns the format, in layout Rows, of a [rows, cols] matrix whose arrays find
// describes; ok is false for a part that there is not. The error says what was found.
func FromArrays(rows, cols int, find func(p Part) (dtype string, shape []int, ok bool)) (Format, error) {
	for _, f := range Formats() {
		if rows > 0 && f.Validate(cols) == nil && f.hasArrays(rows, cols, find) {
			return f, nil
		}
	}
	var found []string
	for p := range Part(NumParts) {
		if dtype, shape, ok := find(p); ok {
			found = append(found, fmt.Sprintf("%s %s %v", p, dtype, shape))
		}
	}
	return Format{}, fmt.Errorf("quant: no format of a matrix [%d, %d] has %s", rows, cols, strings.Join(found, ", "))
}

func (f Format) hasArrays(rows, cols int, find func(p Part) (dtype string, shape []int, ok bool)) bool {
	arrays := f.Arrays(rows, cols)
	for p := range Part(NumParts) {
		dtype, shape, ok := find(p)
		if ok != (int(p) < len(arrays)) {
			return false
		}
		if ok && (dtype != arrays[p].DType || !slices.Equal(shape, arrays[p].Shape)) {
			return false
		}
	}
	return true
}

// DTypes returns the types of elements that a part has in some format.
func DTypes(p Part) []string { return dtypes(p, Formats()) }

// CodeDTypes returns the types of the words of codes, which tell codes from numbers.
func CodeDTypes() []string {
	return dtypes(Weight, slices.DeleteFunc(Formats(), func(f Format) bool { return !f.Codes() }))
}

func dtypes(p Part, formats []Format) (all []string) {
	for _, f := range formats {
		for _, a := range f.Arrays(1, max(1, f.Group())) {
			if a.Part == p && !slices.Contains(all, a.DType) {
				all = append(all, a.DType)
			}
		}
	}
	return all
}
