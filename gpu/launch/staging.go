package launch

import (
	"math/bits"
	"sync"
)

// LeastBlock is the smallest block of a Blocks, in bytes; sizes are powers of two times that.
const LeastBlock = 64 << 10

// blockAlign is what pieces of a Staging begin at multiples of, from the block's beginning.
const blockAlign = 64

// Block is memory that copies pass through on their way to or from the device: M is what the back
// end knows it by, Bytes what the host does.
type Block[M any] struct {
	Memory M
	Bytes  []byte
	class  int
}

// Blocks keeps blocks that no copy uses, by size. Its methods may be called from many goroutines.
type Blocks[M any] struct {
	// New makes memory of size bytes.
	New func(size int) (M, []byte, error)

	mu    sync.Mutex
	spare [48][]Block[M]
}

// get returns a block of at least n bytes.
func (b *Blocks[M]) get(n int) (Block[M], error) {
	class := 0
	if n > LeastBlock {
		class = bits.Len(uint(n-1) / LeastBlock)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := len(b.spare[class]) - 1; k >= 0 {
		x := b.spare[class][k]
		b.spare[class] = b.spare[class][:k]
		return x, nil
	}
	m, bytes, err := b.New(LeastBlock << class)
	if err != nil {
		return Block[M]{}, err
	}
	return Block[M]{m, bytes, class}, nil
}

// Drain hands all spare blocks to free.
func (b *Blocks[M]) Drain(free func(Block[M])) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for class := range b.spare {
		for _, x := range b.spare[class] {
			free(x)
		}
		b.spare[class] = nil
	}
}

// Staging cuts pieces for the copies of one Commit from blocks. The zero value is ready for use.
type Staging[M any] struct {
	blocks []Block[M]
	used   int // of the last one
	outs   []copyOut
}

// copyOut is what has to be brought to its place when the device is done.
type copyOut struct{ dst, src []byte }

// Take returns n bytes that are the copies' until Return, and where they lie in which block.
func (s *Staging[M]) Take(from *Blocks[M], n int) (bytes []byte, in M, offset int, err error) {
	if k := len(s.blocks) - 1; k < 0 || s.used+n > len(s.blocks[k].Bytes) {
		x, err := from.get(n)
		if err != nil {
			return nil, in, 0, err
		}
		s.blocks, s.used = append(s.blocks, x), 0
	}
	last := &s.blocks[len(s.blocks)-1]
	offset = s.used
	s.used = (offset + n + blockAlign - 1) &^ (blockAlign - 1)
	return last.Bytes[offset : offset+n : offset+n], last.Memory, offset, nil
}

// Out notes that src, of Take, is to be copied to dst when the device is done.
func (s *Staging[M]) Out(dst, src []byte) { s.outs = append(s.outs, copyOut{dst, src}) }

// Return makes the copies that Out noted, if the device has done its part, and gives the blocks
// back.
func (s *Staging[M]) Return(to *Blocks[M], done bool) {
	for _, o := range s.outs {
		if done {
			copy(o.dst, o.src)
		}
	}
	to.mu.Lock()
	for _, x := range s.blocks {
		to.spare[x.class] = append(to.spare[x.class], x)
	}
	to.mu.Unlock()
	clear(s.blocks)
	clear(s.outs)
	s.blocks, s.outs, s.used = s.blocks[:0], s.outs[:0], 0
}
