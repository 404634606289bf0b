//go:build linux && (amd64 || arm64)

package actors_test

import (
	"slices"
	"sync/atomic"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/emu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// farEmulator is the emulator with memory of its own: the host cannot address what it makes, but
// for what is pinned.
type farEmulator struct {
	gpu.Device
	b *farBackend
}

var _ gpu.Discrete = (*farEmulator)(nil)

func newFarEmulator(tb testing.TB) *farEmulator {
	tb.Helper()
	inner, err := emu.Open(emulatorConfig(tb))
	if err != nil {
		tb.Fatal(err)
	}
	b := &farBackend{Backend: inner}
	d, err := launch.New(b)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Errorf("closing the device: %v", err)
		}
	})
	return &farEmulator{d, b}
}

func (d *farEmulator) Memory() (free, total int64, err error) { return 1 << 30, 1 << 30, nil }

func (d *farEmulator) NewPinned(n int) (gpu.Buffer, error) {
	d.b.pinning.Add(1)
	defer d.b.pinning.Add(-1)
	return d.NewBuffer(n)
}

// farBackend hides the emulator's memory from the host.
type farBackend struct {
	launch.Backend
	pinning atomic.Int32
}

type farMemory struct{ launch.Memory }

func (farMemory) Bytes() []byte { return nil }

// near returns the emulator's own memory.
func near(m launch.Memory) launch.Memory {
	if f, ok := m.(farMemory); ok {
		return f.Memory
	}
	return m
}

func (b *farBackend) NewMemory(n int) (launch.Memory, error) {
	m, err := b.Backend.NewMemory(n)
	if err != nil || b.pinning.Load() > 0 {
		return m, err
	}
	return farMemory{m}, nil
}

func (b *farBackend) NewStream() (launch.Stream, error) {
	s, err := b.Backend.NewStream()
	return farStream{s}, err
}

type farStream struct{ launch.Stream }

func (s farStream) Launch(p launch.Pipeline, l *launch.Launch) error {
	inner := *l
	inner.Args = slices.Clone(l.Args)
	for i := range inner.Args {
		if a := &inner.Args[i]; a.Memory != nil {
			a.Memory = near(a.Memory)
		}
	}
	return s.Stream.Launch(p, &inner)
}

func (s farStream) CopyIn(dst launch.Memory, offset int, src []byte) error {
	return s.Stream.CopyIn(near(dst), offset, src)
}

func (s farStream) CopyOut(dst []byte, src launch.Memory, offset int) error {
	return s.Stream.CopyOut(dst, near(src), offset)
}

func (s farStream) Fill(dst launch.Memory, offset, n int) error {
	return s.Stream.Fill(near(dst), offset, n)
}

// TestEmulatorHosts has hosts compute on GPUs, as far as there are some.
func TestEmulatorHosts(t *testing.T) {
	emulator(t) // the test needs a compiler
	testHostsFar(t, fixtures.Qwen35MoEQ4, func() gpu.Device { return newFarEmulator(t) })
}

// TestEmulatorNear has the emulator read experts in the host's memory.
func TestEmulatorNear(t *testing.T) {
	emulator(t) // the test needs a compiler
	dev := newFarEmulator(t)
	testNear(t, nearTest{fixtures.Qwen35MoEQ4, 2, dev, dev, nil})
}
