package snapshot

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
)

// WriteOptions say what is written about a state.
type WriteOptions struct {
	// Positions is how many positions the state holds, 0 to MaxPositions.
	Positions int
	// Version is the format's, 1 or 2, and with indexers 4, with windows or narrow values 6. 0
	// means the lowest that holds the state, which more programs read.
	Version int
	// Seal follows the body. nil leaves it out: exactly another program's file, in which damage
	// shows only by accident.
	Seal *Seal
}

// check reports why a state of this shape cannot be written like this. It sets the version.
func (o *WriteOptions) check(s *Shape) error {
	if err := s.Validate(); err != nil {
		return err
	}
	least := s.version()
	if o.Version == 0 {
		o.Version = least
	}
	switch {
	case !s.known(o.Version):
		return wrong(ErrVersion, "version", int64(o.Version), int64(least))
	case o.Version < least:
		e := wrong(ErrUnsupported, "version", int64(o.Version), int64(least))
		e.Detail = "version 1 has no latent attention"
		return e
	case o.Positions < 0 || o.Positions > maxLen:
		return checkLen(int64(o.Positions), lenField, -1)
	case o.Seal != nil && len(o.Seal.Tokens) != 0 && len(o.Seal.Tokens) != o.Positions:
		return wrong(ErrSeal, "seal tokens", int64(len(o.Seal.Tokens)), int64(o.Positions))
	case o.Seal != nil && len(o.Seal.Note) > MaxNote:
		return wrong(ErrSeal, "seal note", int64(len(o.Seal.Note)), MaxNote)
	case o.Seal == nil && !s.hasGrowing():
		return &Error{Kind: ErrUnsupported, Field: lenField, Layer: -1,
			Detail: "no layer keeps positions, so only a seal has a place for their number"}
	case o.Seal == nil && s.interval() == 0:
		return &Error{Kind: ErrUnsupported, Field: fieldNames[1], Layer: -1,
			Detail: "the layers that keep positions do not come at one interval, so only a seal can say which they are"}
	}
	return nil
}

// bytes returns the size of header and body, and of all.
func (o *WriteOptions) bytes(s *Shape) (body, total int64) {
	body = s.bodyBytes(o.Version, o.Positions)
	total = body
	if o.Seal != nil {
		total += o.Seal.bytes(len(s.Layers))
	}
	return body, total
}

// Size returns how many bytes Write writes.
func Size(s *Shape, o WriteOptions) (int64, error) {
	if err := o.check(s); err != nil {
		return 0, err
	}
	_, total := o.bytes(s)
	return total, nil
}

// Write writes a state to w, in writes of about BufferBytes, and returns how many bytes it wrote.
// If shape or options are invalid, nothing is written and the error is an *Error. After any other
// error, which wraps that of w or src, what was written is not a snapshot; with a seal, no reader
// takes it for one.
func Write(w io.Writer, s *Shape, src Source, o WriteOptions) (int64, error) {
	if err := o.check(s); err != nil {
		return 0, err
	}
	body, _ := o.bytes(s)
	out := newOutput(w, s.bufferBytes(o.Positions, body), o.Seal != nil)
	err := out.body(s, src, o)
	if err == nil && o.Seal != nil {
		seal := sealed{Seal: *o.Seal, body: body, sums: out.sums, positions: int64(o.Positions), kinds: s.kinds()}
		out.buf = seal.append(out.buf)
		err = out.flush()
	}
	return out.close(err)
}

// Encode writes a state to the beginning of dst and returns how many bytes it took. The error is
// ErrBufferTooSmall, with the size that is needed, before anything is read or written.
func Encode(dst []byte, s *Shape, src Source, o WriteOptions) (int, error) {
	need, err := Size(s, o)
	if err != nil {
		return 0, err
	}
	if int64(len(dst)) < need || need > math.MaxInt {
		return 0, wrong(ErrBufferTooSmall, "buffer", int64(len(dst)), need)
	}
	n, err := Write(&fixed{dst}, s, src, o)
	return int(n), err
}

// fixed writes to memory that is large enough.
type fixed struct{ rest []byte }

func (f *fixed) Write(p []byte) (int, error) {
	n := copy(f.rest, p)
	f.rest = f.rest[n:]
	return n, nil
}

// body writes header and body.
func (out *output) body(s *Shape, src Source, o WriteOptions) error {
	f := s.fields()
	out.buf = f.appendHeader(out.buf, o.Version)
	for layer := range s.Layers {
		if err := out.layer(s, src, layer, o.Positions); err != nil {
			return err
		}
	}
	return out.flush()
}

// layer writes one layer's part of the body.
func (out *output) layer(s *Shape, src Source, layer, positions int) error {
	if grows(s.Layers[layer]) {
		if err := out.reserve(lenBytes); err != nil {
			return err
		}
		out.buf = binary.LittleEndian.AppendUint32(out.buf, uint32(positions))
	}
	for _, b := range s.blocks(layer, positions) {
		if err := out.rows(src, layer, b); err != nil {
			return err
		}
	}
	return nil
}

// rows has the source fill the buffer as often as it takes.
func (out *output) rows(src Source, layer int, b block) error {
	if b.rowBytes == 0 {
		return nil
	}
	for first := 0; first < b.rows; {
		if err := out.reserve(b.rowBytes); err != nil {
			return err
		}
		at := len(out.buf)
		n := min(b.rows-first, (cap(out.buf)-at)/b.rowBytes)
		out.buf = out.buf[:at+n*b.rowBytes]
		if err := src.ReadRows(layer, b.part, b.first+first, out.buf[at:]); err != nil {
			return fmt.Errorf("layer %d: read the state's %s from row %d on: %w", layer, b.part, first, err)
		}
		first += n
	}
	return nil
}
