package actors

import (
	"context"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/host"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// Weights of a GGUF file have their memory before an engine looks at what is available, and those
// of a directory have not: either way they count once.
func TestGGUFMemory(t *testing.T) {
	dev, err := host.New(host.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	const available = 1 << 28
	for _, path := range []string{fixtures.GGUF(t, fixtures.Qwen35MoEBF16), fixtures.Packed(t, fixtures.Qwen35MoEBF16, 0)} {
		mem := &sharedMemory{}
		mem.set(available)
		e, err := Open(context.Background(), Config{Model: path, Device: dev, ExpertIO: ExpertIOBuffered, memory: mem})
		if err != nil {
			t.Fatal(err)
		}
		weights, left, reserved := e.info.WeightBytes, e.info.Available-e.info.WeightBytes, e.reserves().Weights
		if err := e.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
		want := available - weights
		if e.weights.Made() {
			want = available
		}
		if weights == 0 || left != want || (reserved > 0) == e.weights.Made() {
			t.Errorf("%s: %d bytes of weights leave %d of %d, want %d; %d reserved", path, weights, left, available, want, reserved)
		}
	}
}
