package frame

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Kind says what a frame is.
type Kind uint8

// The kinds.
const (
	Hello Kind = iota + 1
	Welcome
	Join
	Joined
	Refused
	Ask
	Answer
	Failed
	Ping
	Pong
	Drain
	Share
	Watch
	Group
	kinds
)

const (
	// headerBytes is the size of a header: size of what follows, kind, three bytes of 0, number.
	headerBytes = 16
	// MaxBytes is the most bytes of a frame after its header. It bounds the picks of an ask
	// (Shape.AskPicks).
	MaxBytes = 4 << 20
	// readBytes is how much is read beyond what is asked for: an ask of a row. The rest of a larger
	// frame is read to where it belongs.
	readBytes = 16 << 10
	// MaxReason is the most bytes of a reason.
	MaxReason = 512
)

// limits is the most bytes of each kind after the header.
var limits = [kinds]int{Hello: helloBytes, Welcome: welcomeBytes, Join: helloBytes, Refused: MaxReason, Ask: MaxBytes, Answer: MaxBytes, Failed: MaxReason, Ping: MaxBytes, Pong: MaxBytes, Share: MaxBytes, Group: groupBytes}

var (
	// ErrKind reports a frame of an unknown kind, or one that is out of place.
	ErrKind = errors.New("the other side sent a frame that is out of place; is it an expert host, or an engine, of this version?")
	// ErrSize reports a frame that is larger than its kind may be.
	ErrSize = errors.New("the other side sent a frame that is too large")
	// ErrContent reports a frame whose numbers do not fit together.
	ErrContent = errors.New("the other side sent a frame whose numbers do not fit together")
)

// Frame is one frame as it was read.
type Frame struct {
	Kind Kind
	ID   uint64 // of an ask
	Body []byte // the reader's, until it reads the next one
}

// Reader reads frames. Its memory grows to the largest frame. Until Trust is called it takes only
// what strangers may say: the kinds up to Refused.
type Reader struct {
	r     *bufio.Reader
	known bool
	head  [headerBytes]byte
	body  []byte
}

// NewReader returns a Reader of a stream.
func NewReader(r io.Reader) *Reader { return &Reader{r: bufio.NewReaderSize(r, readBytes)} }

// Give gives the memory of the last frame to the caller: the next frame has other memory.
func (r *Reader) Give() { r.body = nil }

// Trust lets the Reader take frames of every kind.
func (r *Reader) Trust() { r.known = true }

// Next reads a frame. After an error there are no more.
func (r *Reader) Next() (f Frame, err error) {
	if _, err := io.ReadFull(r.r, r.head[:]); err != nil {
		return f, err
	}
	n := binary.LittleEndian.Uint32(r.head[:])
	f.Kind, f.ID = Kind(r.head[4]), binary.LittleEndian.Uint64(r.head[8:])
	switch {
	case f.Kind == 0 || f.Kind >= kinds || f.Kind > Refused && !r.known || r.head[5]|r.head[6]|r.head[7] != 0:
		return f, ErrKind
	case n > uint32(limits[f.Kind]):
		return f, fmt.Errorf("%w: %d bytes of kind %d, the most is %d", ErrSize, n, f.Kind, limits[f.Kind])
	}
	r.body = slices.Grow(r.body[:0], int(n))[:n]
	f.Body = r.body
	if _, err := io.ReadFull(r.r, f.Body); err != nil {
		return f, noEOF(err)
	}
	return f, nil
}

// noEOF says that a stream ended within a frame.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// begin appends a header, of which end sets the size.
func begin(dst []byte, kind Kind, id uint64) []byte {
	dst = append(dst, 0, 0, 0, 0, byte(kind), 0, 0, 0)
	return binary.LittleEndian.AppendUint64(dst, id)
}

func end(dst []byte, from int) []byte {
	binary.LittleEndian.PutUint32(dst[from:], uint32(len(dst)-from-headerBytes))
	return dst
}

// AppendEmpty appends a frame that says nothing but its kind and number: Ping, Drain, Watch or
// Joined.
func AppendEmpty(dst []byte, kind Kind, id uint64) []byte { return end(begin(dst, kind, id), len(dst)) }

// AppendReason appends a Refused or Failed. A long reason is cut.
func AppendReason(dst []byte, kind Kind, id uint64, reason string) []byte {
	from := len(dst)
	dst = append(begin(dst, kind, id), reason[:min(len(reason), MaxReason)]...)
	return end(dst, from)
}
