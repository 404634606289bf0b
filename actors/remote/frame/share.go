package frame

import (
	"encoding/binary"
	"fmt"
)

// A Share is: epoch (4 bytes), how many experts (4 bytes), and each, as layer·Experts+expert (4
// bytes each).
const shareFixed = 8

// Placed is a Share: what is a host's own.
type Placed struct {
	Epoch uint32
	Keys  []int32 // layer·Experts+expert, those first that are used most
}

// AppendShare appends a Share. Experts beyond a frame's size are left out: the host reads them when
// they are asked for.
func AppendShare(dst []byte, epoch uint32, keys []int32) []byte {
	from := len(dst)
	keys = keys[:min(len(keys), (MaxBytes-shareFixed)/4)]
	dst = binary.LittleEndian.AppendUint32(begin(dst, Share, 0), epoch)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(keys)))
	for _, k := range keys {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(k))
	}
	return end(dst, from)
}

// Placed reads a Share.
func (f *Frame) Placed(s Shape) (p Placed, err error) {
	if f.Kind != Share {
		return p, ErrKind
	}
	if len(f.Body) < shareFixed || uint64(len(f.Body)) != shareFixed+4*uint64(binary.LittleEndian.Uint32(f.Body[4:])) {
		return p, fmt.Errorf("%w: a share of %d bytes", ErrContent, len(f.Body))
	}
	p.Epoch, p.Keys = binary.LittleEndian.Uint32(f.Body), make([]int32, 0, (len(f.Body)-shareFixed)/4)
	for b := f.Body[shareFixed:]; len(b) > 0; b = b[4:] {
		key := binary.LittleEndian.Uint32(b)
		if key >= uint32(s.Layers*s.Experts) {
			return p, fmt.Errorf("%w: a share with expert %d of %d", ErrContent, key, s.Layers*s.Experts)
		}
		p.Keys = append(p.Keys, int32(key))
	}
	return p, nil
}
