package expertmem

import (
	"errors"
	"fmt"
	"sync"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/tier"
)

// staging is how records come to slots that lie in the memory of a gpu.Discrete device: through the
// host's memory, from which they are uploaded before expert-IO hears that the read has ended. So a
// slot that is resident is on the device, only those who need an expert wait for its upload, and
// uploads run beside what the device computes, on a queue of their own.
type staging struct {
	tier *hostTier

	mu       sync.Mutex // one Submit at a time
	queue    gpu.Queue
	uploaded int64 // bytes
}

// newStagedSlots makes empty slots on a device with memory of its own, and the tier before them.
func (m *Memory) newStagedSlots(dev gpu.Discrete) (s *slotMemory, err error) {
	n, stride := m.plan.Slots, m.plan.Stride
	s = &slotMemory{perBuffer: n, stride: stride, bytesEach: m.plan.SlotBytes, staging: new(staging)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("expertmem: %d expert slots of %d bytes: %w", n, stride, err), s.release())
			s = nil
		}
	}()
	buf, err := dev.NewBuffer(n * stride)
	if err != nil {
		return s, err
	}
	s.buffers = []gpu.Buffer{buf}
	cfg := tier.Config{Layers: m.cfg.Layers, Experts: m.cfg.File.Experts(), Slots: n, Limit: m.plan.HostSlots}
	if s.staging.tier, err = newHostTier(dev, cfg, stride, m.plan.SlotBytes, stagedReads{m}, m.cfg.Log); err != nil {
		return s, err
	}
	s.staging.queue, err = dev.NewQueue()
	return s, err
}

// submit uploads a number of bytes.
func (s *staging) submit(c *gpu.Commands, bytes int) (gpu.Ticket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uploaded += int64(bytes)
	return s.queue.Submit(c)
}

// add adds what has been staged to an engine's figures.
func (s *staging) add(to *stages.Stats) {
	s.mu.Lock()
	to.Reads.Uploaded = s.uploaded
	s.mu.Unlock()
	to.Reads.FromHost, to.Memory.HostHeld = s.tier.hits(), s.tier.heldBytes()
}

// close waits for uploads under way and their callbacks.
func (s *staging) close() error {
	if s.queue == nil {
		return nil
	}
	return s.queue.Close()
}
