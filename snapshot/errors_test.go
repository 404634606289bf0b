package snapshot_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/snapshot"
)

// TestChecksumText holds that a checksum is shown as its bits, whatever the highest of them.
func TestChecksumText(t *testing.T) {
	e := &snapshot.Error{Kind: snapshot.ErrChecksum, Field: "body", Layer: -1, Got: 1, Want: -1}
	if got := e.Error(); !strings.HasSuffix(got, ": 0x1, expected 0xffffffffffffffff") {
		t.Error(got)
	}
}

// TestLenTexts tells the three things apart that can be wrong with a number of positions.
func TestLenTexts(t *testing.T) {
	for _, c := range []struct {
		err  snapshot.Error
		want string
	}{
		{snapshot.Error{Kind: snapshot.ErrNegativeLen, Field: "len", Layer: 1, Got: -1}, "layer 1: len: a negative number of positions: -1"},
		{snapshot.Error{Kind: snapshot.ErrLenOverflow, Field: "len", Layer: 1, Got: 1<<20 + 1, Want: 1 << 20},
			"layer 1: len: more positions than the format allows: 1048577, at most 1048576"},
		{snapshot.Error{Kind: snapshot.ErrUnequalLen, Field: "len", Layer: 3, Got: 2, Want: 5},
			"layer 3: len: another number of positions than in the layers before: 2, expected 5"},
		{snapshot.Error{Kind: snapshot.ErrBufferTooSmall, Field: "buffer", Layer: -1, Got: 2, Want: 5}, "buffer: the buffer is too small: 2 bytes, 5 needed"},
	} {
		if got := c.err.Error(); !strings.HasSuffix(got, c.want) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

// TestConstants holds the public constants to the bytes of a file.
func TestConstants(t *testing.T) {
	s := &snapshot.Shape{Layers: []model.Mixer{model.FullAttention}, KVHeads: 1, HeadDim: 4}
	for version, header := range map[int]int{snapshot.Version1: snapshot.HeaderBytes1, snapshot.Version2: snapshot.HeaderBytes2} {
		buf := make([]byte, 100)
		n, err := snapshot.Encode(buf, s, nil, snapshot.WriteOptions{Version: version})
		if le := binary.LittleEndian; err != nil || n != header+4 || le.Uint32(buf) != snapshot.Magic || string(buf[:4]) != "XLFM" || le.Uint32(buf[4:]) != uint32(version) {
			t.Errorf("version %d: %d bytes, %v: % x", version, n, err, buf[:8])
		}
	}
}
