package expertmem

import (
	"errors"
	"fmt"
	"sync"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/io/expertfile"
)

// loadWorkers is how many experts are on their way to the device at once while all are loaded.
const loadWorkers = 8

// loadSlots makes one slot of every expert of every layer in the own memory of the layer's device,
// and fills them all.
func loadSlots(deviceOf func(layer int) gpu.Device, f *expertfile.File, layers int) (s *slotMemory, err error) {
	n := f.Layout().Bytes
	s = &slotMemory{buffers: make([]gpu.Buffer, layers), perBuffer: f.Experts(), stride: n, bytesEach: n}
	for _, layer := range f.Layers() {
		if s.buffers[layer], err = deviceOf(layer).NewBuffer(f.Experts() * n); err != nil {
			break
		}
	}
	if err == nil {
		err = s.load(deviceOf, f)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("expertmem: bringing experts to the device: %w", err), s.release())
	}
	return s, nil
}

// load reads and uploads all experts, several at a time.
func (s *slotMemory) load(deviceOf func(layer int) gpu.Device, f *expertfile.File) error {
	type record struct{ layer, expert int }
	records := make(chan record)
	errs := make(chan error, loadWorkers)
	failed := make(chan struct{})
	var once sync.Once
	var workers sync.WaitGroup
	for range loadWorkers {
		workers.Go(func() {
			all := loaders{}
			var err error
			for r := range records {
				var l *loader
				if err == nil {
					l, err = all.of(deviceOf(r.layer).(gpu.Discrete), s.bytesEach)
				}
				if err == nil {
					err = l.load(f, r.layer, r.expert, gpu.View{Buf: s.buffers[r.layer], Offset: r.expert * s.stride})
				}
				if err != nil {
					once.Do(func() { close(failed) })
				}
			}
			errs <- errors.Join(err, all.close())
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

func (l *loader) load(f *expertfile.File, layer, expert int, to gpu.View) error {
	mem := l.host.Bytes()
	if err := f.ReadExpert(layer, expert, mem); err != nil {
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
