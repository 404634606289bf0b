package bench

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/io/weights"
)

// A token that uses all experts multiplies with every element of the checkpoint's matrices.
func TestMultiplyAdds(t *testing.T) {
	for _, name := range fixtures.All() {
		if !strings.HasSuffix(name, "bf16") {
			continue
		}
		cfg, err := weights.ReadConfig(fixtures.Packed(t, name, 0))
		if err != nil {
			t.Fatal(err)
		}
		want := matrixElements(t, fixtures.Dir(t, name), cfg.NumHiddenLayers)
		got, head := multiplyAdds(cfg, cfg.NumExperts)
		if got != want || head != int64(cfg.VocabSize*cfg.HiddenSize) {
			t.Errorf("%s: %d multiply-adds of all experts and %d of the head, the file has %d", name, got, head, want)
		}
		// An expert has three matrices in each layer with experts.
		one, _ := multiplyAdds(cfg, cfg.NumExperts-1)
		if expert := int64(3 * cfg.HiddenSize * cfg.MoEIntermediateSize * len(cfg.MoELayers())); got-one != expert {
			t.Errorf("%s: one expert less saves %d, want %d", name, got-one, expert)
		}
	}
}

// matrixElements counts those of all layers' weight matrices in a checkpoint, but for a draft layer
// after the last one.
func matrixElements(t *testing.T, dir string, layers int) int64 {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "model*.safetensors"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no weights, %v", dir, err)
	}
	var all int64
	for _, file := range files {
		f, err := safetensors.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for _, name := range f.Names() {
			x, _ := f.Tensor(name)
			if len(x.Shape) < 2 || strings.HasSuffix(name, "_bias") || !strings.Contains(name, "layers.") || strings.Contains(name, "conv1d") || strings.Contains(name, "mtp.") || strings.Contains(name, "visual.") || strings.Contains(name, "vision_tower.") ||
				strings.HasPrefix(name, fmt.Sprintf("model.layers.%d.", layers)) {
				continue
			}
			elements := int64(1)
			for _, n := range x.Shape {
				elements *= int64(n)
			}
			all += elements
		}
	}
	return all
}
