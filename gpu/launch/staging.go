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

// MostSpare is how many bytes of blocks a Blocks keeps for the next copies.
const MostSpare = 64 << 20

// Blocks keeps blocks that no copy uses, by size. Its methods may be called from many goroutines.
type Blocks[M any] struct {
	// New makes memory of size bytes.
	New func(size int) (M, []byte, error)
	// Free gives a block back.
	Free func(Block[M])

	mu    sync.Mutex
	spare [48][]Block[M]
	held  int // bytes of spare
}

// get returns a block of at least n bytes. One that will not be kept is not larger than it must be.
func (b *Blocks[M]) get(n int) (Block[M], error) {
	if n > MostSpare {
		m, bytes, err := b.New((n + LeastBlock - 1) / LeastBlock * LeastBlock)
		return Block[M]{m, bytes, 0}, err
	}
	class := 0
	if n > LeastBlock {
		class = bits.Len(uint(n-1) / LeastBlock)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if k := len(b.spare[class]) - 1; k >= 0 {
		x := b.spare[class][k]
		b.spare[class] = b.spare[class][:k]
		b.held -= len(x.Bytes)
		return x, nil
	}
	m, bytes, err := b.New(LeastBlock << class)
	if err != nil {
		return Block[M]{}, err
	}
	return Block[M]{m, bytes, class}, nil
}

// put takes a block back that was got.
func (b *Blocks[M]) put(x Block[M]) {
	b.mu.Lock()
	kept := b.held+len(x.Bytes) <= MostSpare
	if kept {
		b.held += len(x.Bytes)
		b.spare[x.class] = append(b.spare[x.class], x)
	}
	b.mu.Unlock()
	if !kept {
		b.Free(x)
	}
}

// Drain frees all spare blocks.
func (b *Blocks[M]) Drain() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for class := range b.spare {
		for _, x := range b.spare[class] {
			b.Free(x)
		}
		b.spare[class] = nil
	}
	b.held = 0
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
	for _, x := range s.blocks {
		to.put(x)
	}
	clear(s.blocks)
	clear(s.outs)
	s.blocks, s.outs, s.used = s.blocks[:0], s.outs[:0], 0
}
