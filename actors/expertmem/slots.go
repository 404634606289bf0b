package expertmem

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/sysmem"
	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/stages"
)

// SlotAlign is the alignment of slots: a page, so that no two slots share one and direct reads are
// possible.
const SlotAlign = expertfile.DirectAlign

// slotMemory is the memory of slots: either memory that reads fill, or the mapped packed files.
type slotMemory struct {
	buffers   []gpu.Buffer // one, or one a layer if mapped (nil for a layer without experts)
	perBuffer int          // slots of one buffer
	base      int          // bytes before the first slot of a buffer
	stride    int          // bytes from slot to slot
	bytesEach int

	filled []bool       // [slots], true for a slot that takes up memory; nil if mapped
	nHeld  atomic.Int64 // the number of true ones

	// what reads go through if the slots are device memory that the host cannot address; otherwise
	// nil
	staging *staging
}

// newSlots makes n empty slots.
func newSlots(dev gpu.Device, n, stride, expertBytes int) (*slotMemory, error) {
	buf, err := dev.NewBuffer(n*stride + SlotAlign) // small buffers begin anywhere
	if err != nil {
		return nil, fmt.Errorf("expertmem: %d expert slots of %d bytes: %w", n, stride, err)
	}
	if buf.Bytes() == nil {
		buf.Release()
		return nil, fmt.Errorf("expertmem: device %s has no memory that expert reads can fill", dev.Name())
	}
	base := int(-uintptr(unsafe.Pointer(unsafe.SliceData(buf.Bytes()))) % SlotAlign)
	return &slotMemory{buffers: []gpu.Buffer{buf}, perBuffer: n, base: base, stride: stride, bytesEach: expertBytes, filled: make([]bool, n)}, nil
}

// mapSlots makes a slot in the mapped files for every expert of every layer.
func mapSlots(deviceOf func(layer int) gpu.Device, f *expertfile.File, layers int) (*slotMemory, error) {
	n := f.Layout().Bytes
	s := &slotMemory{buffers: make([]gpu.Buffer, layers), perBuffer: f.Experts(), stride: n, bytesEach: n}
	for _, layer := range f.Layers() {
		m, err := f.Map(layer)
		if err == nil {
			s.buffers[layer], err = deviceOf(layer).Wrap(m)
		}
		if err != nil {
			s.release()
			return nil, fmt.Errorf("expertmem: mapping experts of layer %d: %w", layer, err)
		}
	}
	return s, nil
}

// View returns where a slot begins.
func (s *slotMemory) View(id stages.SlotID) gpu.View {
	return gpu.View{Buf: s.buffers[int(id)/s.perBuffer], Offset: s.base + int(id)%s.perBuffer*s.stride}
}

// bytes returns the memory of a slot, which only the slot's owner may touch.
func (s *slotMemory) bytes(id stages.SlotID) []byte {
	v := s.View(id)
	return v.Buf.Bytes()[v.Offset : v.Offset+s.bytesEach : v.Offset+s.bytesEach]
}

// noteFilled notes whether a slot takes up memory now. Only the line calls it.
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

// discard returns a slot's memory to the system, until the next read into the slot. The slot's
// bytes are undefined from then on. Pinned memory and a device's own memory stay.
func (s *slotMemory) discard(id stages.SlotID) error {
	if s.staging != nil {
		return nil
	}
	v := s.View(id)
	s.noteFilled(id, false)
	return sysmem.Discard(v.Buf.Bytes()[v.Offset : v.Offset+s.stride])
}

// release gives the slots' memory back.
func (s *slotMemory) release() (err error) {
	if s.staging != nil {
		err = s.staging.close()
		if s.staging.tier != nil {
			s.staging.tier.close()
		}
	}
	for _, b := range s.buffers {
		if b != nil {
			b.Release()
		}
	}
	return err
}
