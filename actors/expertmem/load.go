package expertmem

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/readpool"
	"github.com/moeflux/moeflux-actor/stages"
)

// loadSlots makes one slot of every expert of every layer in memory of the layer's device, or, if
// they do not fit there, in the host's, and fills them all from src, until ctx ends.
func (m *Memory) loadSlots(ctx context.Context, src readpool.Source) (*slotMemory, error) {
	began := time.Now()
	s, err := m.emptySlots()
	if err == nil {
		err = m.load(ctx, s, src)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("expertmem: loading experts: %w", err), s.release())
	}
	took := time.Since(began).Seconds()
	m.cfg.Log.Info("all experts are in memory", "bytes", m.plan.Bytes, "seconds", took,
		"near_slots", m.plan.Near)
	return s, nil
}

// emptySlots makes the memory for loadSlots. What it returns with an error is to be released.
func (m *Memory) emptySlots() (*slotMemory, error) {
	f, layers := m.cfg.File, m.cfg.Layers
	s := &slotMemory{
		buffers: make([]gpu.Buffer, layers), bases: make([]int, layers),
		perBuffer: f.Experts(), stride: m.plan.Stride, bytesEach: m.plan.SlotBytes,
	}
	dev, own := m.cfg.Device.(gpu.Discrete)
	if own && m.plan.Near == 0 {
		s.stride = s.bytesEach // no read goes there
	}
	for _, layer := range f.Layers() {
		room := m.deviceOf(layer).NewBuffer
		if m.plan.Near > 0 {
			room = dev.NewPinned
		}
		buf, err := room(f.Experts()*s.stride + SlotAlign)
		if err != nil {
			return s, err
		}
		s.buffers[layer], s.bases[layer] = buf, baseOf(buf)
	}
	if m.plan.Near == 0 {
		return s, nil
	}
	return s, s.addNear(dev, m.plan.Near+m.plan.Transit)
}

// load fills the slots of all experts, as many at a time as the plan has workers.
func (m *Memory) load(ctx context.Context, s *slotMemory, src readpool.Source) error {
	ctx, failed := context.WithCancelCause(ctx)
	defer failed(nil)
	records := make(chan expertAt)
	var workers sync.WaitGroup
	for range m.plan.Workers {
		workers.Go(func() {
			all := loaders{}
			for x := range records {
				if err := m.loadOne(all, s, src, x); err != nil {
					failed(err)
				}
			}
			if err := all.close(); err != nil {
				failed(err)
			}
		})
	}
	for id := 0; id < len(m.cfg.File.Layers())*s.perBuffer && ctx.Err() == nil; id++ {
		select {
		case records <- expertAt{m.cfg.File.Layers()[id/s.perBuffer], id % s.perBuffer}:
		case <-ctx.Done():
		}
	}
	close(records)
	workers.Wait()
	return context.Cause(ctx)
}

// expertAt names an expert.
type expertAt struct{ layer, expert int }

// read reads the expert's record, twice if need be.
func (x expertAt) read(src readpool.Source, dst []byte) error {
	err, _ := readpool.ReadTwice(src, &readpool.Request{Layer: x.layer, Expert: x.expert, Dst: dst})
	return err
}

// loadOne fills the slot of one expert: straight, or by way of the host's memory.
func (m *Memory) loadOne(all loaders, s *slotMemory, src readpool.Source, x expertAt) error {
	id := stages.SlotID(x.layer*s.perBuffer + x.expert)
	dev, own := m.deviceOf(x.layer).(gpu.Discrete)
	if !own || s.near != nil {
		return x.read(src, s.bytes(id))
	}
	l, err := all.of(dev, s.bytesEach)
	if err != nil {
		return err
	}
	return l.load(src, x, s.View(id))
}

// loader brings one expert after the other to the device.
type loader struct {
	host     gpu.Buffer
	queue    gpu.Queue
	commands gpu.Commands
	done     chan error
}

// loaders are one worker's, for each device that it has brought experts to.
type loaders map[gpu.Discrete]*loader

// of returns the loader for a device.
func (all loaders) of(dev gpu.Discrete, bytes int) (l *loader, err error) {
	if l = all[dev]; l == nil {
		l, err = newLoader(dev, bytes)
		all[dev] = l
	}
	return l, err
}

func (all loaders) close() error {
	var errs []error
	for _, l := range all {
		errs = append(errs, l.close())
	}
	return errors.Join(errs...)
}

func newLoader(dev gpu.Discrete, bytes int) (*loader, error) {
	l := &loader{done: make(chan error, 1)}
	var err error
	if l.host, err = dev.NewPinned(bytes); err != nil {
		return l, err
	}
	l.queue, err = dev.NewQueue()
	return l, err
}

func (l *loader) load(src readpool.Source, x expertAt, to gpu.View) error {
	mem := l.host.Bytes()
	if err := x.read(src, mem); err != nil {
		return err
	}
	l.commands.Reset()
	gpu.Encode(&l.commands, gpu.Upload{Dst: to, Src: mem})
	t, err := l.queue.Submit(&l.commands)
	if err != nil {
		return err
	}
	t.OnDone(func(err error) { l.done <- err })
	return <-l.done
}

func (l *loader) close() (err error) {
	if l.queue != nil {
		err = l.queue.Close()
	}
	if l.host != nil {
		l.host.Release()
	}
	return err
}
