package expertmem

import (
	"sync"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
)

// nearSlots is slots in a device's own memory, where all experts were loaded into the host's: what
// expert-IO has copied there the device need not read over the bus. Copies run beside what the
// device computes, on a queue of their own.
type nearSlots struct {
	first  stages.SlotID // slots below lie in the host's memory
	buffer gpu.Buffer

	mu     sync.Mutex // one Submit at a time
	queue  gpu.Queue
	copied int64 // bytes
}

// newNearSlots makes n slots, with those of experts in transit, beside those of the host's memory.
// What it returns with an error is to be closed.
func newNearSlots(dev gpu.Device, n int, host *slotMemory) (s *nearSlots, err error) {
	s = &nearSlots{first: stages.SlotID(len(host.buffers) * host.perBuffer)}
	if s.buffer, err = dev.NewBuffer(n * host.stride); err != nil {
		return s, err
	}
	s.queue, err = dev.NewQueue()
	return s, err
}

// submit copies a number of bytes.
func (s *nearSlots) submit(c *gpu.Commands, bytes int) (gpu.Ticket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copied += int64(bytes)
	return s.queue.Submit(c)
}

// bytes returns how many have been copied.
func (s *nearSlots) bytes() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.copied
}

// stop waits for copies under way and their messages.
func (s *nearSlots) stop() error {
	if s.queue == nil {
		return nil
	}
	return s.queue.Close()
}

// close gives the memory back.
func (s *nearSlots) close() error {
	err := s.stop()
	if s.buffer != nil {
		s.buffer.Release()
	}
	return err
}

// comeNear copies an expert from the host's memory to a near slot.
func (t *slotRead) comeNear(host []byte) {
	s, r := t.m.slots, &t.result[0]
	r.FromHost, r.BeganNS = true, t.now()
	r.EndedNS = r.BeganNS
	t.commands.Reset()
	gpu.Encode(&t.commands, gpu.Upload{Dst: s.View(r.Slot), Src: host})
	ticket, err := s.near.submit(&t.commands, len(host))
	if err != nil {
		t.tell(err)
		return
	}
	ticket.OnDone(t.cameNear)
}

func (t *slotRead) nearEnded(err error) {
	if err == nil {
		t.result[0].PlacedNS = t.now()
	}
	t.tell(err)
}
