package main

import (
	"encoding/json"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/device"
)

// The flag reaches the device, and is int8 where it is not given.
func TestActivations(t *testing.T) {
	for _, c := range []struct {
		flags []string
		want  string
	}{{nil, "int8"}, {[]string{"--activations", "int8"}, "int8"}, {[]string{"--activations", "f32"}, "f32"}} {
		var r inspectResult
		o := mustCall(t, "", append([]string{"inspect", "--json"}, c.flags...)...)
		if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || r.Here.Activations != c.want || strings.Contains(r.Here.Device, "int8") != (c.want == "int8") {
			t.Errorf("%q: inspect prints %q, %v; want %s", c.flags, o.stdout, err, c.want)
		}
	}
}

// The flag reaches the engine, and is f32 where it is not given.
func TestKV(t *testing.T) {
	perPosition := map[string]int64{}
	for _, c := range []struct {
		flags []string
		want  string
	}{{nil, "f32"}, {[]string{"--kv", "f32"}, "f32"}, {[]string{"--kv", "int8"}, "int8"}} {
		var r inspectResult
		o := mustCall(t, "", append([]string{"inspect", "--json"}, c.flags...)...)
		if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || r.Here.KV != c.want || r.State == nil {
			t.Fatalf("%q: inspect prints %q, %v; want %s", c.flags, o.stdout, err, c.want)
		}
		perPosition[c.want] = r.State.KVPerToken
	}
	if a, b := perPosition["f32"], perPosition["int8"]; 10*b < 2*a || 10*b > 3*a {
		t.Errorf("%d bytes a position as float32, %d with 8 bits", a, b)
	}
}

// MOEFLUX_CPU chooses the kernels, and version, inspect and the engine agree on them.
func TestKernelsOfTheEnvironment(t *testing.T) {
	have := host.Variants()
	for _, want := range append([]string{""}, have...) {
		e := testEnv()
		e.Device.Kernels = want
		if want == "" {
			want = have[0]
		}
		var v versionResult
		o := callWith(t.Context(), e, "", "version", "--json")
		if err := json.Unmarshal([]byte(o.stdout), &v); err != nil || v.Kernels != want || !slices.Equal(v.Available, have) {
			t.Errorf("%s=%s: version prints %q, %v; want %s of %v", device.KernelsVariable, e.Device.Kernels, o.stdout, err, want, have)
		}
		var r inspectResult
		o = callWith(t.Context(), e, "", "inspect", "--json", "--threads", "1")
		if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || !strings.HasPrefix(r.Here.Device, "host (1 thread, "+want) {
			t.Errorf("%s=%s: inspect prints %q, %v; want a device with %s", device.KernelsVariable, e.Device.Kernels, o.stdout, err, want)
		}
	}
	for _, args := range [][]string{{"version"}, {"inspect"}, {"run", "-p", "x"}, {"bench"}} {
		e := testEnv()
		e.Device.Kernels = "AVX512"
		o := callWith(t.Context(), e, "", args...)
		if want := "MOEFLUX_CPU=AVX512 in the environment, but this program on this processor has " + strings.Join(have, ", "); o.code != exitUsage || !strings.Contains(o.stderr, want) {
			t.Errorf("%q: exit %d, stderr %q; want %d and %q", args, o.code, o.stderr, exitUsage, want)
		}
		checkErrorLine(t, o)
	}
}

// On another system than macOS --device metal says that it needs that.
func TestNoMetal(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("there may be a GPU here")
	}
	mustCall(t, "", "inspect") // unpacks the demo model
	o := call(t, "", "run", "-p", "x", "--device", "metal")
	if want := "Metal needs macOS, and this program was built for " + runtime.GOOS; o.code != exitFailed || !strings.Contains(o.stderr, want) {
		t.Errorf("exit %d, stderr %q; want %d and %q", o.code, o.stderr, exitFailed, want)
	}
	checkErrorLine(t, o)
}

// On a Mac auto computes on the processor, and says to whoever wants to know that metal has to be
// named.
func TestAutoNeverTakesMetal(t *testing.T) {
	e := testEnv()
	e.OS = "darwin"
	o := callWith(t.Context(), e, "", "inspect", "--json", "--log-level", "info")
	var r inspectResult
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || !strings.HasPrefix(r.Here.Device, "host (") || !strings.Contains(o.stderr, "metal, where it is named, uses the GPU") {
		t.Errorf("inspect prints %q, stderr %q, %v; want the host and a word about metal", o.stdout, o.stderr, err)
	}
}

// Without a GPU --device cuda says what was looked for where, and auto says once, to who wants to
// know, that the processor computes.
func TestNoGPU(t *testing.T) {
	mustCall(t, "", "inspect") // unpacks the demo model
	o := call(t, "", "run", "-p", "x", "--device", "cuda")
	for _, want := range []string{"the NVIDIA driver's library was not found", noDriver, "MOEFLUX_CUDA_DRIVER"} {
		if o.code != exitFailed || !strings.Contains(o.stderr, want) {
			t.Errorf("exit %d, stderr %q; want %d and %q", o.code, o.stderr, exitFailed, want)
		}
	}
	checkErrorLine(t, o)
	const note = "no GPU is used, the processor computes"
	for _, args := range [][]string{{"run", "-p", "x", "-n", "1"}, {"bench", "--prompt-tokens", "1", "--gen-tokens", "1", "--repeat", "1"}} {
		o = mustCall(t, "", append(args, "--log-level", "info")...)
		if n := strings.Count(o.stderr, note); n != 1 || !strings.Contains(o.stderr, noDriver) {
			t.Errorf("%q: stderr %q, want %q once and why", args, o.stderr, note)
		}
	}
	if o = mustCall(t, "", "run", "-p", "x", "-n", "1"); strings.Contains(o.stderr, note) {
		t.Errorf("who does not ask is told: stderr %q", o.stderr)
	}
}
