//go:build !(darwin && cgo)

package metal

import (
	"fmt"
	"runtime"
)

// Open fails: the error says what is missing and wraps ErrUnsupported.
func Open() (*Device, error) {
	if runtime.GOOS == "darwin" {
		return nil, fmt.Errorf("metal: this program was built without cgo, which Metal needs: build it on a Mac with the command line tools of Xcode and CGO_ENABLED=1: %w", ErrUnsupported)
	}
	return nil, fmt.Errorf("metal: Metal needs macOS, and this program was built for %s/%s: %w", runtime.GOOS, runtime.GOARCH, ErrUnsupported)
}
