//go:build linux && (amd64 || arm64)

package cuda

import "strings"

func (s *stream) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// serve waits for one batch after the other.
func (s *stream) serve() {
	defer close(s.ended)
	for {
		x, closed := s.take()
		switch {
		case x != nil:
			s.finish(x)
		case closed:
			return
		default:
			<-s.wake
		}
	}
}

// take returns the oldest batch, or nil and whether there will be no more.
func (s *stream) take() (x *batch, closed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.first == len(s.waiting) {
		return nil, s.closed
	}
	x = s.waiting[s.first]
	s.waiting[s.first] = nil
	s.first++
	switch {
	case s.first == len(s.waiting):
		s.waiting, s.first = s.waiting[:0], 0
	case s.first >= 64 && 2*s.first >= len(s.waiting): // one that never runs empty must not grow for ever
		n := copy(s.waiting, s.waiting[s.first:])
		clear(s.waiting[n:])
		s.waiting, s.first = s.waiting[:n], 0
	}
	return x, false
}

// finish waits for a batch, brings what it copied out to its place, and tells.
func (s *stream) finish(x *batch) {
	ns, err := s.await(x)
	for _, o := range x.outs {
		if err == nil {
			copy(o.dst, o.src)
		}
	}
	s.b.pinned.put(x.blocks)
	done := x.done
	clear(x.kernels)
	clear(x.blocks)
	clear(x.outs)
	*x = batch{begin: x.begin, end: x.end, kernels: x.kernels[:0], blocks: x.blocks[:0], outs: x.outs[:0]}
	if x.end != 0 {
		s.mu.Lock()
		s.spare = append(s.spare, x)
		s.mu.Unlock()
	}
	done(ns, err)
}

// await waits until the device has done a batch and returns how long it took.
func (s *stream) await(x *batch) (ns int64, err error) {
	unbind, err := s.b.bind()
	if err != nil {
		return 1, err
	}
	defer unbind()
	d := s.b.d
	if !x.recorded { // the memory that its copies use must not be used again before they have ended
		if err := s.b.blame(d.streamSync(s.handle), "cuStreamSynchronize", x.doing()); err != nil {
			return 1, err
		}
		return 1, x.err
	}
	if r := d.eventSync(x.end); r != success {
		return 1, s.b.blame(r, "cuEventSynchronize", x.doing())
	}
	if err := s.b.check(d.eventElapsed(&s.ms, x.begin, x.end), "cuEventElapsedTime", ""); err != nil {
		return 1, err
	}
	return max(1, int64(float64(s.ms)*1e6)), x.err
}

// doing says what a batch did, for the error of a kernel that failed.
func (x *batch) doing() string {
	switch len(x.kernels) {
	case 0:
		return "copies"
	case 1:
		return "kernel " + x.kernels[0]
	}
	return "one of the kernels " + strings.Join(x.kernels, ", ")
}

// Close waits for the work and the calls of done, and ends the stream.
func (s *stream) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	s.poke()
	<-s.ended
	if again {
		return nil
	}
	b := s.b
	unbind, err := b.bind()
	if err == nil {
		s.closeGraphs()
		for _, x := range s.spare {
			b.d.eventDestroy(x.begin)
			b.d.eventDestroy(x.end)
		}
		err = b.check(b.d.streamDestroy(s.handle), "cuStreamDestroy_v2", "")
		unbind()
	}
	if b.cause() != nil { // its tickets have told
		err = nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.streams--
	return err
}
