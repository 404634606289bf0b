package gguf

import (
	"encoding/binary"
	"fmt"
)

// cursor reads a file from its beginning. After the first fault it stays where it is and every read
// returns zero, so a caller may look at err once for several reads.
type cursor struct {
	path string
	data []byte // the whole file
	at   int    // of the next byte
	name string // the key or tensor that is being read, for errors
	err  error
}

// fail notes the first fault.
func (c *cursor) fail(kind error, format string, args ...any) {
	if c.err == nil {
		c.err = &FormatError{Path: c.path, OffsetBytes: int64(c.at), Name: c.name, Why: fmt.Sprintf(format, args...), Err: kind}
	}
}

// rest returns how many bytes are left.
func (c *cursor) rest() uint64 { return uint64(len(c.data) - c.at) }

// take returns the next n bytes, a view.
func (c *cursor) take(n uint64) []byte {
	if n > c.rest() {
		c.fail(ErrTruncated, "%d bytes are claimed at byte %d of %d", n, c.at, len(c.data))
	}
	if c.err != nil {
		return nil
	}
	out := c.data[c.at : c.at+int(n) : c.at+int(n)]
	c.at += int(n)
	return out
}

// count checks that n things of at least least bytes each can follow, and returns n.
func (c *cursor) count(n, least uint64, what string) int {
	if n > c.rest()/least {
		c.fail(ErrTruncated, "%d %s are claimed, but only %d bytes follow", n, what, c.rest())
	}
	if c.err != nil {
		return 0
	}
	return int(n)
}

func (c *cursor) u32() uint32 {
	b := c.take(4)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

func (c *cursor) u64() uint64 {
	b := c.take(8)
	if b == nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// limit checks a number of things that take more memory than they take in the file.
func (c *cursor) limit(n, most uint64, what string) uint64 {
	if n > most {
		c.fail(nil, "%d %s are claimed: at most %d are read", n, what, most)
	}
	return n
}

// longestName bounds keys and names of tensors, as the format does.
const longestName = 1<<16 - 1

// text reads the name of a key or tensor.
func (c *cursor) text(what string) string {
	c.name = ""
	n := c.u64()
	if c.err == nil && (n == 0 || n > longestName) {
		c.fail(nil, "a %s of %d bytes: it must have 1 to %d", what, n, longestName)
	}
	return string(c.take(n))
}
