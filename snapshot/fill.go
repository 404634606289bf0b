package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Fill hands the whole state to t, in the order of the file, and compares the checksum of the seal,
// if there is one, with the bytes that it handed over. Only when it returns nil does t hold a
// state. The error wraps that of the reader or of t. Fill may be called any number of times, but
// not on a file from Inspect.
func (f *File) Fill(t Target) error {
	if t == nil || f.onlyShown {
		return errors.New("fill needs a target, and a file that was opened against a model's shape")
	}
	return f.read(t)
}

// Verify reads the whole file and compares its checksum with the seal's. Without a seal the error
// is ErrUnsealed; with a damaged one it is the damage.
func (f *File) Verify() error {
	if f.damage != nil {
		return f.damage
	}
	if f.seal == nil {
		return &Error{Kind: ErrUnsealed, Field: "seal", Layer: -1}
	}
	return f.read(nothing{})
}

// changed is the only damage that reading a file without a seal can notice.
const changed = "the file has changed since it was opened"

// nothing is a target that forgets.
type nothing struct{}

func (nothing) WriteRows(int, Part, int, []byte) error { return nil }

// pass is one reading of a file from beginning to end.
type pass struct {
	in     *input
	buf    []byte
	at     int64
	summed bool // whether there are checksums to compare
	sums   sums
}

// next reads the next n bytes, at most the buffer's.
func (p *pass) next(n, layer int, field string) ([]byte, error) {
	b := p.buf[:n]
	if err := p.in.readAt(b, p.at, layer, field); err != nil {
		return nil, err
	}
	p.at += int64(n)
	if p.summed {
		p.sums.add(b)
	}
	return b, nil
}

func (f *File) read(t Target) error {
	p := &pass{in: &f.in, summed: f.seal != nil, buf: make([]byte, max(f.shape.bufferBytes(f.positions, f.body), headerWords*4))}
	head, err := p.next(int(headerBytes(f.version)), -1, headerField)
	if err != nil {
		return err
	}
	if string(head) != string(f.fields.appendHeader(nil, f.version)) {
		return &Error{Kind: ErrChecksum, Field: headerField, Layer: -1, Detail: changed}
	}
	for layer := range f.shape.Layers {
		if err := f.readLayer(p, t, layer); err != nil {
			return err
		}
	}
	if f.seal != nil && p.sums != f.seal.sums {
		return wrong(ErrChecksum, "body", p.sums.value(), f.seal.sums.value())
	}
	return nil
}

func (f *File) readLayer(p *pass, t Target, layer int) error {
	if grows(f.shape.Layers[layer]) {
		raw, err := p.next(lenBytes, layer, lenField)
		if err != nil {
			return err
		}
		if n := int64(int32(binary.LittleEndian.Uint32(raw))); n != int64(f.positions) {
			return &Error{Kind: ErrChecksum, Field: lenField, Layer: layer, Got: n, Want: int64(f.positions), Detail: changed}
		}
	}
	for _, b := range f.shape.blocks(layer, f.positions) {
		if err := p.rows(t, layer, b); err != nil {
			return err
		}
	}
	return nil
}

// rows hands one part of a layer to the target, as many rows at once as the buffer holds.
func (p *pass) rows(t Target, layer int, b block) error {
	if b.rowBytes == 0 {
		return nil
	}
	for first := 0; first < b.rows; {
		n := min(b.rows-first, len(p.buf)/b.rowBytes)
		rows, err := p.next(n*b.rowBytes, layer, b.part.String())
		if err != nil {
			return err
		}
		if err := t.WriteRows(layer, b.part, b.first+first, rows); err != nil {
			return fmt.Errorf("layer %d: fill the state's %s from row %d on: %w", layer, b.part, first, err)
		}
		first += n
	}
	return nil
}
