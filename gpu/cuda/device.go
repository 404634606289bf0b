//go:build linux && (amd64 || arm64)

package cuda

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/gpu/launch"
)

// Device computes on one GPU. Its methods may be called from many goroutines.
type Device struct {
	*launch.Device
	b *backend
}

var _ gpu.Discrete = (*Device)(nil)

// Open opens a GPU. Where a library is missing the error is a *LibraryError, where there is no GPU
// an *Error.
func Open(cfg Config) (*Device, error) {
	b, err := open(cfg)
	if err != nil {
		return nil, err
	}
	d, err := launch.New(b)
	if err != nil {
		return nil, err
	}
	return &Device{d, b}, nil
}

// open opens the libraries and a GPU.
func open(cfg Config) (*backend, error) {
	d, err := openDriver(cfg)
	if err != nil {
		return nil, err
	}
	return newBackend(cfg, d, func(driverMajor int) (*compiler, error) { return openCompiler(cfg, driverMajor) })
}

// Libraries returns the files of the driver and of the compiler that are in use.
func (d *Device) Libraries() (driver, compiler string) { return d.b.d.lib.path, d.b.c.path }

// Memory returns how many bytes of the GPU's memory are free, and how many it has.
func (d *Device) Memory() (free, total int64, err error) { return d.b.memoryInfo() }

// NewPinned returns n bytes of pinned host memory, see gpu.Discrete.
func (d *Device) NewPinned(n int) (gpu.Buffer, error) {
	return d.Adopt(n, func() (launch.Memory, error) { return d.b.newPinned(n) })
}
