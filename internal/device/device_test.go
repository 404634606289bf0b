package device

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/cuda"
)

func TestOpen(t *testing.T) {
	noGPU := cuda.Config{Driver: "/no/such/driver"}
	for _, c := range []struct {
		config Config
		want   string // in the device's name, or in the error
		log    string
		fails  bool
	}{
		{Config{Name: "host", Threads: 1}, "int8", "", false},
		{Config{Name: "host", Threads: 1, Activations: "f32"}, "host (1 thread", "", false},
		{Config{CUDA: noGPU, Threads: 1}, "host (1 thread", "no GPU is used", false},
		{Config{OS: "darwin", Threads: 1}, "host (1 thread", "metal", false},
		{Config{Name: "cuda", CUDA: noGPU}, "driver", "", true},
		{Config{Name: "tpu"}, `"tpu"; available: auto, host`, "", true},
		{Config{Name: "host", Activations: "int4"}, `"int4"; available: int8, f32`, "", true},
		{Config{Name: "emu", Activations: "int8"}, "activations int8 are for the devices host and cuda; emu computes with f32 alone", "", true},
		{Config{Name: "metal", Activations: "int8"}, "activations int8 are for the devices host and cuda; metal", "", true},
		{Config{Name: "host", Threads: -1}, "-1 threads", "", true},
		{Config{Name: "host", Kernels: "abacus"}, "MOEFLUX_CPU=abacus", "", true},
	} {
		var log bytes.Buffer
		c.config.Logger = slog.New(slog.NewTextHandler(&log, nil))
		d, err := Open(c.config)
		if (err != nil) != c.fails || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.config, err, c.want)
			continue
		}
		if c.fails && c.config.Name != "cuda" && !errors.As(err, new(*ConfigError)) {
			t.Errorf("%+v: %T is not a ConfigError", c.config, err)
		}
		if !strings.Contains(log.String(), c.log) || c.log == "" && log.Len() > 0 {
			t.Errorf("%+v: the log says %q, want %q", c.config, log.String(), c.log)
		}
		if d == nil {
			continue
		}
		if !strings.Contains(d.Name(), c.want) {
			t.Errorf("%+v: opened %q, want %q", c.config, d.Name(), c.want)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestEnvironment(t *testing.T) {
	for name, value := range map[string]string{
		KernelsVariable: "portable", cuda.DriverVariable: "/a", cuda.CompilerVariable: "/b", "CUDA_HOME": "/home", "CUDA_PATH": "",
	} {
		t.Setenv(name, value)
	}
	c := Environment()
	folders := []string{"/home/lib64", "/home/targets/*/lib"}
	if c.Kernels != "portable" || c.CUDA.Driver != "/a" || c.CUDA.Compiler != "/b" || !slices.Equal(c.CUDA.Folders, folders) {
		t.Errorf("%+v", c)
	}
}
