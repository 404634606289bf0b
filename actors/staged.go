package actors

import (
	"errors"
	"fmt"
	"sync"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/internal/sysmem"
	"github.com/moeflux/moeflux-actor/io/expertfile"
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

// newStagedSlots makes the engine's empty slots on a device with memory of its own, and the tier
// before them.
func (e *Engine) newStagedSlots(dev gpu.Discrete) (s *slotMemory, err error) {
	i := &e.info
	n, stride := i.Slots, i.stride()
	s = &slotMemory{perBuffer: n, stride: stride, bytesEach: i.SlotBytes, staging: new(staging)}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("actors: %d expert slots of %d bytes: %w", n, stride, err), s.release())
			s = nil
		}
	}()
	buf, err := dev.NewBuffer(n * stride)
	if err != nil {
		return s, err
	}
	s.buffers = []gpu.Buffer{buf}
	cfg := tier.Config{Layers: len(e.model.Layers), Experts: e.experts.Experts(), Slots: n, Limit: i.HostSlots}
	if s.staging.tier, err = newHostTier(dev, cfg, stride, i.SlotBytes, stagedReads{e}, e.log); err != nil {
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

// loadWorkers is how many experts are on their way to the device at once while all are loaded.
const loadWorkers = 8

// loadSlots makes one slot of every expert of every layer in a device's own memory, and fills them
// all.
func loadSlots(dev gpu.Discrete, f *expertfile.File, layers int) (s *slotMemory, err error) {
	n := f.Layout().Bytes
	s = &slotMemory{buffers: make([]gpu.Buffer, layers), perBuffer: f.Experts(), stride: n, bytesEach: n}
	for _, layer := range f.Layers() {
		if s.buffers[layer], err = dev.NewBuffer(f.Experts() * n); err != nil {
			break
		}
	}
	if err == nil {
		err = s.load(dev, f)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("actors: bringing experts to the device: %w", err), s.release())
	}
	return s, nil
}

// load reads and uploads all experts, several at a time.
func (s *slotMemory) load(dev gpu.Discrete, f *expertfile.File) error {
	type record struct{ layer, expert int }
	records := make(chan record)
	errs := make(chan error, loadWorkers)
	failed := make(chan struct{})
	var once sync.Once
	var workers sync.WaitGroup
	for range loadWorkers {
		workers.Go(func() {
			l, err := newLoader(dev, s.bytesEach)
			for r := range records {
				if err == nil {
					err = l.load(f, r.layer, r.expert, gpu.View{Buf: s.buffers[r.layer], Offset: r.expert * s.stride})
				}
				if err != nil {
					once.Do(func() { close(failed) })
				}
			}
			errs <- errors.Join(err, l.close())
		})
	}
	func() {
		defer close(records)
		for _, layer := range f.Layers() {
			for expert := range f.Experts() {
				select {
				case records <- record{layer, expert}:
				case <-failed:
					return
				}
			}
		}
	}()
	workers.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// loader brings one expert after the other to the device.
type loader struct {
	host     gpu.Buffer
	queue    gpu.Queue
	commands gpu.Commands
	done     chan error
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

func (l *loader) load(f *expertfile.File, layer, expert int, to gpu.View) error {
	mem := l.host.Bytes()
	if err := f.ReadExpert(layer, expert, mem); err != nil {
		return err
	}
	l.commands.Reset()
	l.commands.EncodeUpload(gpu.Upload{Dst: to, Src: mem})
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

// deviceMemory returns the memory that an engine on a device with memory of its own may use there.
func deviceMemory(dev gpu.Discrete) (sysmem.Info, error) {
	free, total, err := dev.Memory()
	if err != nil {
		return sysmem.Info{}, fmt.Errorf("actors: the memory of %s: %w", dev.Name(), err)
	}
	return sysmem.Info{Total: total, Available: free}, nil
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
