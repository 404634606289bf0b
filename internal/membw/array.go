package membw

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

const wordBytes = 8

// array is memory outside the Go heap that begins at a multiple of BlockBytes.
type array struct {
	mapping []byte
	words   []uint64
}

// newArray returns bytes of memory, a multiple of BlockBytes.
func newArray(bytes int) (*array, error) {
	if bytes > 1<<62 {
		return nil, fmt.Errorf("membw: no memory for %d bytes", bytes)
	}
	mapping, err := unix.Mmap(-1, 0, bytes+BlockBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("membw: no memory for %d bytes: %w", bytes, err)
	}
	skip := int(-uintptr(unsafe.Pointer(&mapping[0])) % BlockBytes)
	mem := mapping[skip : skip+bytes]
	preferHugePages(mem)
	return &array{mapping: mapping, words: unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), bytes/wordBytes)}, nil
}

// release gives the memory back; words are gone then.
func (a *array) release() {
	if err := unix.Munmap(a.mapping); err != nil {
		panic(fmt.Sprintf("membw: a mapping of ours cannot be given back: %v", err))
	}
}
