//go:build linux && (amd64 || arm64)

package emu

import (
	"bytes"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// maxArgs is how many arguments a kernel may have: Metal has 31 buffers.
const maxArgs = 31

// job mirrors msl_job.
type job struct {
	entry   uintptr
	args    unsafe.Pointer
	memory  uint32
	grid    [3]uint32
	threads uint32
	order   uint32
	workers uint32
}

// stream runs everything at once, in the caller's goroutine.
type stream struct {
	b     *Backend
	took  time.Duration // since the last Commit
	job   job
	args  [maxArgs]unsafe.Pointer
	error [512]byte // of the runtime
}

var _ launch.Marker = (*stream)(nil)

// NewStream returns a stream.
func (b *Backend) NewStream() (launch.Stream, error) {
	return &stream{b: b}, nil
}

// Error reports a kernel that failed.
type Error struct {
	Kernel launch.Kernel
	Why    string
}

func (e *Error) Error() string {
	return fmt.Sprintf("emu: kernel %s with %q: %s", e.Kernel.Name, e.Kernel.Defines, e.Why)
}

func (s *stream) Launch(lp launch.Pipeline, l *launch.Launch) error {
	p := lp.(*pipeline)
	if err := s.bind(p, l); err != nil {
		return err
	}
	s.job = job{entry: p.entry, args: unsafe.Pointer(&s.args[0]), memory: p.memory, threads: uint32(l.Threads),
		order: uint32(s.b.order), workers: s.b.workers}
	for d, n := range l.Groups {
		s.job.grid[d] = uint32(n)
	}
	began := time.Now()
	failed, _, _ := purego.SyscallN(s.b.launch, uintptr(unsafe.Pointer(&s.job)), uintptr(unsafe.Pointer(&s.error[0])), uintptr(len(s.error)))
	s.took += time.Since(began)
	runtime.KeepAlive(l)
	clear(s.args[:])
	if uint32(failed) != 0 {
		why, _, _ := bytes.Cut(s.error[:], []byte{0})
		return &Error{l.Kernel, string(why)}
	}
	return nil
}

// bind checks that the launch suits Metal and CUDA, and puts the arguments' addresses into s.args.
func (s *stream) bind(p *pipeline, l *launch.Launch) error {
	fail := func(format string, args ...any) error { return &Error{l.Kernel, fmt.Sprintf(format, args...)} }
	k := p.kernel
	switch {
	case l.Threads <= 0 || l.Threads > 1024 || l.Threads%32 != 0:
		return fail("%d threads in a threadgroup, want a multiple of 32 up to 1024", l.Threads)
	case k.MaxThreads > 0 && l.Threads > k.MaxThreads:
		return fail("%d threads in a threadgroup, the kernel says at most %d", l.Threads, k.MaxThreads)
	case l.Groups[0] <= 0 || l.Groups[1] <= 0 || l.Groups[2] <= 0 || l.Groups[0] > 1<<31-1 || l.Groups[1] > 65535 || l.Groups[2] > 65535:
		return fail("a grid of %v threadgroups", l.Groups)
	case len(l.Args) != len(k.Args) || len(l.Args) > maxArgs:
		return fail("%d arguments, want %d", len(l.Args), len(k.Args))
	}
	for i := range l.Args {
		a, want := &l.Args[i], &k.Args[i]
		if a.Memory == nil {
			if len(a.Bytes) != int(p.sizes[i]) {
				return fail("%s: %d bytes, the kernel's type has %d", want.Name, len(a.Bytes), p.sizes[i])
			}
			s.args[i] = unsafe.Pointer(unsafe.SliceData(a.Bytes))
			continue
		}
		m := a.Memory.(*memory)
		if a.Offset < 0 || a.Offset >= len(m.bytes) {
			return fail("%s: offset %d in memory of %d bytes", want.Name, a.Offset, len(m.bytes))
		}
		s.args[i] = unsafe.Pointer(&m.bytes[a.Offset])
		if uintptr(s.args[i])%uintptr(p.sizes[i]) != 0 {
			return fail("%s: offset %d is not aligned to %d", want.Name, a.Offset, p.sizes[i])
		}
		for j := range i { // CUDA's compiler assumes that nobody writes const memory
			if s.args[j] == s.args[i] && want.Const != k.Args[j].Const {
				return fail("%s and %s are the same memory, one const and one not", k.Args[j].Name, want.Name)
			}
		}
	}
	return nil
}

func (s *stream) CopyIn(dst launch.Memory, offset int, src []byte) error {
	copy(dst.Bytes()[offset:offset+len(src)], src)
	return nil
}

func (s *stream) CopyOut(dst []byte, src launch.Memory, offset int) error {
	copy(dst, src.Bytes()[offset:offset+len(dst)])
	return nil
}

func (s *stream) Fill(dst launch.Memory, offset, n int) error {
	clear(dst.Bytes()[offset : offset+n])
	return nil
}

// Mark writes how long kernels have run since the last Commit.
func (s *stream) Mark(ns *int64) error {
	*ns = max(1, int64(s.took))
	return nil
}

func (s *stream) Commit(done func(ns int64, err error)) {
	ns := max(1, int64(s.took))
	s.took = 0
	done(ns, nil)
}

func (s *stream) Close() error { return nil }
