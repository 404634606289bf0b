// Package device chooses what computes. It is the one place that knows all back ends; whoever wants
// a particular one can open that package itself.
package device

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/cuda"
	"github.com/moeflux/moeflux-actor/gpu/emu"
	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/gpu/metal"
)

// Names are the devices that can be asked for. "auto", or "", is an NVIDIA GPU if one can be used,
// else the processor. It never takes Metal, whose own suite has not passed on a Mac yet.
var Names = []string{"auto", "host", "cuda", "metal", "emu"}

// Config says what to open. The zero value is what "auto" finds.
type Config struct {
	// Name is one of Names; "" means auto. A number may follow cuda, for one of several GPUs, or
	// several numbers, for GPUs that each compute some of a model's layers: "cuda:1", "cuda:0,1".
	// The emulator has as many devices as are asked for.
	Name    string
	Threads int  // of the processor; 0 means the cores this process may use
	Pin     bool // of the processor: its threads are bound to cores
	// Activations is how inputs of products with quantised matrices are held: gpu.ActivationsInt8
	// or gpu.ActivationsF32. "" means int8 on the processor and f32 on a GPU.
	Activations string
	Kernels     string // what KernelsVariable says, one of host.Variants; "" means the best
	// CUDA says where the driver and the compiler are. CacheDir and Logger of it are set by Open.
	CUDA cuda.Config
	// CacheDir returns where compiled kernels are kept, each back end's in a folder of its own. An
	// error, or nil for CacheDir, means that they are compiled anew each time.
	CacheDir func() (string, error)
	// OS is the operating system; "" means this one.
	OS string
	// Logger hears why auto does without a GPU. nil means silence.
	Logger *slog.Logger
}

// ConfigError reports a Config that no machine can serve.
type ConfigError struct{ Err error }

func (e *ConfigError) Error() string { return e.Err.Error() }
func (e *ConfigError) Unwrap() error { return e.Err }

// Open opens the device. The caller closes it. Errors: *ConfigError, or why the device that was
// named cannot be used.
func Open(c Config) (gpu.Device, error) {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.OS == "" {
		c.OS = runtime.GOOS
	}
	list, err := numbers(c.Name)
	if err != nil {
		return nil, err
	}
	if list == nil {
		list = []int{0}
	}
	kind := Kind(c.Name)
	switch kinds := []string{gpu.ActivationsInt8, gpu.ActivationsF32}; {
	case c.Activations == "":
	case !slices.Contains(kinds, c.Activations):
		return nil, &ConfigError{fmt.Errorf("there are no activations %q; available: %s", c.Activations, strings.Join(kinds, ", "))}
	case c.Activations == gpu.ActivationsInt8 && (kind == "metal" || kind == "emu"):
		return nil, &ConfigError{fmt.Errorf("activations %s are for the devices host and cuda; %s computes with f32 alone", c.Activations, kind)}
	}
	switch kind {
	case "", "auto":
		return c.auto()
	case "cuda":
		return each(list, c.cuda)
	case "metal":
		return c.metal()
	case "host":
		return c.host()
	case "emu":
		return each(list, func(int) (gpu.Device, error) {
			return emu.New(emu.Config{Threads: c.Threads, Cache: c.cache("emulator")})
		})
	}
	return nil, &ConfigError{fmt.Errorf("there is no device %q; available: %s", c.Name, strings.Join(Names, ", "))}
}

// Variant returns the kernels of the processor that Open uses. Those that this processor does not
// run give a *ConfigError.
func (c *Config) Variant() (string, error) {
	have := host.Variants()
	switch {
	case c.Kernels == "":
		return have[0], nil
	case slices.Contains(have, c.Kernels):
		return c.Kernels, nil
	}
	return "", &ConfigError{fmt.Errorf("%s=%s in the environment, but this program on this processor has %s; unset it for the best of these",
		KernelsVariable, c.Kernels, strings.Join(have, ", "))}
}

// auto opens the GPU that can be used, else the processor, which must be usable in any case.
func (c *Config) auto() (gpu.Device, error) {
	if _, err := c.Variant(); err != nil {
		return nil, err
	}
	if c.OS == "darwin" {
		c.Logger.Info("the processor computes; the device metal, where it is named, uses the GPU, with kernels that no Mac has verified yet")
		return c.host()
	}
	d, err := c.cuda(0)
	if err == nil {
		return d, nil
	}
	level := slog.LevelWarn // there is a GPU, and something is wrong with it
	if cuda.Absent(err) {
		level = slog.LevelInfo
	}
	c.Logger.Log(context.Background(), level, "no GPU is used, the processor computes", "why", err)
	return c.host()
}

func (c *Config) host() (gpu.Device, error) {
	variant, err := c.Variant()
	if err != nil {
		return nil, err
	}
	h := host.Config{Threads: c.Threads, Pin: c.Pin, Variant: variant, Activations: host.Int8}
	if c.Activations == gpu.ActivationsF32 {
		h.Activations = host.F32
	}
	if err := h.Validate(); err != nil {
		return nil, &ConfigError{err}
	}
	return host.New(h)
}

// cuda opens an NVIDIA GPU.
func (c *Config) cuda(number int) (gpu.Device, error) {
	g := c.CUDA
	g.Ordinal, g.CacheDir, g.Logger = number, c.cache("cuda"), c.Logger
	g.Rounded = c.Activations == gpu.ActivationsInt8
	g.Ahead = min(max(1, runtime.NumCPU()/4), 4)
	d, err := cuda.Open(g)
	if err != nil {
		return nil, err
	}
	driver, compiler := d.Libraries()
	c.Logger.Info("GPU", "device", d.Name(), "driver", driver, "compiler", compiler)
	return d, nil
}

// metal opens a Mac's GPU. Metal keeps compiled kernels itself.
func (c *Config) metal() (gpu.Device, error) {
	d, err := metal.Open()
	if err != nil {
		return nil, err
	}
	c.Logger.Info("GPU", "device", d.Name(), "working set", d.WorkingSet())
	return d, nil
}

// cache returns where a back end keeps what it has compiled; "" for nowhere.
func (c *Config) cache(folder string) string {
	if c.CacheDir == nil {
		return ""
	}
	dir, err := c.CacheDir()
	if err != nil {
		c.Logger.Warn("compiled kernels are not kept for the next run", "why", err)
		return ""
	}
	return filepath.Join(dir, folder)
}
