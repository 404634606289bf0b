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
}
