package expertmem

import (
	"errors"
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
	// one for each part of the device, or one a layer if mapped (nil for a layer without experts)
	buffers   []gpu.Buffer
	perBuffer int   // slots of a layer; 0: ends tells
	ends      []int // of parts, the first slot after a buffer's
	bases     []int // of parts, bytes before a buffer's first slot; nil: none
	stride    int   // bytes from slot to slot
	bytesEach int

	filled []bool       // [slots], true for a slot that takes up memory; nil if mapped
	nHeld  atomic.Int64 // the number of true ones

	near    *nearSlots // beside slots of the host's memory, or nil
	tier    *hostTier  // what reads go through to slots that the host cannot address; otherwise nil
	uploads uploads    // to slots that the host cannot address
}

// newSlots makes empty slots in the memory of devices, so many of each.
func newSlots(devices []gpu.Device, each []int, stride, expertBytes int) (s *slotMemory, err error) {
	s = &slotMemory{stride: stride, bytesEach: expertBytes}
	defer func() {
		if err != nil {
			err, s = errors.Join(err, s.release()), nil
		}
	}()
	total := 0
	for i, dev := range devices {
		n := each[i]
		buf, err := dev.NewBuffer(n*stride + SlotAlign) // small buffers begin anywhere
		if err != nil {
			return s, fmt.Errorf("expertmem: %d expert slots of %d bytes: %w", n, stride, err)
		}
		total += n
		s.buffers, s.ends = append(s.buffers, buf), append(s.ends, total)
		if buf.Bytes() == nil {
			return s, fmt.Errorf("expertmem: device %s has no memory that expert reads can fill", dev.Name())
		}
		s.bases = append(s.bases, baseOf(buf))
	}
	s.filled = make([]bool, total)
	return s, nil
}

// baseOf returns how many bytes come before the first slot of a buffer, which begins anywhere if it
// is small: so many that reads past the page cache can go there. 0 for a device's own memory.
func baseOf(buf gpu.Buffer) int {
	return int(-uintptr(unsafe.Pointer(unsafe.SliceData(buf.Bytes()))) % SlotAlign)
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

// bufferOf returns which buffer has a slot, and the slot's place there.
func (s *slotMemory) bufferOf(id stages.SlotID) (buffer, at int) {
	if s.perBuffer > 0 {
		return int(id) / s.perBuffer, int(id) % s.perBuffer
	}
	first := 0
	for int(id) >= s.ends[buffer] {
		first = s.ends[buffer]
		buffer++
	}
	return buffer, int(id) - first
}

// partOf returns which of the uploads' queues fills a slot.
func (s *slotMemory) partOf(id stages.SlotID) int {
	if s.near != nil {
		return 0
	}
	part, _ := s.bufferOf(id)
	return part
}

// View returns where a slot begins.
func (s *slotMemory) View(id stages.SlotID) gpu.View {
	if s.near != nil && id >= s.near.first {
		return gpu.View{Buf: s.near.buffer, Offset: int(id-s.near.first) * s.stride}
	}
	buffer, at := s.bufferOf(id)
	v := gpu.View{Buf: s.buffers[buffer], Offset: at * s.stride}
	if s.bases != nil {
		v.Offset += s.bases[buffer]
	}
	return v
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
	if s.tier != nil {
		return nil
	}
	v := s.View(id)
	s.noteFilled(id, false)
	return sysmem.Discard(v.Buf.Bytes()[v.Offset : v.Offset+s.stride])
}

// release gives the slots' memory back.
func (s *slotMemory) release() (err error) {
	err = s.uploads.close()
	if s.tier != nil {
		s.tier.close()
	}
	if s.near != nil {
		s.near.buffer.Release()
	}
	for _, b := range s.buffers {
		if b != nil {
			b.Release()
		}
	}
	return err
}
