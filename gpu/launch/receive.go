package launch

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/gpu"
)

// PeerCopy is a copy from the memory of another device.
type PeerCopy struct {
	Dst, Src             Memory
	DstOffset, SrcOffset int
	Bytes                int
}

// PeerStream is a Stream of an Asynchronous back end that takes memory from other devices of its
// kind.
type PeerStream interface {
	Stream
	// Reaches reports whether memory of another stream's device can be copied. It may try it out,
	// the first time.
	Reaches(from Stream) bool
	// Receive makes copies when everything is done that from was given before. It returns at once.
	Receive(from Stream, copies []PeerCopy) error
}

var _ gpu.Receiver = (*queue)(nil)

// Reaches reports whether the queue takes memory from the device of another one.
func (q *queue) Reaches(from gpu.Queue) bool {
	o, ok := from.(*queue)
	if !ok || q.x == nil || o.x == nil {
		return false
	}
	s, ok := q.x.stream.(PeerStream)
	return ok && s.Reaches(o.x.stream)
}

// Receive makes moves before what is submitted next, see gpu.Receiver.
func (q *queue) Receive(from gpu.Queue, moves []gpu.Move) error {
	o, ok := from.(*queue)
	if !ok || q.x == nil || o.x == nil {
		return fmt.Errorf("launch: a queue of %s takes no memory from %T", q.d.Name(), from)
	}
	s, ok := q.x.stream.(PeerStream)
	if !ok {
		return fmt.Errorf("launch: %s takes no memory from other devices", q.d.Name())
	}
	o.encoding.Lock() // nothing is being given to it
	defer o.encoding.Unlock()
	q.encoding.Lock()
	defer q.encoding.Unlock()
	q.copies = q.copies[:0]
	for _, m := range moves {
		q.copies = append(q.copies, PeerCopy{Dst: memoryOf(m.Dst), DstOffset: m.Dst.Offset, Src: memoryOf(m.Src), SrcOffset: m.Src.Offset, Bytes: m.Bytes})
	}
	err := s.Receive(o.x.stream, q.copies)
	clear(q.copies)
	if err != nil {
		s.Commit(func(int64, error) {}) // the next Submit is not to fail by this
	}
	return err
}
