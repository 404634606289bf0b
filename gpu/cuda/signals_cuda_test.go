//go:build cuda && linux && (amd64 || arm64)

package cuda

import (
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// TestProbeSignals says which calls of NVIDIA's libraries take the alternate stack from Go's signal
// handlers, and wants all of them to have it once a kernel is compiled and loaded.
func TestProbeSignals(t *testing.T) {
	came := make(chan os.Signal, 1)
	signal.Notify(came, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(came)
	cfg := Config{Driver: os.Getenv(DriverVariable), Compiler: os.Getenv(CompilerVariable)}
	d, err := openDriver(cfg)
	if err != nil {
		t.Fatal(err)
	}
	say := func(call string, r result) result {
		t.Logf("%s: %v lose their stack", call, keepSignalStacks(nil))
		return r
	}
	initialise, retain, load := d.init, d.retain, d.moduleLoad
	d.init = func() result { return say("cuInit", initialise()) }
	d.retain = func(ctx *contextHandle, dev int32) result { return say("cuDevicePrimaryCtxRetain", retain(ctx, dev)) }
	d.moduleLoad = func(m *moduleHandle, image []byte) result { return say("cuModuleLoadData", load(m, image)) }
	b, err := newBackend(cfg, d, func(major int) (*compiler, error) {
		c, err := openCompiler(cfg, major)
		if err == nil {
			compile := c.compile
			c.compile = func(program uintptr, options []*byte) result {
				return say("nvrtcCompileProgram", compile(program, options))
			}
		}
		return c, err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	const source = `extern "C" __global__ void nothing(unsigned *x) { x[threadIdx.x] += 1; }`
	if _, err := b.load(launch.Kernel{Name: "nothing"}, source); err != nil {
		t.Fatal(err)
	}
	if lost := keepSignalStacks(nil); len(lost) != 0 {
		t.Errorf("%v are without a stack", lost)
	}
}
