package testmodel_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/testmodel"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
)

func random(arch model.Arch, seed uint64) testmodel.Spec {
	return testmodel.RandomSpec(rand.New(rand.NewPCG(seed, 1)), arch)
}

// write writes a checkpoint and returns its directory and configuration.
func write(t *testing.T, s testmodel.Spec, seed uint64) (string, *model.Config) {
	t.Helper()
	dir := t.TempDir()
	if err := testmodel.Write(dir, s, seed); err != nil {
		t.Fatalf("Write(%+v): %v", s, err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := model.ParseConfig(raw, nil)
	if err != nil {
		t.Fatalf("ParseConfig: %v\n%s", err, raw)
	}
	return dir, cfg
}

// config is the configuration that a reader must get from a Spec.
func config(s testmodel.Spec) *model.Config {
	c := &model.Config{
		Arch: s.Arch, HiddenSize: s.Hidden, NumHiddenLayers: s.Layers, VocabSize: s.Vocab, MaxPositionEmbeddings: s.MaxPositions,
		RMSNormEps: float32(s.Eps), TieWordEmbeddings: s.Tied, NumAttentionHeads: s.Heads, NumKeyValueHeads: s.KVHeads, HeadDim: s.HeadDim,
		RotaryDim: s.RotaryDim, RopeTheta: s.RopeTheta, YaRN: s.YaRN, QueryGrowth: s.QueryGrowth, AttentionBias: s.Bias,
		QLoraRank: s.QLora, KVLoraRank: s.KVLora, QKNopeHeadDim: s.QKNope, QKRopeHeadDim: s.QKRope, VHeadDim: s.VHead,
		LinearNumKeyHeads: s.LinearKeyHeads, LinearNumValueHeads: s.LinearValueHeads, LinearKeyHeadDim: s.LinearKeyDim,
		LinearValueHeadDim: s.LinearValueDim, LinearConvKernelDim: s.ConvKernel, IntermediateSize: s.DenseWidth,
		NumExperts: s.Experts, NumExpertsPerTok: s.TopK, MoEIntermediateSize: s.ExpertWidth, SharedExpertIntermediateSize: s.SharedWidth,
		NormTopKProb: s.NormTopK, NGroup: max(s.Groups, 1), TopKGroup: max(s.TopKGroups, 1), RoutedScalingFactor: 1,
		EOSTokenIDs: []int32{int32(s.Vocab - 1)}, BOSTokenID: -1,
	}
	mixer := model.FullAttention
	switch s.Arch {
	case model.Qwen35MoE, model.Qwen3Next:
		c.AttnOutputGate, c.SharedExpert = true, model.SharedExpertGated
	case model.DeepseekV3, model.KimiK2, model.Mistral4, model.DeepseekV32, model.GLMMoEDSA:
		mixer = model.LatentAttention
		c.IndexNHeads, c.IndexHeadDim, c.IndexTopK = s.IndexHeads, s.IndexDim, s.IndexTopK
		c.IndexerRopeInterleaved = s.Arch == model.GLMMoEDSA
		c.NumKeyValueHeads, c.HeadDim, c.RotaryDim, c.RopeInterleaved = s.Heads, s.QKNope+s.QKRope, s.QKRope, true
	}
	switch s.Arch {
	case model.DeepseekV3, model.KimiK2, model.DeepseekV32, model.GLMMoEDSA, model.Glm4MoE, model.HyV3, model.Mistral4, model.MiniMaxM3:
		c.RoutedScalingFactor = float32(s.RoutedScale)
		if s.SharedWidth > 0 {
			c.SharedExpert = model.SharedExpertUngated
		}
	}
	switch s.Arch {
	case model.DeepseekV3, model.KimiK2, model.DeepseekV32, model.GLMMoEDSA, model.Glm4MoE, model.MiniMaxM2, model.MiniMaxM3, model.HyV3:
		c.Scoring, c.CorrectionBias = model.SigmoidScores, true
	}
	var clamp, mlpClamp model.Clamp
	switch s.Arch {
	case model.GptOss:
		c.AttentionBias, c.OutputBias, c.AttentionSinks, c.RouterBias, c.ExpertBias = true, true, true, true, true
		clamp = model.Clamp{Limit: s.Limit, Alpha: 1.702}
	case model.MiniMaxM3:
		clamp = model.Clamp{Limit: s.Limit, Alpha: 1.702}
		mlpClamp = clamp
		c.IndexNHeads, c.IndexHeadDim, c.IndexTopK, c.IndexBlock, c.IndexLocal = s.IndexHeads, s.IndexDim, s.IndexTopK, s.IndexBlock, s.IndexLocal
	}
	if s.Arch == model.MiMoV2Flash {
		c.Scoring, c.CorrectionBias, c.RoutedScalingFactor = model.SigmoidScores, true, float32(s.RoutedScale)
		c.VHeadDim, c.ValueScale = s.ValueDim, float32(s.ValueScale)
	}
	if len(s.Sliding) > 0 {
		c.Sliding = &model.Sliding{Window: s.Window, NumAttentionHeads: s.Heads, NumKeyValueHeads: s.KVHeads, RotaryDim: s.RotaryDim,
			RopeTheta: s.RopeTheta, YaRN: s.YaRN, Sinks: true}
		if s.Arch == model.MiMoV2Flash {
			c.Sliding.NumAttentionHeads, c.Sliding.NumKeyValueHeads, c.Sliding.RopeTheta = s.WindowHeads, s.WindowKVHeads, s.WindowTheta
		}
	}
	if s.Arch == model.Step35 {
		c.HeadGate, c.Scoring, c.CorrectionBias, c.RoutedScalingFactor = true, model.SigmoidScores, true, float32(s.RoutedScale)
		c.SharedExpert, c.Llama3 = model.SharedExpertUngated, s.Llama3
		if w := c.Sliding; w != nil {
			*w = model.Sliding{Window: s.Window, NumAttentionHeads: s.WindowHeads, NumKeyValueHeads: s.WindowKVHeads, RotaryDim: s.HeadDim, RopeTheta: s.WindowTheta}
			if len(s.Sliding) == s.Layers {
				c.RotaryDim, c.RopeTheta = w.RotaryDim, w.RopeTheta
			}
		}
	}
	if s.Arch == model.HunyuanV1MoE {
		c.NormAfterRope, c.OutputBias = true, s.Bias
		if s.Alpha > 0 {
			d := float64(s.HeadDim)
			c.RopeTheta = s.RopeTheta * math.Pow(s.Alpha, d/(d-2))
		}
		if s.SharedWidth > 0 {
			c.SharedExpert = model.SharedExpertUngated
		}
	}
	if s.QKNorm {
		c.QKNorm = model.QKNormPerHead
		if s.Arch == model.MiniMaxM2 {
			c.QKNorm = model.QKNormWhole
		}
	}
	count := map[model.Mixer]int{}
	experts := 0
	for i := range s.Layers {
		m := mixer
		if s.FullEvery > 0 && i%s.FullEvery != s.FullEvery-1 {
			m = model.LinearAttention
		}
		if slices.Contains(s.Sliding, i) {
			m = model.WindowAttention
		}
		l := model.Layer{Mixer: m, MixerIndex: count[m], MoEIndex: experts, FFN: model.DenseMLP, Clamp: clamp, MLPClamp: mlpClamp}
		if s.Arch == model.Step35 && (s.Layers-1-i)%2 == 0 {
			l.Clamp.Limit, l.MLPClamp.Limit = s.Limit, 2*s.Limit
		}
		if !slices.Contains(s.DenseLayers, i) {
			l.FFN = model.MixtureOfExperts
			experts++
		}
		count[m]++
		if s.IndexTopK > 0 && !slices.Contains(s.NoIndex, i) {
			l.Indexer, l.IndexerIndex = model.OwnIndexer, c.Indexers()
			if slices.Contains(s.SharedIndex, i) {
				l.Indexer = model.LowerIndexer
			}
		}
		c.Layers = append(c.Layers, l)
	}
	return c
}

// A written checkpoint reads back as the Spec says, for every family and option.
func TestWriteConfig(t *testing.T) {
	for _, arch := range testmodel.Archs() {
		for seed := range uint64(8) {
			s := random(arch, seed)
			_, got := write(t, s, 0)
			if want := config(s); !reflect.DeepEqual(got, want) {
				t.Errorf("%s seed %d: spec %+v\ngot  %+v\nwant %+v", arch, seed, s, got, want)
			}
		}
	}
}

// The same Spec and seed give the same bytes, and another seed gives different ones.
func TestWriteIsRepeatable(t *testing.T) {
	read := func(seed uint64) string {
		dir, _ := write(t, random(model.DeepseekV3, 3), seed)
		raw, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	if a, b := read(7), read(7); a != b {
		t.Error("two checkpoints of one seed differ")
	}
	if a, b := read(7), read(8); a == b {
		t.Error("checkpoints of two seeds are the same")
	}
}

// The random draw reaches every option of every family.
func TestRandomSpecReaches(t *testing.T) {
	for _, arch := range testmodel.Archs() {
		seen := map[string]bool{}
		for seed := range uint64(200) {
			s := random(arch, seed)
			if err := s.Validate(); err != nil {
				t.Errorf("%s seed %d: %v", arch, seed, err)
			}
			for option, is := range map[string]bool{
				"one layer": s.Layers == 1, "many layers": s.Layers > 3, "tied": s.Tied, "not tied": !s.Tied,
				"YaRN": s.YaRN != nil, "plain rope": s.YaRN == nil, "q_lora": s.QLora > 0, "no q_lora": s.QLora == 0,
				"dense": len(s.DenseLayers) > 0, "no dense": len(s.DenseLayers) == 0, "norm_topk": s.NormTopK, "no norm_topk": !s.NormTopK,
				"groups": s.Groups > 1, "one group": s.Groups == 1, "groups left out": s.Groups > s.TopKGroups,
				"all experts": s.TopK == s.Experts, "bias": s.Bias, "no qk_norm": !s.QKNorm, "shared": s.SharedWidth > 0, "no shared": s.SharedWidth == 0,
				"partial rope": s.RotaryDim < s.HeadDim, "full rope": s.HeadDim > 0 && s.RotaryDim == s.HeadDim,
				"chosen positions": s.IndexTopK > 0, "shared choice": len(s.SharedIndex) > 0, "own choice": len(s.SharedIndex) == 0,
				"windows": len(s.Sliding) > 0, "no windows": len(s.Sliding) == 0, "windows alone": len(s.Sliding) == s.Layers, "narrow values": s.ValueDim > 0 && s.ValueDim < s.HeadDim,
				"chosen blocks": s.IndexBlock > 0, "dense attention": len(s.NoIndex) > 0, "several local blocks": s.IndexLocal > 1,
				"alpha": s.Alpha > 0, "no alpha": s.Alpha == 0, "no bias": !s.Bias,
				"stretched": s.Llama3 != nil, "not stretched": s.Llama3 == nil,
				"MXFP4": s.MXFP4, "not MXFP4": !s.MXFP4, "low limit": s.Limit < 1,
				"growing queries": s.QueryGrowth != nil, "queries that do not grow": s.QueryGrowth == nil,
				"linear alone": s.FullEvery > s.Layers, "both": s.FullEvery <= s.Layers,
				"grouped heads": s.KVHeads > 1 && s.Heads > s.KVHeads, "shared key heads": s.LinearValueHeads > s.LinearKeyHeads,
			} {
				if is {
					seen[option] = true
				}
			}
		}
		want := []string{"one layer", "many layers", "tied", "not tied", "YaRN", "plain rope", "all experts"}
		if arch == model.Step35 || arch == model.HunyuanV1MoE {
			want = slices.DeleteFunc(want, func(option string) bool { return option == "YaRN" })
		}
		switch arch {
		case model.Qwen35MoE:
			want = append(want, "linear alone", "both", "shared key heads", "partial rope", "full rope", "grouped heads")
		case model.Qwen3Next:
			want = append(want, "linear alone", "both", "shared key heads", "dense", "no dense", "norm_topk", "no norm_topk")
		case model.Qwen3MoE:
			want = append(want, "dense", "no dense", "norm_topk", "no norm_topk", "grouped heads", "full rope")
		case model.DeepseekV3, model.KimiK2:
			want = append(want, "q_lora", "no q_lora", "dense", "no dense", "groups", "one group", "groups left out", "shared", "no shared", "norm_topk", "no norm_topk")
		case model.DeepseekV32:
			want = append(want, "q_lora", "dense", "no dense", "groups", "one group", "shared", "no shared", "chosen positions")
		case model.GLMMoEDSA:
			want = append(want, "q_lora", "dense", "no dense", "groups", "one group", "chosen positions", "shared choice", "own choice")
		case model.GptOss:
			want = append(want, "no qk_norm", "full rope", "grouped heads", "MXFP4", "not MXFP4", "low limit", "windows", "no windows")
		case model.MiMoV2Flash:
			want = append(want, "no qk_norm", "partial rope", "grouped heads", "windows", "no windows", "windows alone", "dense", "narrow values")
		case model.Step35:
			want = append(want, "partial rope", "full rope", "grouped heads", "windows", "no windows", "windows alone", "dense", "no dense", "stretched", "not stretched", "low limit")
		case model.MiniMaxM3:
			want = append(want, "dense", "no dense", "shared", "no shared", "partial rope", "grouped heads", "chosen blocks", "dense attention",
				"several local blocks", "low limit")
		case model.HyV3:
			want = append(want, "dense", "no dense", "shared", "no shared", "norm_topk", "no norm_topk", "full rope", "grouped heads")
		case model.HunyuanV1MoE:
			want = append(want, "bias", "no bias", "alpha", "no alpha", "shared", "no shared", "full rope", "grouped heads")
		case model.Mistral4:
			want = append(want, "q_lora", "no q_lora", "dense", "no dense", "shared", "no shared", "growing queries", "queries that do not grow")
		case model.Glm4MoE:
			want = append(want, "bias", "no qk_norm", "groups", "one group", "dense", "shared", "no shared", "partial rope")
		default:
			want = append(want, "partial rope", "full rope", "grouped heads")
		}
		for _, option := range want {
			if !seen[option] {
				t.Errorf("%s: no spec of 200 has %q", arch, option)
			}
		}
	}
}

// Each change makes a legal Spec illegal.
func TestValidateRefuses(t *testing.T) {
	type spec = testmodel.Spec
	legal := map[model.Arch]spec{
		model.Qwen3Next: {Arch: model.Qwen3Next, Hidden: 64, Layers: 2, Vocab: 64, MaxPositions: 64, Eps: 1e-6, Heads: 4, RopeTheta: 1e4, KVHeads: 2, HeadDim: 16,
			RotaryDim: 4, QKNorm: true, FullEvery: 2, LinearKeyHeads: 2, LinearValueHeads: 4, LinearKeyDim: 8, LinearValueDim: 8, ConvKernel: 4,
			Experts: 8, TopK: 2, ExpertWidth: 16, SharedWidth: 16, NormTopK: true},
		model.DeepseekV3: {Arch: model.DeepseekV3, Hidden: 64, Layers: 2, Vocab: 64, MaxPositions: 64, Eps: 1e-6, Heads: 4, RopeTheta: 1e4,
			KVLora: 16, QKNope: 8, QKRope: 8, VHead: 8, DenseLayers: []int{0}, DenseWidth: 32, Experts: 8, TopK: 2, ExpertWidth: 16, NormTopK: true,
			Groups: 4, TopKGroups: 2, RoutedScale: 2.5},
	}
	for arch, s := range legal {
		if err := s.Validate(); err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
	}
	for _, c := range []struct {
		name   string
		arch   model.Arch
		change func(*spec)
	}{
		{"unknown family", model.Qwen3Next, func(s *spec) { s.Arch = "llama" }},
		{"no hidden size", model.Qwen3Next, func(s *spec) { s.Hidden = 0 }},
		{"negative width", model.Qwen3Next, func(s *spec) { s.ExpertWidth = -1 }},
		{"no norm epsilon", model.Qwen3Next, func(s *spec) { s.Eps = 0 }},
		{"heads that do not divide", model.Qwen3Next, func(s *spec) { s.KVHeads = 3 }},
		{"odd rotary channels", model.Qwen3Next, func(s *spec) { s.RotaryDim = 3 }},
		{"more rotary channels than a head has", model.Qwen3Next, func(s *spec) { s.RotaryDim = 18 }},
		{"no norm of queries", model.Qwen3Next, func(s *spec) { s.QKNorm = false }},
		{"biases", model.Qwen3Next, func(s *spec) { s.Bias = true }},
		{"latent attention", model.Qwen3Next, func(s *spec) { s.KVLora = 8 }},
		{"value heads that do not divide", model.Qwen3Next, func(s *spec) { s.LinearValueHeads = 3 }},
		{"a kernel of one tap", model.Qwen3Next, func(s *spec) { s.ConvKernel = 1 }},
		{"no linear attention", model.Qwen3Next, func(s *spec) { s.FullEvery = 1 }},
		{"no shared expert", model.Qwen3Next, func(s *spec) { s.SharedWidth = 0 }},
		{"groups", model.Qwen3Next, func(s *spec) { s.Groups, s.TopKGroups = 2, 1 }},
		{"a scale", model.Qwen3Next, func(s *spec) { s.RoutedScale = 1 }},
		{"more picks than experts", model.Qwen3Next, func(s *spec) { s.TopK = 9 }},
		{"a dense layer that is not there", model.Qwen3Next, func(s *spec) { s.DenseLayers, s.DenseWidth = []int{2}, 8 }},
		{"dense layers alone", model.Qwen3Next, func(s *spec) { s.DenseLayers, s.DenseWidth = []int{0, 1}, 8 }},
		{"a dense layer without width", model.DeepseekV3, func(s *spec) { s.DenseWidth = 0 }},
		{"a dense layer behind one with experts", model.DeepseekV3, func(s *spec) { s.DenseLayers = []int{1} }},
		{"full attention", model.DeepseekV3, func(s *spec) { s.KVHeads = 2 }},
		{"odd rotary part", model.DeepseekV3, func(s *spec) { s.QKRope = 5 }},
		{"groups of one", model.DeepseekV3, func(s *spec) { s.Groups = 8 }},
		{"groups that do not divide", model.DeepseekV3, func(s *spec) { s.Groups = 3 }},
		{"too few experts in the groups kept", model.DeepseekV3, func(s *spec) { s.TopK, s.TopKGroups = 3, 1 }},
		{"more groups kept than there are", model.DeepseekV3, func(s *spec) { s.TopKGroups = 5 }},
		{"part of a shared expert", model.DeepseekV3, func(s *spec) { s.SharedWidth = 24 }},
	} {
		s := legal[c.arch]
		c.change(&s)
		dir := t.TempDir()
		if err := testmodel.Write(dir, s, 0); err == nil {
			t.Errorf("%s: Write of %+v succeeded", c.name, s)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: left %v behind", c.name, left)
		}
	}
}

// Weights are where the families put them: the tensors of one layer by name, type and shape.
func TestTensorNames(t *testing.T) {
	for _, c := range []struct {
		arch model.Arch
		name string
		want string
	}{
		{model.Qwen35MoE, "model.language_model.layers.0.mlp.experts.gate_up_proj", "BF16 [8 32 64]"},
		{model.Qwen3Next, "model.layers.0.linear_attn.in_proj_qkvz.weight", "BF16 [96 64]"},
		{model.DeepseekV3, "model.layers.1.mlp.gate.e_score_correction_bias", "F32 [8]"},
		{model.DeepseekV32, "model.layers.1.self_attn.indexer.k_norm.bias", "BF16 [24]"},
		{model.GLMMoEDSA, "model.layers.0.self_attn.indexer.weights_proj.weight", "BF16 [3 64]"},
		{model.HyV3, "model.layers.1.mlp.router.gate.weight", "BF16 [8 64]"},
		{model.HyV3, "model.layers.1.mlp.expert_bias", "F32 [8]"},
		{model.Mistral4, "model.layers.1.mlp.experts.down_proj", "BF16 [8 64 16]"},
		{model.GptOss, "model.layers.1.mlp.experts.gate_up_proj", "BF16 [8 64 32]"},
		{model.GptOss, "model.layers.1.mlp.experts.gate_up_proj_bias", "BF16 [8 32]"},
		{model.GptOss, "model.layers.0.mlp.router.bias", "BF16 [8]"},
		{model.GptOss, "model.layers.0.self_attn.sinks", "BF16 [6]"},
		{model.MiMoV2Flash, "model.layers.1.self_attn.attention_sink_bias", "BF16 [6]"},
		{model.MiMoV2Flash, "model.layers.1.self_attn.v_proj.weight", "BF16 [42 64]"},
		{model.MiMoV2Flash, "model.layers.0.self_attn.o_proj.weight", "BF16 [64 28]"},
		{model.Step35, "model.layers.1.moe.down_proj.weight", "BF16 [8 64 16]"},
		{model.Step35, "model.layers.1.moe.router_bias", "F32 [8]"},
		{model.Step35, "model.layers.1.share_expert.up_proj.weight", "BF16 [16 64]"},
		{model.Step35, "model.layers.1.self_attn.g_proj.weight", "BF16 [6 64]"},
		{model.MiniMaxM3, "language_model.model.layers.1.block_sparse_moe.experts.7.w2.weight", "BF16 [64 16]"},
		{model.MiniMaxM3, "language_model.model.layers.0.mlp.gate_proj.weight", "BF16 [8 64]"},
		{model.MiniMaxM3, "language_model.model.layers.1.self_attn.index_k_proj.weight", "BF16 [24 64]"},
		{model.MiniMaxM2, "model.layers.0.block_sparse_moe.experts.7.w2.weight", "BF16 [64 16]"},
	} {
		s := random(c.arch, 1)
		s.Hidden, s.Layers, s.Experts, s.TopK, s.ExpertWidth = 64, 2, 8, 2, 16
		switch c.arch {
		case model.Qwen35MoE, model.Qwen3Next:
			s.FullEvery, s.LinearKeyHeads, s.LinearValueHeads, s.LinearKeyDim, s.LinearValueDim, s.DenseLayers, s.DenseWidth = 2, 1, 2, 16, 16, nil, 0
		case model.DeepseekV3:
			s.DenseLayers, s.DenseWidth, s.Groups, s.TopKGroups, s.SharedWidth = []int{0}, 8, 4, 2, 0
		case model.DeepseekV32, model.GLMMoEDSA:
			s.DenseLayers, s.DenseWidth, s.Groups, s.TopKGroups, s.SharedWidth = nil, 0, 1, 1, 0
			s.QKRope, s.IndexDim, s.IndexHeads, s.SharedIndex = 8, 24, 3, nil
		case model.GptOss:
			s.MXFP4, s.Heads, s.KVHeads = false, 6, 3
		case model.MiMoV2Flash:
			s.DenseLayers, s.DenseWidth, s.Sliding, s.Window, s.WindowHeads, s.WindowKVHeads = nil, 0, []int{1}, 5, 6, 3
			s.Heads, s.KVHeads, s.HeadDim, s.RotaryDim, s.ValueDim = 2, 1, 16, 4, 14
		case model.Step35:
			s.DenseLayers, s.DenseWidth, s.SharedWidth, s.Sliding, s.Window, s.WindowHeads, s.WindowKVHeads = nil, 0, 16, []int{1}, 5, 6, 3
		case model.MiniMaxM3:
			s.DenseLayers, s.DenseWidth, s.SharedWidth, s.IndexDim, s.RotaryDim, s.NoIndex = []int{0}, 8, 0, 24, 4, nil
		case model.HyV3, model.Mistral4:
			s.DenseLayers, s.DenseWidth, s.SharedWidth = []int{0}, 8, 0
		}
		dir, _ := write(t, s, 0)
		f, err := safetensors.Open(filepath.Join(dir, "model.safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		x, ok := f.Tensor(c.name)
		if got := fmt.Sprint(x.DType, " ", x.Shape); !ok || got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.arch, c.name, got, c.want)
		}
		f.Close()
	}
}
