package frame

import (
	"encoding/binary"
	"fmt"
	"strings"
)

// Version is that of the frames. Both sides must have the same.
const Version = 7

// magic begins a Hello.
const magic = "moeflux\x00"

const (
	helloBytes   = 8 + 4 + 12 + 32 + 32
	welcomeFixed = 20
	welcomeBytes = welcomeFixed + mostName
	mostName     = 128 // bytes of a device's name
)

// Shape is what both sides must know alike of a model to read each other's asks.
type Shape struct {
	Layers, Experts, Hidden int
}

// AskPicks returns the most picks of one ask. Both the ask and its answer fit in a frame then,
// whatever rows and experts the picks are of.
func (s Shape) AskPicks() int {
	perPick := 4*s.Hidden + askUseBytes + askRowBytes + askScaleBytes
	return min(MaxBytes-answerFixed-3, MaxBytes-askFixed-3) / perPick
}

// Greeting is a Hello or a Join: which model, and who asks.
type Greeting struct {
	Version     int
	Shape       Shape
	Fingerprint [32]byte // of the model
	Token       [32]byte // follows from what both sides know; zero without any
}

// AppendHello appends a Hello or a Join.
func AppendHello(dst []byte, kind Kind, g *Greeting) []byte {
	from := len(dst)
	dst = append(begin(dst, kind, 0), magic...)
	for _, n := range []int{g.Version, g.Shape.Layers, g.Shape.Experts, g.Shape.Hidden} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	}
	dst = append(append(dst, g.Fingerprint[:]...), g.Token[:]...)
	return end(dst, from)
}

// Greeting reads a Hello or a Join.
func (f *Frame) Greeting() (g Greeting, err error) {
	if f.Kind != Hello && f.Kind != Join {
		return g, ErrKind
	}
	b := f.Body
	if len(b) != helloBytes || string(b[:8]) != magic {
		return g, fmt.Errorf("%w: a hello of %d bytes", ErrContent, len(b))
	}
	for i, n := range []*int{&g.Version, &g.Shape.Layers, &g.Shape.Experts, &g.Shape.Hidden} {
		*n = int(binary.LittleEndian.Uint32(b[8+4*i:]))
	}
	copy(g.Fingerprint[:], b[24:])
	copy(g.Token[:], b[56:])
	return g, nil
}

// Room is a Welcome: what a host has room for, and what it computes on.
type Room struct {
	Experts int    // that it holds in memory
	Asks    int    // that it takes at once
	Bytes   int64  // of memory for experts
	Device  string // for people; a long name is cut
}

// AppendWelcome appends a Welcome.
func AppendWelcome(dst []byte, r Room) []byte {
	from := len(dst)
	dst = begin(dst, Welcome, 0)
	for _, n := range []int{Version, r.Experts, r.Asks} {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(n))
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(r.Bytes))
	return end(append(dst, r.Device[:min(len(r.Device), mostName)]...), from)
}

const (
	mostAsks  = 1024    // that a host may say that it takes at once
	mostBytes = 1 << 50 // that it may say that it has
)

// Room reads a Welcome. Other versions of the program have other ones.
func (f *Frame) Room() (r Room, err error) {
	if f.Kind != Welcome {
		return r, ErrKind
	}
	if len(f.Body) < welcomeFixed {
		return r, fmt.Errorf("%w: a welcome of %d bytes", ErrContent, len(f.Body))
	}
	word := func(i int) int { return int(binary.LittleEndian.Uint32(f.Body[4*i:])) }
	bytes := binary.LittleEndian.Uint64(f.Body[12:])
	r = Room{Experts: word(1), Asks: word(2), Bytes: int64(min(bytes, mostBytes)), Device: strings.ToValidUTF8(string(f.Body[welcomeFixed:]), "?")}
	if word(0) != Version || r.Experts < 1 || r.Experts > 1<<30 || r.Asks < 1 || r.Asks > mostAsks || bytes > mostBytes {
		return r, fmt.Errorf("%w: version %d, room for %d experts of %d bytes and %d asks", ErrContent, word(0), r.Experts, bytes, r.Asks)
	}
	return r, nil
}
