package host

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/topology"
)

const (
	slabBytes  = 1 << 20
	smallBytes = slabBytes / 16 // buffers up to here share slabs
	alignBytes = 64
	// mappings of this size or more are worth large pages: expert slots, key-value pages, scratch
	hugeBytes = 4 << 20
)

// slab is a mapping that small buffers share. It hands out memory from beginning to end, and starts
// again when all its buffers are released.
type slab struct {
	mem   []byte
	used  int
	live  int  // buffers not released
	dirty bool // memory after used may have been written
}

// buffer is memory of the device, or wrapped memory of another owner.
type buffer struct {
	mem     []byte
	d       *Device
	slab    *slab // nil if it has a mapping of its own
	wrapped bool  // another owner has its memory
}

var _ gpu.Buffer = (*buffer)(nil)

// Len returns the size in bytes; 0 after Release.
func (b *buffer) Len() int { return len(b.mem) }

// Bytes returns the memory; nil after Release.
func (b *buffer) Bytes() []byte { return b.mem }

// Release frees the memory. It must not run while submitted work uses the buffer.
func (b *buffer) Release() {
	d := b.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if b.mem == nil {
		return
	}
	mem := b.mem
	b.mem = nil
	if b.wrapped {
		delete(d.wrapped, b)
		return
	}
	d.buffers--
	if b.slab == nil {
		unmap(mem)
		return
	}
	s := b.slab
	s.live--
	if s.live > 0 {
		return
	}
	if s == d.slab {
		s.used, s.dirty = 0, true
		return
	}
	unmap(s.mem)
}

// allocate returns a buffer of n zeroed bytes. d.mu is held.
func (d *Device) allocate(n int) (*buffer, error) {
	if n > smallBytes {
		mem, err := d.mapMemory(n)
		if err != nil {
			return nil, err
		}
		return &buffer{mem: mem, d: d}, nil
	}
	size := (n + alignBytes - 1) &^ (alignBytes - 1)
	s := d.slab
	if s == nil || s.used+size > len(s.mem) {
		mem, err := d.mapMemory(slabBytes)
		if err != nil {
			return nil, err
		}
		// The old slab lives as long as its buffers; releasing the last one unmaps it. A slab
		// without buffers is never replaced: it starts again at 0, where every small buffer fits.
		s = &slab{mem: mem}
		d.slab = s
	}
	mem := s.mem[s.used : s.used+n : s.used+n]
	if s.dirty {
		clear(mem)
	}
	s.used += size
	s.live++
	return &buffer{mem: mem, d: d, slab: s}, nil
}

// isWrapped reports whether an address lies in wrapped memory.
func (d *Device) isWrapped(addr uintptr) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for b := range d.wrapped {
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(b.mem))); addr-at < uintptr(len(b.mem)) {
			return true
		}
	}
	return false
}

// dropSlab unmaps the current slab, which has no buffers left. d.mu is held.
func (d *Device) dropSlab() error {
	if d.slab == nil {
		return nil
	}
	mem := d.slab.mem
	d.slab = nil
	return unix.Munmap(mem)
}

// mapMemory returns n zeroed bytes. Large ones lie on all memory nodes by turns, since any thread
// may read them; if the kernel refuses, where they are first touched.
func (d *Device) mapMemory(n int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("host: %w: asked for %d bytes: %w", gpu.ErrOutOfMemory, n, err)
	}
	if n >= hugeBytes {
		adviseHuge(mem)
		_ = topology.Interleave(mem, d.nodes)
	}
	return mem, nil
}

// unmap releases a mapping. It fails only for memory that is not a mapping.
func unmap(mem []byte) {
	if err := unix.Munmap(mem); err != nil {
		panic(fmt.Sprintf("host: unmapping %d bytes: %v", len(mem), err))
	}
}
