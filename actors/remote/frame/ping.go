package frame

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// MostPadding is the most bytes that a Ping carries for nothing, or asks to be sent back.
const MostPadding = MaxBytes - pingFixed

// pingFixed is how many bytes the Pong shall have, before the padding.
const pingFixed = 4

// AppendPing appends a Ping that carries so many bytes for nothing, and is answered by a Pong of so
// many others. They measure how fast the network is.
func AppendPing(dst []byte, id uint64, padding, back int) []byte {
	from := len(dst)
	dst = binary.LittleEndian.AppendUint32(begin(dst, Ping, id), uint32(back))
	dst = slices.Grow(dst, padding)
	return end(dst[:len(dst)+padding], from)
}

// Back returns how many bytes the Pong to a Ping shall have.
func (f *Frame) Back() (int, error) {
	if f.Kind != Ping {
		return 0, ErrKind
	}
	if len(f.Body) == 0 {
		return 0, nil
	}
	if len(f.Body) < pingFixed {
		return 0, fmt.Errorf("%w: a ping of %d bytes", ErrContent, len(f.Body))
	}
	n := binary.LittleEndian.Uint32(f.Body)
	if n > MostPadding {
		return 0, fmt.Errorf("%w: a ping that wants %d bytes, the most is %d", ErrContent, n, MostPadding)
	}
	return int(n), nil
}

// AppendPong appends the Pong to a Ping that wants so many bytes.
func AppendPong(dst []byte, id uint64, back int) []byte {
	from := len(dst)
	dst = slices.Grow(begin(dst, Pong, id), back)
	return end(dst[:len(dst)+back], from)
}
