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

	mu       sync.Mutex  // one Submit at a time
	queues   []gpu.Queue // of each part of the device
	uploaded int64       // bytes
}

// newStagedSlots makes empty slots on devices with memory of their own, so many of each, and the
// tier before them.
func (m *Memory) newStagedSlots(devices []gpu.Device, each []int) (s *slotMemory, err error) {
	stride := m.plan.Stride
	s = &slotMemory{stride: stride, bytesEach: m.plan.SlotBytes, staging: new(staging)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("expertmem: %d expert slots of %d bytes: %w", m.plan.Slots, stride, err), s.release())
			s = nil
		}
	}()
	total := 0
	for i, dev := range devices {
		buf, err := dev.NewBuffer(max(each[i], 1) * stride)
		if err != nil {
			return s, err
		}
		total += each[i]
		s.buffers, s.ends = append(s.buffers, buf), append(s.ends, total)
		queue, err := dev.NewQueue()
		if err != nil {
			return s, err
		}
		s.staging.queues = append(s.staging.queues, queue)
	}
	cfg := tier.Config{Layers: m.cfg.Layers, Experts: m.cfg.File.Experts(), Slots: total, Limit: m.plan.HostSlots}
	s.staging.tier, err = newHostTier(m.cfg.Device.(gpu.Discrete), cfg, stride, m.plan.SlotBytes, stagedReads{m}, m.cfg.Log)
	return s, err
}

// submit uploads a number of bytes to a part of the device.
func (s *staging) submit(c *gpu.Commands, part, bytes int) (gpu.Ticket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uploaded += int64(bytes)
	return s.queues[part].Submit(c)
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
	var errs []error
	for _, q := range s.queues {
		errs = append(errs, q.Close())
	}
	return errors.Join(errs...)
}
