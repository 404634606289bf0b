package frame

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestGroup sends groups, and refuses bodies that are none.
func TestGroup(t *testing.T) {
	long := strings.Repeat("a", MostAddress-2) + ":1"
	for _, addrs := range [][]string{nil, {"10.0.0.2:8090"}, {"[::1]:1", "node-7.lan:8090", long}, slices.Repeat([]string{long}, MostMembers)} {
		f := read(t, AppendGroup([]byte("before")[:0], addrs))
		if got, err := f.Members(); err != nil || !slices.Equal(got, addrs) {
			t.Errorf("a group of %v came as %v, %v", addrs, got, err)
		}
	}
	f := read(t, AppendGroup(nil, slices.Repeat([]string{"a:1"}, MostMembers+1)))
	if got, err := f.Members(); err != nil || len(got) != MostMembers {
		t.Errorf("a group that is too large came with %d members, %v", len(got), err)
	}
	for _, body := range []string{"", "\x01\x00\x00", "\x01\x00\x00\x00", "\x01\x00\x00\x00\x04\x00a:1", "\x01\x00\x00\x00\x03\x00a:1x", "\x01\x01\x00\x00", "\x01\x00\x00\x00\x03\x00a b", "\x01\x00\x00\x00\x03\x00:12", "\x01\x00\x00\x00\x04\x00a\n:1", "\xff\xff\xff\xff"} {
		if got, err := (&Frame{Kind: Group, Body: []byte(body)}).Members(); !errors.Is(err, ErrContent) {
			t.Errorf("a group of %q came as %v, %v", body, got, err)
		}
	}
}
