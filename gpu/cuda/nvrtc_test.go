//go:build nvrtc && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/msl"
)

// The compiler needs no GPU: go test -tags nvrtc, with MOEFLUX_CUDA_NVRTC naming the library where
// it lies nowhere usual.

// nvrtcArch is a GPU that every compiler since CUDA 11.8 knows.
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

// Real code comes out of the compiler, and its own words where it refuses a source.
func TestRealCompiler(t *testing.T) {
	c := openNVRTC(t)
	m := parse(t, testKernels)
	image, log, err := c.build(m.Emit(msl.CUDA, "fill", ""), options(nvrtcArch))
	if err != nil || !bytes.HasPrefix(image, []byte("\x7fELF")) || !bytes.Contains(image, []byte("fill")) {
		t.Errorf("%d bytes of code, %v\n%s", len(image), err, log)
	}
	_, log, err = c.build("no C", options(nvrtcArch))
	if err == nil || !strings.Contains(log, "error:") || !strings.Contains(err.Error(), "NVRTC_ERROR_COMPILATION") {
		t.Errorf("no C: %v\n%s", err, log)
	}
}
