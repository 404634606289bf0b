//go:build darwin || linux

package metal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// Metal's limits of one launch.
const (
	maxArgs      = 31
	maxConstants = 4096 // bytes of one argument by value
)

// stream is a command queue. What is recorded between two Commits is a batch, which becomes one
// command buffer.
type stream struct {
	b             *backend
	queue, fence  object
	target        target
	told, telling *os.File // the pipe that command buffers' handlers write tickets to

	batch *batch // what is recorded; nil between a Commit and the next work
	line  *gpu.Line[*batch]

	mu      sync.Mutex
	batches []*batch // all, by ticket
	spare   []*batch

	ticket [8]byte // of the line's goroutine, as result
	result result
}

// batch is the work of one Commit.
type batch struct {
	ticket    uint64
	table     table
	pipelines []*pipeline // of the launches
	staging   launch.Staging[*memory]
	buffer    object // the command buffer; nil if nothing was submitted
	told      bool   // by its handler; of the line's goroutine
	err       error  // the first of a method
	done      func(ns int64, err error)
}

var _ launch.Stream = (*stream)(nil)

// NewStream returns a stream; its Close ends it.
func (b *backend) NewStream() (launch.Stream, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, gpu.ErrClosed
	}
	told, telling, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("metal: the completion pipe: %w", err)
	}
	queue, fence, err := b.sys.newQueue()
	if err != nil {
		return nil, errors.Join(err, told.Close(), telling.Close())
	}
	s := &stream{b: b, queue: queue, fence: fence, told: told, telling: telling}
	s.target = target{queue: uintptr(queue), fence: uintptr(fence), told: int32(telling.Fd())}
	s.line = gpu.NewLine(s.finish)
	b.streams++
	return s, nil
}

// record returns the batch that work is added to.
func (s *stream) record() *batch {
	if s.batch != nil {
		return s.batch
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.spare) - 1; n >= 0 {
		s.batch = s.spare[n]
		s.spare = s.spare[:n]
	} else {
		s.batch = &batch{ticket: uint64(len(s.batches))}
		s.batches = append(s.batches, s.batch)
	}
	return s.batch
}

// keep makes err the batch's, if it is the first.
func (x *batch) keep(err error) error {
	if x.err == nil {
		x.err = err
	}
	return err
}

// begin adds a launch, whose arguments follow.
func (x *batch) begin(p *pipeline, groups [3]int, threads int) {
	x.table.launches = append(x.table.launches, launchEntry{
		pipeline: uintptr(p.pipeline), groups: [3]uint32{uint32(groups[0]), uint32(groups[1]), uint32(groups[2])}, threads: uint32(threads),
		first: uint32(len(x.table.args)),
	})
	x.pipelines = append(x.pipelines, p)
}

// bind adds an argument to the last launch.
func (x *batch) bind(a argEntry) {
	x.table.args = append(x.table.args, a)
	x.table.launches[len(x.table.launches)-1].count++
}

func (x *batch) bindMemory(m *memory, offset int) {
	x.bind(argEntry{buffer: uintptr(m.buffer), offset: uint64(m.offset + offset)})
}

// bindBytes binds constants. Each begins at a multiple of 16, as the greatest of a struct's members
// may want.
func (x *batch) bindBytes(v []byte) {
	at := (len(x.table.constants) + 15) &^ 15
	x.table.constants = append(slices.Grow(x.table.constants, at-len(x.table.constants)+len(v))[:at], v...)
	x.bind(argEntry{offset: uint64(at), length: uint64(len(v))})
}

func (x *batch) bindCount(n uint32) {
	var v [4]byte
	binary.NativeEndian.PutUint32(v[:], n)
	x.bindBytes(v[:])
}

// Launch adds a launch to the batch.
func (s *stream) Launch(lp launch.Pipeline, l *launch.Launch) error {
	x, p := s.record(), lp.(*pipeline)
	if why := p.refuses(l); why != "" {
		return x.keep(&KernelError{p.kernel.Name, p.kernel.Defines, why})
	}
	x.begin(p, l.Groups, l.Threads)
	for i := range l.Args {
		if a := &l.Args[i]; a.Memory != nil {
			x.bindMemory(a.Memory.(*memory), a.Offset)
		} else {
			x.bindBytes(a.Bytes)
		}
	}
	return nil
}

// refuses returns why Metal would not take a launch, or "" if it would.
func (p *pipeline) refuses(l *launch.Launch) string {
	if l.Threads > p.maxThreads {
		return fmt.Sprintf("this GPU runs it with at most %d threads in a threadgroup (maxTotalThreadsPerThreadgroup), but it is launched with %d", p.maxThreads, l.Threads)
	}
	if len(l.Args) != p.args || p.args > maxArgs {
		return fmt.Sprintf("%d arguments, want %d, at most %d are possible", len(l.Args), p.args, maxArgs)
	}
	for i := range l.Args {
		a := &l.Args[i]
		if a.Memory == nil && (len(a.Bytes) == 0 || len(a.Bytes) > maxConstants) {
			return fmt.Sprintf("argument %d has %d bytes, want 1 to %d", i, len(a.Bytes), maxConstants)
		}
		if a.Memory != nil && (a.Offset < 0 || a.Offset >= len(a.Memory.(*memory).host)) {
			return fmt.Sprintf("argument %d begins at %d of memory of %d bytes", i, a.Offset, len(a.Memory.(*memory).host))
		}
	}
	return ""
}

// CopyIn copies src to dst by way of staging memory: earlier launches may still use dst.
func (s *stream) CopyIn(dst launch.Memory, offset int, src []byte) error {
	x := s.record()
	mem, in, at, err := x.staging.Take(&s.b.spare, len(src))
	if err != nil {
		return x.keep(err)
	}
	copy(mem, src)
	return s.transfer("copy_memory", len(src), piece{in, at}, piece{dst.(*memory), offset})
}

// CopyOut copies from src to dst by way of staging memory: later launches may write to src before
// the host reads it.
func (s *stream) CopyOut(dst []byte, src launch.Memory, offset int) error {
	x := s.record()
	mem, in, at, err := x.staging.Take(&s.b.spare, len(dst))
	if err != nil {
		return x.keep(err)
	}
	x.staging.Out(dst, mem)
	return s.transfer("copy_memory", len(dst), piece{src.(*memory), offset}, piece{in, at})
}

// Fill sets n bytes to zero.
func (s *stream) Fill(dst launch.Memory, offset, n int) error {
	return s.transfer("clear_memory", n, piece{dst.(*memory), offset})
}

// Commit makes a command buffer of the batch. One in which a method has failed is not run.
func (s *stream) Commit(done func(ns int64, err error)) {
	x := s.record()
	s.batch = nil
	x.done = done
	if x.err == nil && len(x.table.launches) > 0 {
		if x.buffer = s.b.sys.submit(&s.target, &x.table, x.ticket); x.buffer == nil {
			x.err = fmt.Errorf("metal: %s gives no command buffer for %d launches", s.b.sys.name(), len(x.table.launches))
		} else {
			s.target.wait = 1
		}
	}
	s.line.Add(x)
}

// finish waits for a batch, copies its downloads to their places, and reports completion.
func (s *stream) finish(x *batch) {
	ns, err := s.await(x)
	x.staging.Return(&s.b.spare, err == nil)
	done := x.done
	clear(x.pipelines)
	*x = batch{ticket: x.ticket, pipelines: x.pipelines[:0], staging: x.staging,
		table: table{x.table.launches[:0], x.table.args[:0], x.table.constants[:0]}}
	s.mu.Lock()
	s.spare = append(s.spare, x)
	s.mu.Unlock()
	done(ns, err)
}

// await waits until the GPU has done a batch and returns how long it took.
func (s *stream) await(x *batch) (ns int64, err error) {
	if x.buffer == nil {
		return 1, x.err
	}
	for !x.told { // handlers of later ones may come first
		if _, err := io.ReadFull(s.told, s.ticket[:]); err != nil {
			return 1, fmt.Errorf("metal: waiting for the GPU: %w", err)
		}
		ticket := binary.NativeEndian.Uint64(s.ticket[:])
		s.mu.Lock()
		s.batches[ticket].told = true
		s.mu.Unlock()
	}
	r := &s.result
	s.b.sys.finish(x.buffer, r)
	ns = max(1, int64(r.seconds*1e9))
	if r.failed == 0 {
		return ns, nil
	}
	text, _, _ := bytes.Cut(r.text[:], []byte{0})
	return ns, &CommandError{Doing: x.doing(), Code: r.code, Text: string(text)}
}

// doing describes a batch for the error of a kernel that failed.
func (x *batch) doing() string {
	var names []string
	for _, p := range x.pipelines {
		if !slices.Contains(names, p.kernel.Name) {
			names = append(names, p.kernel.Name)
		}
	}
	return launch.Doing(names)
}

// Close waits for the work and the calls of done, and ends the stream.
func (s *stream) Close() error {
	if !s.line.Close() {
		return nil
	}
	s.b.sys.release(s.fence)
	s.b.sys.release(s.queue)
	err := errors.Join(s.told.Close(), s.telling.Close())
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.b.streams--
	return err
}
