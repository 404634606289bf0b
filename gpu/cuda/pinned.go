//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// Copies from and to memory that is not page-locked make the driver wait for the device, and so the
// caller. So what is copied passes through blocks of pinned memory, which are kept for the next
// copies.
const (
	// greatestBlock is the most that is copied to the host that way at once.
	greatestBlock = launch.LeastBlock << 10
	// directBytes is the most that is copied to the device that way: 8 GB/s, where the driver alone
	// has 15.
	directBytes = 1 << 20
)

// newBlock makes a block of pinned memory. The context is current.
func (b *backend) newBlock(size int) (none struct{}, mem []byte, err error) {
	var at unsafe.Pointer
	if err := b.check(b.d.hostAlloc(&at, uint64(size), hostAllocPortable|hostAllocMapped), "cuMemHostAlloc", fmt.Sprintf("%d bytes of pinned host memory", size)); err != nil {
		return none, nil, err
	}
	return none, unsafe.Slice((*byte)(at), size), nil
}

// freeBlock gives one back to the system. Of a spoiled context it goes with the context.
func (b *backend) freeBlock(x launch.Block[struct{}]) {
	unbind, err := b.bind()
	if err != nil {
		return
	}
	defer unbind()
	b.d.hostFree(unsafe.Pointer(unsafe.SliceData(x.Bytes)))
}
