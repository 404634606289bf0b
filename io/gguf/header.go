package gguf

import (
	"cmp"
	"math/bits"
	"slices"
)

// Header is what a file says before its data.
type Header struct {
	Version   int // 2 or 3
	Metadata  *Metadata
	Tensors   []Tensor // in the order of the file
	Alignment int      // bytes; a power of two
}

const (
	magicLittle = "GGUF"
	magicBig    = "FUGG" // of some writers on machines in big-endian order

	// Models have some hundred keys and some thousand tensors.
	maxKeys    = 1 << 16
	maxTensors = 1 << 20

	maxAxes          = 4
	defaultAlignment = 32
	maxAlignment     = 1 << 30
	alignmentKey     = "general.alignment"
	// the bytes of the smallest description of a tensor: a name of one byte, axes, type, offset
	leastTensor = 8 + 1 + 4 + 4 + 8
)

// Parse reads the header of a file, data being the whole file at path. The error is a *FormatError.
// What it returns are views of data.
func Parse(path string, data []byte) (*Header, error) {
	c := &cursor{path: path, data: data}
	h := &Header{Alignment: defaultAlignment}
	h.Version = c.begin()
	tensors, keys := c.limit(c.u64(), maxTensors, "tensors"), c.limit(c.u64(), maxKeys, "keys")
	h.Metadata = c.metadata(c.count(keys, leastEntry, "keys"))
	c.alignment(h)
	h.Tensors = c.tensors(c.count(tensors, leastTensor, "tensors"))
	c.places(h)
	if c.err != nil {
		return nil, c.err
	}
	return h, nil
}

// begin reads the magic and the version.
func (c *cursor) begin() int {
	magic := string(c.data[:min(4, len(c.data))])
	switch {
	case magic == magicBig:
		c.fail(ErrBigEndian, "%v", ErrBigEndian)
	case magic != magicLittle:
		c.fail(ErrNotGGUF, "it begins with %q", magic)
	}
	c.take(4)
	v := c.u32()
	switch {
	case c.err != nil:
	case v&0xffff == 0 && v != 0:
		c.fail(ErrBigEndian, "%v", ErrBigEndian)
	case v != 2 && v != 3:
		c.fail(ErrVersion, "version %d: 2 and 3 are read", v)
	}
	return int(v)
}

// alignment takes over what the metadata says of the places of tensors.
func (c *cursor) alignment(h *Header) {
	v, ok := h.Metadata.Get(alignmentKey)
	if c.err != nil || !ok {
		return
	}
	n, ok := v.Uint()
	if !ok || n == 0 || n > maxAlignment || n&(n-1) != 0 {
		c.name = alignmentKey
		c.fail(nil, "%d is no alignment: it must be a power of two up to %d", n, maxAlignment)
		return
	}
	h.Alignment = int(n)
}

// tensors reads n descriptions. Their data has no place yet: OffsetBytes is from where data begins,
// and Data has the right length and no content.
func (c *cursor) tensors(n int) []Tensor {
	var out []Tensor
	seen := map[string]bool{}
	for i := 0; i < n && c.err == nil; i++ {
		t := c.tensor()
		if seen[t.Name] {
			c.fail(nil, "the tensor is there twice")
		}
		seen[t.Name] = true
		out = append(out, t)
	}
	c.name = ""
	return out
}

// tensor reads one description.
func (c *cursor) tensor() (t Tensor) {
	t.Name = c.text("tensor's name")
	c.name = t.Name
	axes := c.u32()
	if c.err == nil && axes > maxAxes {
		c.fail(nil, "%d axes: it must have at most %d", axes, maxAxes)
	}
	if c.err != nil {
		return t
	}
	shape := make([]uint64, axes)
	for i := range shape {
		shape[len(shape)-1-i] = c.u64() // files have the fastest first
	}
	id := c.u32()
	offset := c.u64()
	if t.Type = types[id]; t.Type == nil {
		c.fail(ErrType, "%s", unknownType(id))
	}
	if c.err != nil {
		return t
	}
	size := c.size(t.Type, shape)
	if offset > uint64(len(c.data)) || size > uint64(len(c.data)) {
		c.fail(ErrTruncated, "%s %v takes %d bytes at byte %d of the data, in a file of %d", t.Type, shape, size, offset, len(c.data))
		return t
	}
	for _, n := range shape {
		t.Shape = append(t.Shape, int(n))
	}
	// The same bytes for all: places cuts the right ones.
	t.OffsetBytes, t.Data = int64(offset), c.data[:size]
	return t
}

// size returns the bytes of a tensor; more than there can be if they overflow.
func (c *cursor) size(t *Type, shape []uint64) uint64 {
	n := uint64(1)
	for _, axis := range shape {
		hi, lo := bits.Mul64(n, axis)
		if axis == 0 {
			c.fail(nil, "shape %v has an empty axis", shape)
		}
		if hi != 0 || lo > 1<<56 {
			c.fail(ErrTruncated, "shape %v has more elements than a file can hold", shape)
			return 0
		}
		n = lo
	}
	row := uint64(1)
	if len(shape) > 0 {
		row = shape[len(shape)-1]
	}
	if row%uint64(t.BlockLen) != 0 {
		c.fail(nil, "rows of %d elements are not whole blocks of %s, which have %d", row, t, t.BlockLen)
	}
	return n / uint64(t.BlockLen) * uint64(t.BlockBytes)
}

// places turns offsets within the data to those of the file, and checks that every tensor lies in
// the file, where it may, and in no other tensor.
func (c *cursor) places(h *Header) {
	if c.err != nil || len(h.Tensors) == 0 {
		return
	}
	mask := uint64(h.Alignment - 1)
	base := (uint64(c.at) + mask) &^ mask
	for i := range h.Tensors {
		t := &h.Tensors[i]
		c.name = t.Name
		offset, end := uint64(t.OffsetBytes), base+uint64(t.OffsetBytes)+uint64(len(t.Data))
		if offset&mask != 0 {
			c.fail(nil, "its data begins at byte %d, which is not a multiple of %d", offset, h.Alignment)
		}
		if end > uint64(len(c.data)) {
			c.fail(ErrTruncated, "its data ends at byte %d of %d", end, len(c.data))
		}
		if c.err != nil {
			return
		}
		t.OffsetBytes, t.Data = int64(base+offset), c.data[base+offset:end:end]
	}
	c.overlaps(h.Tensors)
}

// overlaps refuses tensors that share bytes.
func (c *cursor) overlaps(tensors []Tensor) {
	order := make([]*Tensor, len(tensors))
	for i := range tensors {
		order[i] = &tensors[i]
	}
	slices.SortFunc(order, func(a, b *Tensor) int { return cmp.Compare(a.OffsetBytes, b.OffsetBytes) })
	for i, t := range order[1:] {
		before := order[i]
		if before.OffsetBytes+int64(len(before.Data)) > t.OffsetBytes {
			c.name = t.Name
			c.fail(nil, "its data begins at byte %d, inside that of %q", t.OffsetBytes, before.Name)
			return
		}
	}
}

// IsGGUF reports whether a file that begins with these bytes, at least 4, says that it is a GGUF
// file, whether or not this package reads it.
func IsGGUF(begin []byte) bool {
	s := string(begin[:min(4, len(begin))])
	return s == magicLittle || s == magicBig
}
