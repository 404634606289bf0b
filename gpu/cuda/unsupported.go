//go:build !linux || !(amd64 || arm64)

package cuda

import (
	"fmt"
	"runtime"

	"github.com/moeflux/moeflux-actor/gpu"
)

// Open fails: CUDA is there on Linux alone.
func Open(Config) (gpu.Device, error) {
	return nil, fmt.Errorf("cuda: this program was built for %s/%s; CUDA needs linux/amd64 or linux/arm64", runtime.GOOS, runtime.GOARCH)
}
