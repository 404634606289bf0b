package gpu

import "unsafe"

// FloatBytes returns the memory of f as bytes, in the machine's order, without a copy.
func FloatBytes(f []float32) []byte {
	if len(f) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(f))), len(f)*4)
}

// IntBytes returns the memory of v as bytes, in the machine's order, without a copy.
func IntBytes(v []int32) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*4)
}

// Floats returns n float32 at the beginning of b without a copy; b must be aligned to 4 bytes and
// hold them.
func Floats(b []byte, n int) []float32 {
	if n == 0 {
		return nil
	}
	_ = b[n*4-1]
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), n)
}
