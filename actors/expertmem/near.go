package expertmem

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// nearSlots is slots in a device's own memory, where all experts were loaded into the host's: what
// expert-IO has copied there the device need not read over the bus.
type nearSlots struct {
	first  stages.SlotID // slots below lie in the host's memory
	buffer gpu.Buffer
}

// addNear adds n slots, with those of experts in transit, to those of the host's memory.
func (s *slotMemory) addNear(dev gpu.Device, n int) error {
	buf, err := dev.NewBuffer(n * s.stride)
	if err != nil {
		return err
	}
	s.near = &nearSlots{first: stages.SlotID(len(s.buffers) * s.perBuffer), buffer: buf}
	return s.uploads.add(dev)
}

// comeNear copies an expert from the host's memory to a near slot.
func (t *slotRead) comeNear() {
	slots, r := t.m.slots, &t.result[0]
	r.FromHost, r.BeganNS = true, t.now()
	r.EndedNS = r.BeganNS
	t.upload(slots.bytes(stages.SlotID(t.reqs[0].Layer*slots.perBuffer + t.reqs[0].Expert)))
}
