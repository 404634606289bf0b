package sysmem

import (
	"bytes"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDiscard discards the middle of some memory. Linux promises that its whole pages are zero
// afterwards. Everything outside, and the pages of which it has only a part, must not change.
func TestDiscard(t *testing.T) {
	page := os.Getpagesize()
	mem, err := unix.Mmap(-1, 0, 8*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(mem)
	for _, tc := range []struct{ from, to, zeroFrom, zeroTo int }{
		{2 * page, 5 * page, 2 * page, 5 * page},
		{2*page + 1, 5*page + 1, 3 * page, 5 * page},
		{2*page - 1, 5*page - 1, 2 * page, 4 * page},
		{2*page + 1, 3*page - 1, 0, 0},
		{2*page + 1, 3*page + 7, 0, 0},
		{page, page, 0, 0},
	} {
		for i := range mem {
			mem[i] = 7
		}
		if err := Discard(mem[tc.from:tc.to]); err != nil {
			t.Errorf("%+v: %v", tc, err)
		}
		want := bytes.Repeat([]byte{7}, len(mem))
		clear(want[tc.zeroFrom:tc.zeroTo])
		if !bytes.Equal(mem, want) {
			t.Errorf("%+v: other bytes are zero", tc)
		}
	}
}
