//go:build darwin || linux

package metal

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// memory is host memory that the GPU has too, without a copy: a buffer of whole pages, of which
// host is a part.
type memory struct {
	b       *backend
	host    []byte
	buffer  object
	offset  int    // of host in the buffer
	address uint64 // of host, for kernels
	pages   []byte // to be given back to the system; nil if it is wrapped
}

var _ launch.Memory = (*memory)(nil)

// Bytes returns the memory.
func (m *memory) Bytes() []byte { return m.host }

// Address is where kernels find it.
func (m *memory) Address() uint64 { return m.address }

// Release gives it back, of wrapped memory the wrapping.
func (m *memory) Release() {
	m.b.sys.unwrap(m.buffer)
	if m.pages != nil {
		unix.Munmap(m.pages) // of a whole mapping, which cannot fail
	}
	m.host, m.pages = nil, nil
	m.b.mu.Lock()
	defer m.b.mu.Unlock()
	m.b.memory--
}

// NewMemory returns n zeroed bytes, which host and GPU share: reads from a disk can go straight
// there. They take up memory when they are written to.
func (b *backend) NewMemory(n int) (launch.Memory, error) {
	m, err := b.newMemory(n)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (b *backend) newMemory(n int) (*memory, error) {
	if uint64(n) > b.facts.maxBuffer {
		return nil, b.outOfMemory(n, "")
	}
	page := b.sys.pageSize()
	pages, err := unix.Mmap(-1, 0, (n+page-1)/page*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, b.outOfMemory(n, fmt.Sprintf("; the system says: %v", err))
	}
	m, err := b.wrap(pages[:n:n])
	if err != nil {
		unix.Munmap(pages)
		return nil, err
	}
	m.pages = pages
	return m, nil
}

// outOfMemory reports that there is no room for n bytes.
func (b *backend) outOfMemory(n int, more string) error {
	return fmt.Errorf("metal: %w: %d bytes asked in one piece; %s gives at most %d in one piece and should use %d in all%s",
		gpu.ErrOutOfMemory, n, b.sys.name(), b.facts.maxBuffer, b.facts.workingSet, more)
}

// Wrap gives the GPU memory of the host, with what lies around it in the same pages, which kernels
// do not look at.
func (b *backend) Wrap(mem []byte) (launch.Memory, error) {
	m, err := b.wrap(mem)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (b *backend) wrap(mem []byte) (*memory, error) {
	page := uintptr(b.sys.pageSize())
	// a number: pages may reach beyond what Go knows there
	at := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	offset := int(at % page)
	whole := (uintptr(offset+len(mem)) + page - 1) / page * page
	if uint64(whole) > b.facts.maxBuffer {
		return nil, b.outOfMemory(len(mem), "")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, gpu.ErrClosed
	}
	buffer, address := b.sys.wrap(at-uintptr(offset), int(whole))
	if buffer == nil {
		return nil, b.outOfMemory(len(mem), "; Metal gives no buffer")
	}
	b.memory++
	return &memory{b: b, host: mem, buffer: buffer, offset: offset, address: address + uint64(offset)}, nil
}
