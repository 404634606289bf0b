//go:build !linux || !(amd64 || arm64)

package cuda

import (
	"fmt"
	"runtime"

	"github.com/moeflux/moeflux-actor/gpu"
)

// Device is not to be had on this system.
type Device struct{ gpu.Discrete }

// Libraries returns nothing: no Device is ever opened.
func (*Device) Libraries() (driver, compiler string) { return "", "" }

// Open fails: CUDA is there on Linux alone.
func Open(Config) (*Device, error) {
	return nil, fmt.Errorf("cuda: this program was built for %s/%s: %w", runtime.GOOS, runtime.GOARCH, ErrUnsupported)
}
