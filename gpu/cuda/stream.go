//go:build linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"hash/maphash"
	"runtime"
	"sync"
	"unsafe"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// maxArgs is the most arguments of a kernel.
const maxArgs = 32

// stream is a CUDA stream. Its work is cut into batches, one for each Commit; a goroutine waits for
// them in order and reports them done.
type stream struct {
	b      *backend
	handle streamHandle
	fence  eventHandle // that another GPU's stream waits for; 0 until one does
	side   side        // copies beside what it does

	batch  *batch // what is recorded; nil between a Commit and the next work
	chain  chain  // launches that are kept back
	graphs graphs
	params [maxArgs]unsafe.Pointer // of one launch

	line  *gpu.Line[*batch] // what is committed
	mu    sync.Mutex
	spare []*batch

	// of the goroutine that waits
	ms     float32 // what it asks for
	waited bool    // it had to wait for the batch whose done is called
}

// batch is the work of one Commit.
type batch struct {
	begin, end eventHandle
	marks      []mark // of which marked are in use
	marked     int
	kernels    []string // launched, each once
	staging    launch.Staging[struct{}]
	err        error // the first of a method
	recorded   bool  // end comes when all is done
	done       func(ns int64, err error)
}

// mark is an event amid a batch, and where its time is wanted.
type mark struct {
	event eventHandle
	ns    *int64 // nil: in no use
}

var _ launch.Marker = (*stream)(nil)

// NewStream returns a stream; its Close ends it.
func (b *backend) NewStream() (launch.Stream, error) {
	leave, err := b.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	s := &stream{b: b, graphs: graphs{seed: maphash.MakeSeed(), known: make(map[uint64]*graph)}}
	if err := b.check(b.d.streamCreate(&s.handle, streamNonBlocking), "cuStreamCreate", ""); err != nil {
		return nil, err
	}
	b.streams++
	s.line = gpu.NewLine(s.finish)
	return s, nil
}

// record returns the batch that work is added to. It locks the goroutine to its thread and makes
// the context current there; the caller unlocks it.
func (s *stream) record() (*batch, error) {
	runtime.LockOSThread()
	if r := s.b.d.setCurrent(s.b.context); r != success {
		return nil, s.b.check(r, "cuCtxSetCurrent", s.b.name)
	}
	if s.batch != nil {
		return s.batch, s.batch.err
	}
	x, err := s.newBatch()
	if err != nil {
		return nil, err
	}
	s.batch = x
	x.err = s.b.check(s.b.d.eventRecord(x.begin, s.handle), "cuEventRecord", "")
	return x, x.err
}

// newBatch returns an empty batch in the memory of one that is done.
func (s *stream) newBatch() (*batch, error) {
	s.mu.Lock()
	if n := len(s.spare) - 1; n >= 0 {
		x := s.spare[n]
		s.spare = s.spare[:n]
		s.mu.Unlock()
		return x, nil
	}
	s.mu.Unlock()
	x := new(batch)
	if err := s.b.check(s.b.d.eventCreate(&x.begin, 0), "cuEventCreate", ""); err != nil {
		return nil, err
	}
	if err := s.b.check(s.b.d.eventCreate(&x.end, 0), "cuEventCreate", ""); err != nil {
		s.b.d.eventDestroy(x.begin)
		return nil, err
	}
	return x, nil
}

// keep makes err the batch's, if it is the first.
func (x *batch) keep(err error) error {
	if x.err == nil {
		x.err = err
	}
	return err
}

// Launch keeps a launch back until something comes that is not a launch. The driver hears of none
// but a batch's first.
func (s *stream) Launch(p launch.Pipeline, l *launch.Launch) error {
	x := s.batch
	if x == nil || x.err != nil {
		var err error
		x, err = s.record()
		runtime.UnlockOSThread()
		if err != nil {
			return err
		}
	}
	k := p.(*pipeline)
	if len(l.Args) > maxArgs {
		return x.keep(fmt.Errorf("cuda: kernel %s has %d arguments, but at most %d are possible", k.kernel, len(l.Args), maxArgs))
	}
	s.chain.add(k, l)
	return nil
}

// doing describes a node for errors.
func (n *node) doing() string {
	return fmt.Sprintf("kernel %s in %v groups of %d threads", n.p.kernel, n.groups, n.threads)
}

// transfer is record for work that is not a launch: launches that were kept back go first.
func (s *stream) transfer() (*batch, error) {
	x, err := s.record()
	if err == nil {
		err = s.flush(x)
	}
	return x, err
}

// CopyIn copies src to dst: directly if it is pinned, by way of pinned memory if it is small. Above
// directBytes the driver's own copy is faster, though the caller waits for it.
func (s *stream) CopyIn(dst launch.Memory, offset int, src []byte) error {
	x, err := s.transfer()
	defer runtime.UnlockOSThread()
	if err != nil {
		return err
	}
	from := src
	if len(src) < launch.LeastBlock || len(src) <= directBytes && !s.b.isPinned(src) {
		if from, _, _, err = x.staging.Take(&s.b.pinned, len(src)); err != nil {
			return x.keep(err)
		}
		copy(from, src)
	}
	at := address(dst.Address() + uint64(offset))
	r := s.b.d.copyIn(at, unsafe.Pointer(unsafe.SliceData(from)), uint64(len(from)), s.handle)
	if r != success {
		return x.keep(s.b.check(r, "cuMemcpyHtoDAsync_v2", fmt.Sprintf("copying %d bytes to the device", len(src))))
	}
	return nil
}

// CopyOut copies from src to dst, by way of pinned memory.
func (s *stream) CopyOut(dst []byte, src launch.Memory, offset int) error {
	x, err := s.transfer()
	defer runtime.UnlockOSThread()
	if err != nil {
		return err
	}
	to := dst
	if len(dst) <= greatestBlock {
		if to, _, _, err = x.staging.Take(&s.b.pinned, len(dst)); err != nil {
			return x.keep(err)
		}
		x.staging.Out(dst, to)
	}
	at := address(src.Address() + uint64(offset))
	r := s.b.d.copyOut(unsafe.Pointer(unsafe.SliceData(to)), at, uint64(len(to)), s.handle)
	if r != success {
		return x.keep(s.b.check(r, "cuMemcpyDtoHAsync_v2", fmt.Sprintf("copying %d bytes from the device", len(dst))))
	}
	return nil
}

// Fill sets n bytes to zero.
func (s *stream) Fill(dst launch.Memory, offset, n int) error {
	x, err := s.transfer()
	defer runtime.UnlockOSThread()
	if err != nil {
		return err
	}
	r := s.b.d.fill(address(dst.Address()+uint64(offset)), 0, uint64(n), s.handle)
	if r != success {
		return x.keep(s.b.check(r, "cuMemsetD8Async", fmt.Sprintf("clearing %d bytes", n)))
	}
	return nil
}

// Mark records an event behind all that came before. Launches that were kept back go first, so that
// a chain ends here, and the next one begins.
func (s *stream) Mark(ns *int64) error {
	x, err := s.transfer()
	defer runtime.UnlockOSThread()
	if err != nil {
		return err
	}
	if x.marked == len(x.marks) {
		var m mark
		if err := s.b.check(s.b.d.eventCreate(&m.event, 0), "cuEventCreate", ""); err != nil {
			return x.keep(err)
		}
		x.marks = append(x.marks, m)
	}
	m := &x.marks[x.marked]
	m.ns = ns
	x.marked++
	return x.keep(s.b.check(s.b.d.eventRecord(m.event, s.handle), "cuEventRecord", ""))
}

// Commit ends a batch and hands it to the goroutine that waits.
func (s *stream) Commit(done func(ns int64, err error)) {
	x, err := s.record()
	defer runtime.UnlockOSThread()
	if x == nil {
		x = s.batch
	}
	if x == nil { // not even an event is to be had
		x = new(batch)
	}
	if x.keep(err) == nil {
		s.flush(x)
	}
	s.chain.reset()
	s.batch = nil
	if x.end != 0 {
		err := s.b.check(s.b.d.eventRecord(x.end, s.handle), "cuEventRecord", "")
		x.recorded = err == nil
		x.keep(err)
	}
	x.done = done
	s.line.Add(x)
}
