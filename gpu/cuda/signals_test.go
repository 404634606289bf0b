//go:build linux && (amd64 || arm64)

package cuda

import (
	"os"
	"os/signal"
	"slices"
	"syscall"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// loseSignalStack does to a handler what NVIDIA's libraries do.
func loseSignalStack(t *testing.T, sig syscall.Signal) {
	t.Helper()
	var a sigaction
	if !action(sig, nil, &a) || a.flags&onStack == 0 {
		t.Fatalf("%v has action %+v, want one with a stack of its own", sig, a)
	}
	a.flags &^= onStack
	if !action(sig, &a, nil) {
		t.Fatalf("the action of %v cannot be set", sig)
	}
}

func hasSignalStack(t *testing.T, sig syscall.Signal) bool {
	t.Helper()
	var a sigaction
	if !action(sig, nil, &a) {
		t.Fatalf("the action of %v cannot be read", sig)
	}
	return a.flags&onStack != 0
}

// TestKeepSignalStacks takes the stack away from a handler of Go's, and wants it back, with the
// handler working.
func TestKeepSignalStacks(t *testing.T) {
	const sig = syscall.SIGUSR2
	came := make(chan os.Signal, 1)
	signal.Notify(came, sig)
	defer signal.Stop(came)
	loseSignalStack(t, sig)
	if got := keepSignalStacks(map[uintptr]bool{}); len(got) != 0 {
		t.Errorf("mended %v, whose handlers are not known", got)
	}
	if got := keepSignalStacks(signalHandlers()); !slices.Equal(got, []syscall.Signal{sig}) {
		t.Errorf("mended %v, want %v alone", got, sig)
	}
	if !hasSignalStack(t, sig) {
		t.Errorf("%v is still without a stack", sig)
	}
	if got := keepSignalStacks(nil); len(got) != 0 {
		t.Errorf("mended %v a second time", got)
	}
	if err := syscall.Kill(syscall.Getpid(), sig); err != nil {
		t.Fatal(err)
	}
	<-came
}

// TestSignalStacksAfterLibraries lets each call that may disturb handlers do so, and wants them
// whole after opening a device, compiling a kernel and loading it.
func TestSignalStacksAfterLibraries(t *testing.T) {
	const sig = syscall.SIGUSR2
	came := make(chan os.Signal, 1)
	signal.Notify(came, sig)
	defer signal.Stop(came)
	f, builds := newFake(t), 0
	d, c := f.driver(), fakeCompiler(&builds)
	retain, load, compile := d.retain, d.moduleLoad, c.compile
	d.retain = func(ctx *contextHandle, dev int32) result {
		loseSignalStack(t, sig)
		return retain(ctx, dev)
	}
	d.moduleLoad = func(m *moduleHandle, image []byte) result {
		loseSignalStack(t, sig)
		return load(m, image)
	}
	c.compile = func(program uintptr, options []*byte) result {
		loseSignalStack(t, sig)
		return compile(program, options)
	}
	b, err := newBackend(Config{}, d, func(int) (*compiler, error) { return c, nil })
	if err != nil {
		t.Fatal(err)
	}
	if !hasSignalStack(t, sig) {
		t.Error("opening a device leaves a handler without a stack")
	}
	if _, _, err := c.build("a source", nil); err != nil {
		t.Fatal(err)
	}
	if !hasSignalStack(t, sig) {
		t.Error("compiling leaves a handler without a stack")
	}
	if _, err := b.load(launch.Kernel{Name: "fill"}, "a source"); err != nil {
		t.Fatal(err)
	}
	if !hasSignalStack(t, sig) {
		t.Error("loading leaves a handler without a stack")
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
