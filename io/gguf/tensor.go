package gguf

import "fmt"

// Tensor is a named array in row-major order, of which each row is whole blocks.
type Tensor struct {
	Name        string
	Type        *Type
	Shape       []int  // outermost first, at most 4; must not be changed
	Part        int    // of the file in Model.Files
	OffsetBytes int64  // in that file
	Data        []byte // view of the file
}

// Elements returns the number of elements.
func (t *Tensor) Elements() int { return len(t.Data) / t.Type.BlockBytes * t.Type.BlockLen }

// UnpackError reports a tensor whose type is known by name and size alone.
type UnpackError struct {
	Tensor string
	Type   *Type
}

func (e *UnpackError) Error() string {
	return fmt.Sprintf("gguf: tensor %q is stored as %s, which is not unpacked", e.Tensor, e.Type)
}

// Floats widens elements first, first+1, … to dst, exactly as the type says. Both first and the
// length of dst must be whole blocks. The error is an *UnpackError if the type is not unpacked.
func (t *Tensor) Floats(dst []float32, first int) error {
	f := t.Type.Format
	if f == nil {
		return &UnpackError{Tensor: t.Name, Type: t.Type}
	}
	if n := t.Elements(); first < 0 || len(dst) > n-first || first%f.Len != 0 || len(dst)%f.Len != 0 {
		return fmt.Errorf("gguf: tensor %q: elements %d to %d of %d in blocks of %d", t.Name, first, first+len(dst), n, f.Len)
	}
	f.Unpack(dst, t.Data[f.Bytes(1, first):][:f.Bytes(1, len(dst))])
	return nil
}
