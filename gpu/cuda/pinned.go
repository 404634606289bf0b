//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"math/bits"
	"sync"
	"unsafe"
)

// Copies from and to memory that is not page-locked make the driver wait for the device, and so the caller. So what is copied passes through
// blocks of pinned memory, which are kept for the next copies.
const (
	leastBlock   = 64 << 10
	blockClasses = 11
	// greatestBlock is the most that is copied to the host that way at once.
	greatestBlock = leastBlock << (blockClasses - 1)
	// directBytes is the most that is copied to the device that way: 8 GB/s, where the driver alone has 15.
	directBytes = 1 << 20
)

// block is pinned host memory.
type block struct {
	mem   []byte
	class int
}

// pinned keeps blocks by size, from leastBlock on in powers of two.
type pinned struct {
	mu    sync.Mutex
	spare [blockClasses][]block
}

// get returns a block of at least n bytes, n at most greatestBlock. The context is current.
func (p *pinned) get(b *backend, n int) (block, error) {
	class := 0
	if n > leastBlock {
		class = bits.Len(uint(n-1) / leastBlock)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := len(p.spare[class]) - 1; k >= 0 {
		x := p.spare[class][k]
		p.spare[class] = p.spare[class][:k]
		return x, nil
	}
	size := leastBlock << class
	var at unsafe.Pointer
	if err := b.check(b.d.hostAlloc(&at, uint64(size), hostAllocPortable|hostAllocMapped), "cuMemHostAlloc", fmt.Sprintf("%d bytes of pinned host memory", size)); err != nil {
		return block{}, err
	}
	return block{unsafe.Slice((*byte)(at), size), class}, nil
}

// put takes blocks back that no copy uses.
func (p *pinned) put(blocks []block) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range blocks {
		p.spare[x.class] = append(p.spare[x.class], x)
	}
}

// free gives all blocks back to the system. The context is current.
func (p *pinned) free(d *driver) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for class := range p.spare {
		for _, x := range p.spare[class] {
			d.hostFree(unsafe.Pointer(unsafe.SliceData(x.mem)))
		}
		p.spare[class] = nil
	}
}
