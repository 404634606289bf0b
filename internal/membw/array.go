package membw

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/internal/topology"
)

const (
	wordBytes  = 8
	blockWords = BlockBytes / wordBytes
)

// array is memory outside the Go heap, aligned to BlockBytes.
type array struct {
	mapping []byte
	words   []uint64
}

// newArray allocates bytes, a multiple of BlockBytes.
func newArray(bytes int) (*array, error) {
	if bytes > 1<<62 {
		return nil, fmt.Errorf("membw: cannot allocate %d bytes", bytes)
	}
	mapping, err := unix.Mmap(-1, 0, bytes+BlockBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("membw: cannot allocate %d bytes: %w", bytes, err)
	}
	skip := int(-uintptr(unsafe.Pointer(&mapping[0])) % BlockBytes)
	mem := mapping[skip : skip+bytes]
	preferHugePages(mem)
	if machine, err := topology.Here(); err == nil && len(machine.Nodes()) > 1 { // as package host spreads weights
		_ = topology.Interleave(mapping, machine.Nodes())
	}
	return &array{mapping: mapping, words: unsafe.Slice((*uint64)(unsafe.Pointer(&mem[0])), bytes/wordBytes)}, nil
}

// release unmaps the memory; words is invalid afterwards.
func (a *array) release() {
	if err := unix.Munmap(a.mapping); err != nil {
		panic(fmt.Sprintf("membw: cannot unmap the array: %v", err))
	}
}
