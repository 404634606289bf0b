//go:build linux && (amd64 || arm64)

package cuda

import "github.com/moeflux/moeflux-actor/gpu/launch"

// finish waits for a batch, copies its downloads to their places, and reports completion.
func (s *stream) finish(x *batch) {
	ns, err := s.await(x)
	x.staging.Return(&s.b.pinned, err == nil)
	done := x.done
	clear(x.kernels)
	for i := range x.marked {
		x.marks[i].ns = nil
	}
	*x = batch{begin: x.begin, end: x.end, marks: x.marks, kernels: x.kernels[:0], staging: x.staging}
	if x.end != 0 {
		s.mu.Lock()
		s.spare = append(s.spare, x)
		s.mu.Unlock()
	}
	done(ns, err)
}

// Waited reports whether a batch was under way when the goroutine that calls done began to wait for
// it.
func (s *stream) Waited() bool { return s.waited }

// await waits until the device has done a batch and returns how long it took.
func (s *stream) await(x *batch) (ns int64, err error) {
	unbind, err := s.b.bind()
	if err != nil {
		return 1, err
	}
	defer unbind()
	d := s.b.d
	s.waited = true
	if !x.recorded { // the memory that its copies use must not be used again before they have ended
		if err := s.b.blame(d.streamSync(s.handle), "cuStreamSynchronize", x.doing()); err != nil {
			return 1, err
		}
		return 1, x.err
	}
	s.waited = d.eventQuery(x.end) != success
	if r := d.eventSync(x.end); r != success {
		return 1, s.b.blame(r, "cuEventSynchronize", x.doing())
	}
	if ns, err = s.elapsed(x.begin, x.end); err != nil {
		return 1, err
	}
	if x.err == nil {
		x.err = s.readMarks(x)
	}
	return ns, x.err
}

// elapsed returns the nanoseconds from one event to another, which have both come, at least 1. The
// driver's clock has half a microsecond.
func (s *stream) elapsed(begin, end eventHandle) (ns int64, err error) {
	err = s.b.check(s.b.d.eventElapsed(&s.ms, begin, end), "cuEventElapsedTime", "")
	return max(1, int64(float64(s.ms)*1e6)), err
}

// readMarks writes the times of a batch's marks to their places. All of its work is done.
func (s *stream) readMarks(x *batch) error {
	for _, m := range x.marks[:x.marked] {
		ns, err := s.elapsed(x.begin, m.event)
		if err != nil {
			return err
		}
		*m.ns = ns
	}
	return nil
}

// doing describes a batch for the error of a kernel that failed.
func (x *batch) doing() string { return launch.Doing(x.kernels) }

// Close waits for the work and the calls of done, and ends the stream.
func (s *stream) Close() error {
	if !s.line.Close() {
		return nil
	}
	b := s.b
	unbind, err := b.bind()
	if err == nil {
		s.closeGraphs()
		err = s.side.close(b)
		if s.fence != 0 {
			b.d.eventDestroy(s.fence)
		}
		for _, x := range s.spare {
			b.d.eventDestroy(x.begin)
			b.d.eventDestroy(x.end)
			for _, m := range x.marks {
				b.d.eventDestroy(m.event)
			}
		}
		if r := b.d.streamDestroy(s.handle); err == nil {
			err = b.check(r, "cuStreamDestroy_v2", "")
		}
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
