//go:build nvrtc && linux && (amd64 || arm64)

package cuda

import (
	"os"
	"testing"
)

// The compiler needs no GPU: go test -tags nvrtc, with MOEFLUX_CUDA_NVRTC naming the library where it lies nowhere usual.

// nvrtcSource compiles for a GPU that every compiler since CUDA 11.8 knows.
const nvrtcArch = "sm_90"

func openNVRTC(t *testing.T) *compiler {
	t.Helper()
	c, err := openCompiler(Config{Compiler: os.Getenv(CompilerVariable)}, 13)
	if err != nil {
		t.Fatal(err)
	}
	version, err := c.versionText()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("NVRTC %s from %s", version, c.path)
	return c
}
