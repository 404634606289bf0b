package refmodel_test

import (
	"context"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/refmodel"
	"github.com/moeflux/moeflux-actor/internal/testmodel"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
)

var writeTo = flag.String("write", "", "write the checkpoints of TestOtherImplementation to this directory, for testdata/make.py")

// others are models with options that the fixtures do not have, computed by another implementation;
// see testdata/README.md.
var others = map[string]testmodel.Spec{
	"glm4_moe-qknorm-bias-dense": {Arch: model.Glm4MoE, Hidden: 32, Layers: 3, Vocab: 40, MaxPositions: 256, Eps: 1e-5, Heads: 6, RopeTheta: 1e6,
		KVHeads: 2, HeadDim: 16, RotaryDim: 8, QKNorm: true, Bias: true, DenseLayers: []int{0}, DenseWidth: 40,
		Experts: 8, TopK: 3, ExpertWidth: 16, SharedWidth: 16, NormTopK: true, Groups: 1, TopKGroups: 1, RoutedScale: 2.5},
	"glm4_moe-groups-tied": {Arch: model.Glm4MoE, Hidden: 48, Layers: 2, Vocab: 40, MaxPositions: 256, Eps: 1e-5, Tied: true, Heads: 4, RopeTheta: 1e4,
		KVHeads: 4, HeadDim: 8, RotaryDim: 2, Experts: 12, TopK: 4, ExpertWidth: 8, SharedWidth: 16, Groups: 4, TopKGroups: 2, RoutedScale: 1.5},
	"minimax_m2": {Arch: model.MiniMaxM2, Hidden: 32, Layers: 2, Vocab: 40, MaxPositions: 256, Eps: 1e-6, Heads: 6, RopeTheta: 5e6,
		KVHeads: 3, HeadDim: 16, RotaryDim: 8, QKNorm: true, Experts: 8, TopK: 3, ExpertWidth: 16, NormTopK: true},
	"deepseek_v3-q_proj-plain": {Arch: model.DeepseekV3, Hidden: 32, Layers: 2, Vocab: 40, MaxPositions: 256, Eps: 1e-5, Heads: 3, RopeTheta: 1e4,
		KVLora: 24, QKNope: 8, QKRope: 12, VHead: 10, Experts: 8, TopK: 3, ExpertWidth: 16, SharedWidth: 32, Groups: 1, TopKGroups: 1, RoutedScale: 1.5},
	"deepseek_v3-yarn-steep": {Arch: model.DeepseekV3, Hidden: 32, Layers: 2, Vocab: 40, MaxPositions: 1024, Eps: 1e-6, Heads: 3, RopeTheta: 5e4,
		YaRN:  &model.YaRN{Factor: 32, OriginalMaxPositionEmbeddings: 32, BetaFast: 1, BetaSlow: 1, MScale: 0.707, MScaleAllDim: 0.707, Truncate: true},
		QLora: 20, KVLora: 16, QKNope: 8, QKRope: 16, VHead: 12, DenseLayers: []int{0}, DenseWidth: 24,
		Experts: 12, TopK: 4, ExpertWidth: 16, SharedWidth: 16, NormTopK: true, Groups: 3, TopKGroups: 2, RoutedScale: 2.5},
	"qwen3_moe-yarn-dense": {Arch: model.Qwen3MoE, Hidden: 32, Layers: 3, Vocab: 40, MaxPositions: 256, Eps: 1e-6, Heads: 4, RopeTheta: 1e4,
		YaRN:    &model.YaRN{Factor: 4, OriginalMaxPositionEmbeddings: 64, BetaFast: 32, BetaSlow: 1, Truncate: true},
		KVHeads: 2, HeadDim: 16, RotaryDim: 16, QKNorm: true, DenseLayers: []int{1}, DenseWidth: 24, Experts: 8, TopK: 3, ExpertWidth: 16},
	"qwen3_next-three-taps": {Arch: model.Qwen3Next, Hidden: 32, Layers: 3, Vocab: 40, MaxPositions: 256, Eps: 1e-5, Tied: true, Heads: 4, RopeTheta: 1e6,
		KVHeads: 2, HeadDim: 16, RotaryDim: 8, QKNorm: true, FullEvery: 2, LinearKeyHeads: 2, LinearValueHeads: 6, LinearKeyDim: 8, LinearValueDim: 12,
		ConvKernel: 3, DenseLayers: []int{1}, DenseWidth: 24, Experts: 6, TopK: 2, ExpertWidth: 16, SharedWidth: 24},
	"qwen3_5_moe-whole-rope": {Arch: model.Qwen35MoE, Hidden: 32, Layers: 4, Vocab: 40, MaxPositions: 256, Eps: 1e-6, Heads: 3, RopeTheta: 1e4,
		KVHeads: 1, HeadDim: 16, RotaryDim: 16, QKNorm: true, FullEvery: 2, LinearKeyHeads: 3, LinearValueHeads: 3, LinearKeyDim: 8, LinearValueDim: 8,
		ConvKernel: 2, Experts: 8, TopK: 3, ExpertWidth: 16, SharedWidth: 16, NormTopK: true},
}

// otherSeed draws the weights of others.
const otherSeed = 11

func TestOtherImplementation(t *testing.T) {
	if *writeTo != "" {
		for name, spec := range others {
			dir := filepath.Join(*writeTo, name)
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := testmodel.Write(dir, spec, otherSeed); err != nil {
				t.Fatal(err)
			}
		}
		t.Logf("wrote %d checkpoints to %s", len(others), *writeTo)
		return
	}
	f, err := safetensors.Open(filepath.Join("testdata", "others.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	array := func(name string) []float32 {
		x, ok := f.Tensor(name)
		if !ok {
			t.Fatalf("no array %q", name)
		}
		out := make([]float32, x.Elements())
		if err := x.Floats(out, 0); err != nil {
			t.Fatal(err)
		}
		return out
	}
	for name, spec := range others {
		t.Run(name, func(t *testing.T) {
			trace := runSpec(t, spec, array("ids"))
			logits := off(trace.Logits, array(name+".logits"))
			hidden := 0.0
			// the other's last one comes after the final norm
			for i, h := range trace.Hidden[:spec.Layers] {
				n := len(h) * spec.Hidden
				hidden = max(hidden, off(h, array(name + ".hidden")[i*n:(i+1)*n]))
			}
			t.Logf("off by %.3g in logits and %.3g in hidden states; smallest router gap %.3g", logits, hidden, trace.MinGap())
			// The other computes in float32. Noise of that size moves these numbers as far as
			// ForwardNoisy says; a mistake moves them by 0.1.
			if tolerance := 1e-4; !(logits < tolerance && hidden < tolerance) {
				t.Errorf("off by %.3g in logits and %.3g in hidden states, want below %g", logits, hidden, tolerance)
			}
		})
	}
}

// runSpec writes, converts and runs a model.
func runSpec(t *testing.T, spec testmodel.Spec, ids []float32) *refmodel.Trace {
	t.Helper()
	src, dst := t.TempDir(), filepath.Join(t.TempDir(), "packed")
	if err := testmodel.Write(src, spec, otherSeed); err != nil {
		t.Fatal(err)
	}
	if err := convert.Convert(context.Background(), src, dst, convert.Options{}); err != nil {
		t.Fatal(err)
	}
	var tokens []int32
	for _, id := range ids {
		tokens = append(tokens, int32(id))
	}
	return open(t, dst).Forward(tokens)
}

func off(got [][]float64, want []float32) float64 {
	d := 0.0
	for i, row := range got {
		for j, x := range row {
			d = max(d, math.Abs(x-float64(want[i*len(row)+j])))
		}
	}
	return d
}
