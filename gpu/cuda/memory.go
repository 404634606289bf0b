//go:build linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// memory is a piece of the device's memory, or of pinned host memory that the device reads over the
// bus.
type memory struct {
	b    *backend
	at   address
	host []byte // what the host can address; nil for the device's own
	kind memoryKind
}

// memoryKind says how a piece is released.
type memoryKind uint8

const (
	ownMemory memoryKind = iota
	registeredMemory
	pinnedMemory
)

var _ launch.Memory = (*memory)(nil)

// Bytes returns the memory if the host can address it, else nil.
func (m *memory) Bytes() []byte { return m.host }

// Address is where kernels find it.
func (m *memory) Address() uint64 { return uint64(m.at) }

// Release frees the memory. That fails only in a spoiled context, which frees everything when it is
// closed.
func (m *memory) Release() {
	b := m.b
	host := unsafe.Pointer(unsafe.SliceData(m.host))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.memory--
	if m.kind == pinnedMemory {
		b.own = slices.DeleteFunc(b.own, func(x *memory) bool { return x == m })
	}
	unbind, err := b.bind()
	if err != nil {
		return
	}
	defer unbind()
	switch m.kind {
	case ownMemory:
		b.d.free(m.at)
	case registeredMemory:
		b.d.unregister(host)
	case pinnedMemory:
		b.d.hostFree(host)
	}
}

// NewMemory returns n zeroed bytes of the device's own memory, which the host cannot address.
func (b *backend) NewMemory(n int) (launch.Memory, error) {
	m, err := b.newMemory(n)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func (b *backend) newMemory(n int) (*memory, error) {
	leave, err := b.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := b.cause(); err != nil {
		return nil, err
	}
	var free, total uint64
	if err := b.check(b.d.memInfo(&free, &total), "cuMemGetInfo_v2", b.name); err != nil {
		return nil, err
	}
	m := &memory{b: b}
	r := outOfMemory
	// more than there is in all is not asked for: the driver may call that an invalid value
	if uint64(n) <= total {
		r = b.d.alloc(&m.at, uint64(n))
	}
	if r == outOfMemory {
		return nil, fmt.Errorf("cuda: %w: %d bytes asked, %d of %d of %s are free", gpu.ErrOutOfMemory, n, free, total, b.name)
	}
	if err := b.check(r, "cuMemAlloc_v2", fmt.Sprintf("%d bytes", n)); err != nil {
		return nil, err
	}
	err = b.check(b.d.fill(m.at, 0, uint64(n), b.setup), "cuMemsetD8Async", fmt.Sprintf("clearing %d bytes", n))
	if err == nil {
		err = b.check(b.d.streamSync(b.setup), "cuStreamSynchronize", fmt.Sprintf("clearing %d bytes", n))
	}
	if err != nil {
		return nil, errors.Join(err, b.d.check(b.d.free(m.at), "cuMemFree_v2", ""))
	}
	b.memory++
	return m, nil
}

// Wrap pins host memory, so that kernels read it over the bus, at a fiftieth of the speed of the
// device's own. Memory that is mapped read-only cannot be pinned by most drivers; weights of files
// are copied to the device instead.
func (b *backend) Wrap(mem []byte) (launch.Memory, error) {
	leave, err := b.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	doing := fmt.Sprintf("wrapping %d bytes of host memory", len(mem))
	m, p := &memory{b: b, host: mem, kind: registeredMemory}, unsafe.Pointer(unsafe.SliceData(mem))
	if err := b.check(b.d.hostRegister(p, uint64(len(mem)), hostRegisterMapped), "cuMemHostRegister_v2", doing); err != nil {
		return nil, err
	}
	if err := b.check(b.d.hostAddress(&m.at, p), "cuMemHostGetDevicePointer_v2", doing); err != nil {
		return nil, errors.Join(err, b.d.check(b.d.unregister(p), "cuMemHostUnregister", ""))
	}
	b.memory++
	return m, nil
}

// newPinned returns n bytes of host memory that copies reach directly.
func (b *backend) newPinned(n int) (*memory, error) {
	leave, err := b.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	doing := fmt.Sprintf("%d bytes of pinned host memory", n)
	var at unsafe.Pointer
	r := b.d.hostAlloc(&at, uint64(n), hostAllocPortable|hostAllocMapped)
	if r == outOfMemory {
		return nil, fmt.Errorf("cuda: %w: the system refuses %s", gpu.ErrOutOfMemory, doing)
	}
	if err := b.check(r, "cuMemHostAlloc", doing); err != nil {
		return nil, err
	}
	m := &memory{b: b, host: unsafe.Slice((*byte)(at), n), kind: pinnedMemory}
	if err := b.check(b.d.hostAddress(&m.at, at), "cuMemHostGetDevicePointer_v2", doing); err != nil {
		b.d.hostFree(at)
		return nil, err
	}
	b.memory++
	b.own = append(b.own, m)
	return m, nil
}

// isPinned reports whether mem is part of memory from newPinned.
func (b *backend) isPinned(mem []byte) bool {
	from := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, m := range b.own {
		base := uintptr(unsafe.Pointer(unsafe.SliceData(m.host)))
		if base <= from && from+uintptr(len(mem)) <= base+uintptr(len(m.host)) {
			return true
		}
	}
	return false
}

// memoryInfo returns how much of the device's memory is free, and how much it has.
func (b *backend) memoryInfo() (free, total int64, err error) {
	unbind, err := b.bind()
	if err != nil {
		return 0, 0, err
	}
	defer unbind()
	var f, t uint64
	err = b.check(b.d.memInfo(&f, &t), "cuMemGetInfo_v2", b.name)
	return int64(f), int64(t), err
}
