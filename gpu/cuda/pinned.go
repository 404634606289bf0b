//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// Copies from and to memory that is not page-locked make the driver, and so the caller, wait for
// the device. So copies go through blocks of pinned memory, which are kept for later ones.
const (
	// greatestBlock is the largest copy to the host that goes that way.
	greatestBlock = launch.LeastBlock << 10
	// directBytes is the largest copy to the device that goes that way: it runs at 8 GB/s, the
	// driver alone at 15.
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
