package actors

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/sysmem"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/stages"
)

// slotAlign is what slots are aligned to: a page, so that no two share one and direct reads are
// possible.
const slotAlign = expertfile.DirectAlign

// slotMemory is where slots lie: in memory that reads fill, or in the mapped packed files.
type slotMemory struct {
	buffers   []gpu.Buffer // one, or one a layer if mapped (nil for a layer without experts)
	perBuffer int          // slots of one buffer
	base      int          // bytes before the first slot of a buffer
	stride    int          // bytes from slot to slot
	bytesEach int

	filled []bool       // [slots] that have been read into and take up memory; nil if mapped
	nHeld  atomic.Int64 // of them

	// what reads go through if the slots are memory of the device that the host cannot address;
	// else nil
	staging *staging
}

// newSlots makes n empty slots.
func newSlots(dev gpu.Device, n, stride, expertBytes int) (*slotMemory, error) {
	buf, err := dev.NewBuffer(n*stride + slotAlign) // small buffers begin anywhere
	if err != nil {
		return nil, fmt.Errorf("actors: %d expert slots of %d bytes: %w", n, stride, err)
	}
	if buf.Bytes() == nil {
		buf.Release()
		return nil, fmt.Errorf("actors: device %s has no memory that expert reads could fill", dev.Name())
	}
	base := int(-uintptr(unsafe.Pointer(unsafe.SliceData(buf.Bytes()))) % slotAlign)
	return &slotMemory{buffers: []gpu.Buffer{buf}, perBuffer: n, base: base, stride: stride, bytesEach: expertBytes, filled: make([]bool, n)}, nil
}

// mapSlots makes one slot of every expert of every layer, in the mapped files.
func mapSlots(dev gpu.Device, f *expertfile.File, layers int) (*slotMemory, error) {
	n := f.Layout().Bytes
	s := &slotMemory{buffers: make([]gpu.Buffer, layers), perBuffer: f.Experts(), stride: n, bytesEach: n}
	for _, layer := range f.Layers() {
		m, err := f.Map(layer)
		if err == nil {
			s.buffers[layer], err = dev.Wrap(m)
		}
		if err != nil {
			s.release()
			return nil, fmt.Errorf("actors: mapping experts of layer %d: %w", layer, err)
		}
	}
	return s, nil
}

// View returns where a slot begins.
func (s *slotMemory) View(id stages.SlotID) gpu.View {
	return gpu.View{Buf: s.buffers[int(id)/s.perBuffer], Offset: s.base + int(id)%s.perBuffer*s.stride}
}

// bytes returns the memory that a slot is read into; only its owner may touch it.
func (s *slotMemory) bytes(id stages.SlotID) []byte {
	v := s.View(id)
	return v.Buf.Bytes()[v.Offset : v.Offset+s.bytesEach : v.Offset+s.bytesEach]
}

// noteFilled notes that a slot takes up memory, or does no longer. Whoever runs the line calls it.
func (s *slotMemory) noteFilled(id stages.SlotID, now bool) {
	if s.filled == nil || s.filled[id] == now {
		return
	}
	s.filled[id] = now
	if now {
		s.nHeld.Add(1)
	} else {
		s.nHeld.Add(-1)
	}
}

// held returns the bytes of memory that slots take up.
func (s *slotMemory) held() int64 { return s.nHeld.Load() * int64(s.stride) }

// discard gives a slot's memory back to the system until it is read into again. Its bytes are
// undefined from then on. Pinned memory and a device's own stay.
func (s *slotMemory) discard(id stages.SlotID) error {
	if s.staging != nil {
		return nil
	}
	v := s.View(id)
	s.noteFilled(id, false)
	return sysmem.Discard(v.Buf.Bytes()[v.Offset : v.Offset+s.stride])
}
