package expertmem

import (
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/stages/tier"
)

// newStagedSlots makes empty slots on devices with memory of their own, so many of each, and the
// tier before them. Records come to such slots through the host's memory, from which they are
// uploaded before expert-IO hears that the read has ended. So a slot that is resident is on the
// device, and only those who need an expert wait for its upload.
func (m *Memory) newStagedSlots(devices []gpu.Device, each []int) (s *slotMemory, err error) {
	stride := m.plan.Stride
	s = &slotMemory{stride: stride, bytesEach: m.plan.SlotBytes}
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
		if err := s.uploads.add(dev); err != nil {
			return s, err
		}
	}
	cfg := tier.Config{Layers: m.cfg.Layers, Experts: m.cfg.File.Experts(), Slots: total, Limit: m.plan.HostSlots}
	dev := m.cfg.Device.(gpu.Discrete)
	s.tier, err = newHostTier(dev, cfg, stride, m.plan.SlotBytes, stagedReads{m}, m.cfg.Log)
	return s, err
}
