//go:build linux && (amd64 || arm64)

package cuda

import "github.com/moeflux/moeflux-actor/gpu/launch"

// open opens a GPU and what it needs. The error is a *LibraryError where a library was not found.
func open(cfg Config) (*backend, error) {
	d, err := openDriver(cfg)
	if err != nil {
		return nil, err
	}
	return newBackend(cfg, d, func(driverMajor int) (*compiler, error) { return openCompiler(cfg, driverMajor) })
}

// Open opens a GPU.
func Open(cfg Config) (launch.Backend, error) { return open(cfg) }
