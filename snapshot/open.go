package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Accept is how much a file must prove.
type Accept uint8

// The ways to accept files.
const (
	Sealed Accept = iota // its seal: what loads is what was saved
	Plain                // a seal, or the file ends where the body does: as other programs write it
	// anything but a damaged seal may follow the body: other programs' buffers may be longer than
	// the state
	Padded
	shown // anything at all, but not to be loaded
)

// ReadOptions say what is accepted.
type ReadOptions struct {
	Accept Accept
	// Fingerprint is the open model's. A seal must have the same; files without a seal have none to
	// compare. Zero accepts any.
	Fingerprint Fingerprint
	// MaxPositions is how many positions the caller has room for; 0 means as many as the format
	// allows.
	MaxPositions int
}

// File is a snapshot whose form has been checked completely. It reads from what it was opened on,
// which stays the caller's. One goroutine at a time may use it.
type File struct {
	in        input
	shape     *Shape
	version   int
	fields    fields
	positions int
	body      int64
	seal      *sealed // nil if there is none
	damage    error   // of the seal, in a file that is only shown
	onlyShown bool
}

// Open checks a snapshot of size bytes against the shape of a model and returns it, ready to fill a
// state. r may be a file, or a bytes.Reader. Open reads little of it: the header, each layer's
// number of positions, and the seal. It checks the header, every length against the size and the
// format's bounds, that layers agree, that the size is exact, and all of the seal. The checksum of
// the body is left to Fill or Verify. Open never allocates what a file merely claims: it compares
// sizes with the true size first.
func Open(r io.ReaderAt, size int64, s *Shape, o ReadOptions) (*File, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	f := &File{in: input{r, size}, shape: s}
	var err error
	if f.version, f.fields, err = f.in.readHeader(s); err != nil {
		return nil, err
	}
	if err := s.checkHeader(f.version, f.fields); err != nil {
		return nil, err
	}
	if err := f.walk(); err != nil {
		return nil, err
	}
	if err := f.readEnd(o.Accept); err != nil {
		return nil, err
	}
	return f, f.check(o)
}

// Inspect opens a snapshot without a model, to be shown and verified. The header is only checked
// for consistency, and anything may follow the body: Info tells what. Fill refuses the file.
func Inspect(r io.ReaderAt, size int64) (*File, error) {
	f := &File{in: input{r, size}, onlyShown: true}
	var err error
	if f.version, f.fields, err = f.in.readHeader(nil); err != nil {
		return nil, err
	}
	var kinds []byte
	if f.fields[1] == 0 { // no interval: only the seal knows
		seal, err := f.in.findSeal()
		if err != nil {
			return nil, err
		}
		if seal == nil || len(seal.kinds) != int(f.fields[0]) {
			return nil, wrong(ErrShape, fieldNames[1], 0, 1)
		}
		kinds = seal.kinds
	}
	if f.shape, err = f.fields.shape(kinds); err != nil {
		return nil, err
	}
	if err := f.walk(); err != nil {
		return nil, err
	}
	return f, f.readEnd(shown)
}

// walk goes over the body without reading its rows and finds its end and the number of positions.
func (f *File) walk() error {
	f.positions = -1
	at := headerBytes(f.version)
	for layer, kind := range f.shape.Layers {
		n := 0
		if grows(kind) {
			var err error
			if n, err = f.in.readLen(at, layer); err != nil {
				return err
			}
			at += lenBytes
		}
		need := f.shape.layerBytes(layer, n)
		if rest := f.in.size - at; rest < need {
			blocks := f.shape.blocks(layer, n)
			return &Error{Kind: ErrTruncated, Field: blocks[0].part.String() + " and " + blocks[1].part.String(), Layer: layer, Got: rest, Want: need}
		}
		at += need
		if !grows(kind) {
			continue
		}
		if f.positions >= 0 && n != f.positions {
			return &Error{Kind: ErrUnequalLen, Field: lenField, Layer: layer, Got: int64(n), Want: int64(f.positions),
				Detail: "as after a step that failed midway"}
		}
		f.positions = n
	}
	f.body = at
	return nil
}

// readLen reads a layer's number of positions.
func (in *input) readLen(at int64, layer int) (int, error) {
	var raw [lenBytes]byte
	if err := in.readAt(raw[:], at, layer, lenField); err != nil {
		return 0, err
	}
	n := int32(binary.LittleEndian.Uint32(raw[:]))
	if err := checkLen(int64(n), lenField, layer); err != nil {
		return 0, err
	}
	return int(n), nil
}

// checkLen checks a number of positions against the bounds of the format.
func checkLen(n int64, field string, layer int) error {
	switch {
	case n < 0:
		return &Error{Kind: ErrNegativeLen, Field: field, Layer: layer, Got: n}
	case n > maxLen:
		return &Error{Kind: ErrLenOverflow, Field: field, Layer: layer, Got: n, Want: maxLen}
	}
	return nil
}

// readEnd reads what follows the body: a seal, nothing, or what Padded lets pass.
func (f *File) readEnd(a Accept) error {
	rest := f.in.size - f.body
	seal, err := f.in.sealBegins(f.body)
	switch {
	case err != nil:
		return err
	case seal:
		err = f.readSeal()
		if e := (*Error)(nil); a == shown && errors.As(err, &e) {
			f.damage, err = e, nil
		}
		if err != nil {
			return err
		}
	case rest == 0 && a == Sealed:
		return &Error{Kind: ErrUnsealed, Field: "seal", Layer: -1}
	case rest > 0 && a <= Plain:
		return wrong(ErrTrailing, "file", rest, 0)
	}
	if f.seal == nil && (f.positions < 0 || f.shape.interval() == 0) {
		return &Error{Kind: ErrUnsealed, Field: "seal", Layer: -1, Detail: "and nothing else tells the layers and positions of this model", Err: f.damage}
	}
	return nil
}

// readSeal reads the seal after the body and compares it with the body.
func (f *File) readSeal() error {
	s, err := f.in.readSeal(f.body)
	if err != nil {
		return err
	}
	if s.body != f.body {
		return wrong(ErrSeal, "seal body", s.body, f.body)
	}
	if f.positions >= 0 && s.positions != int64(f.positions) {
		return wrong(ErrSeal, "seal positions", s.positions, int64(f.positions))
	}
	if !bytes.Equal(s.kinds, f.shape.kinds()) {
		return &Error{Kind: ErrShape, Field: "seal layers", Layer: -1, Detail: "layers are of other kinds or in another order"}
	}
	f.seal, f.positions = s, int(s.positions)
	return nil
}

// check compares the file with what the caller can take.
func (f *File) check(o ReadOptions) error {
	if o.Fingerprint != (Fingerprint{}) && f.seal != nil && f.seal.Fingerprint != o.Fingerprint {
		return &Error{Kind: ErrFingerprint, Field: "fingerprint", Layer: -1, Detail: fmt.Sprintf("%v, the open one is %v", f.seal.Fingerprint, o.Fingerprint)}
	}
	if o.MaxPositions > 0 && f.positions > o.MaxPositions {
		return wrong(ErrTooLong, lenField, int64(f.positions), int64(o.MaxPositions))
	}
	return nil
}

// input is a file and the size it is said to have.
type input struct {
	r    io.ReaderAt
	size int64
}

// readAt fills dst. field and layer name what is read.
func (in *input) readAt(dst []byte, at int64, layer int, field string) error {
	short := func(got int, err error) error {
		return &Error{Kind: ErrTruncated, Field: field, Layer: layer, Got: int64(got), Want: int64(len(dst)), Err: err}
	}
	if rest := in.size - at; rest < int64(len(dst)) {
		return short(int(max(rest, 0)), nil)
	}
	n, err := in.r.ReadAt(dst, at)
	switch {
	case n == len(dst): // io.EOF may come with the last bytes
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return short(n, io.ErrUnexpectedEOF)
	}
	return fmt.Errorf("read %d bytes at %d: %w", len(dst), at, err)
}
