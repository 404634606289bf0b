//go:build linux && (amd64 || arm64)

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// --device emu evaluates the demo model with the kernels of GPUs.
func TestEmulatorDevice(t *testing.T) {
	testenv.Find(t, "g++", testenv.CXXCompilers...)
	var r inspectResult
	o := mustCall(t, "", "inspect", "--json", "--device", "emu", "--threads", "2")
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || r.Here.Device != "emulator (2 threads)" || r.Here.Activations != "f32" {
		t.Errorf("inspect prints %q, %v", o.stdout, err)
	}
	o = callWith(t.Context(), testEnv(), "", "run", "--device", "emu", "-p", "func main", "-n", "2", "--temperature", "0")
	if o.code != 0 || strings.TrimSpace(o.stdout) == "" {
		t.Errorf("run: exit %d, stdout %q, stderr %q", o.code, o.stdout, o.stderr)
	}
	want := mustCall(t, "", "run", "--device", "host", "--activations", "f32", "-p", "func main", "-n", "2", "--temperature", "0")
	if o.stdout != want.stdout {
		t.Errorf("the emulator writes %q, the host %q", o.stdout, want.stdout)
	}
	two := callWith(t.Context(), testEnv(), "", "run", "--device", "emu:0,1", "-p", "func main", "-n", "2", "--temperature", "0", "--log-level", "info")
	if two.stdout != o.stdout || strings.Count(two.stderr, "layers of a device") != 2 {
		t.Errorf("two emulators write %q, one %q; stderr %q", two.stdout, o.stdout, two.stderr)
	}
}

// A list of devices that no machine can have is a mistake of the command line.
func TestDeviceList(t *testing.T) {
	for _, name := range []string{"cuda:0,0", "host:0,1", "emu:x"} {
		o := call(t, "", "inspect", "--device", name)
		if o.code != exitUsage || !strings.Contains(o.stderr, name) {
			t.Errorf("--device %s: exit %d, stderr %q", name, o.code, o.stderr)
		}
		checkErrorLine(t, o)
	}
}
