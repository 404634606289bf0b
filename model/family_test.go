package model_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/internal/fixtures"
	"github.com/moeflux/moeflux-actor/internal/testmodel"
	"github.com/moeflux/moeflux-actor/model"
)

// layersOf composes layers: d is dense, m has experts.
func layersOf(mixer model.Mixer, kinds string) []model.Layer {
	var out []model.Layer
	moe := 0
	for i, k := range kinds {
		l := model.Layer{Mixer: mixer, MixerIndex: i, MoEIndex: moe, FFN: model.DenseMLP}
		if k == 'm' {
			l.FFN = model.MixtureOfExperts
			moe++
		}
		out = append(out, l)
	}
	return out
}

// Every field of one checkpoint of each of the other families that there are fixtures of.
func TestParseConfigFamilies(t *testing.T) {
	full, latent := model.FullAttention, model.LatentAttention
	for name, want := range map[string]*model.Config{
		fixtures.Qwen3MoEBF16: {
			Arch: model.Qwen3MoE, HiddenSize: 128, NumHiddenLayers: 2, VocabSize: 320, MaxPositionEmbeddings: 4096, RMSNormEps: 1e-6,
			NumAttentionHeads: 4, NumKeyValueHeads: 2, HeadDim: 64, RotaryDim: 64, RopeTheta: 1e6, QKNorm: model.QKNormPerHead,
			NumExperts: 8, NumExpertsPerTok: 2, MoEIntermediateSize: 64, NormTopKProb: true, NGroup: 1, TopKGroup: 1, RoutedScalingFactor: 1,
			EOSTokenIDs: []int32{319}, BOSTokenID: -1, Layers: layersOf(full, "mm"),
		},
		fixtures.Qwen3NextQ4: {
			Arch: model.Qwen3Next, HiddenSize: 128, NumHiddenLayers: 4, VocabSize: 320, MaxPositionEmbeddings: 4096, RMSNormEps: 1e-6,
			NumAttentionHeads: 4, NumKeyValueHeads: 2, HeadDim: 64, RotaryDim: 16, RopeTheta: 1e7, QKNorm: model.QKNormPerHead, AttnOutputGate: true,
			LinearNumKeyHeads: 2, LinearNumValueHeads: 4, LinearKeyHeadDim: 64, LinearValueHeadDim: 32, LinearConvKernelDim: 4,
			NumExperts: 16, NumExpertsPerTok: 4, MoEIntermediateSize: 64, SharedExpert: model.SharedExpertGated, SharedExpertIntermediateSize: 64,
			NormTopKProb: true, NGroup: 1, TopKGroup: 1, RoutedScalingFactor: 1, EOSTokenIDs: []int32{319}, BOSTokenID: -1,
			Layers: []model.Layer{{MoEIndex: 0}, {MixerIndex: 1, MoEIndex: 1}, {MixerIndex: 2, MoEIndex: 2}, {Mixer: full, MoEIndex: 3}},
		},
		fixtures.DeepseekV3Q4KVB: {
			Arch: model.DeepseekV3, HiddenSize: 128, NumHiddenLayers: 2, VocabSize: 320, MaxPositionEmbeddings: 256, RMSNormEps: 1e-6,
			NumAttentionHeads: 4, NumKeyValueHeads: 4, HeadDim: 48, RotaryDim: 16, RopeTheta: 1e4, RopeInterleaved: true,
			YaRN:      &model.YaRN{Factor: 4, OriginalMaxPositionEmbeddings: 64, BetaFast: 32, BetaSlow: 1, MScale: 0.707, MScaleAllDim: 1, Truncate: true},
			QLoraRank: 64, KVLoraRank: 64, QKNopeHeadDim: 32, QKRopeHeadDim: 16, VHeadDim: 32, IntermediateSize: 192,
			NumExperts: 16, NumExpertsPerTok: 4, MoEIntermediateSize: 64, SharedExpert: model.SharedExpertUngated, SharedExpertIntermediateSize: 64,
			Scoring: model.SigmoidScores, NormTopKProb: true, CorrectionBias: true, NGroup: 4, TopKGroup: 2, RoutedScalingFactor: 2.5,
			EOSTokenIDs: []int32{319}, BOSTokenID: 0, Layers: layersOf(latent, "dm"),
		},
	} {
		got, err := model.ParseConfig(fixtureConfig(t, name), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
		}
	}
}

// keys are the keys of a config.json.
type keys = map[string]any

// with returns a copy of base with keys changed; nil removes one.
func with(base keys, set keys) keys {
	out := maps.Clone(base)
	for k, v := range set {
		out[k] = v
		if v == nil {
			delete(out, k)
		}
	}
	return out
}

// Configurations in the form of published ones, with few and narrow layers.
var (
	common = keys{"hidden_size": 64, "num_hidden_layers": 4, "vocab_size": 320, "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "hidden_act": "silu",
		"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 32, "rope_theta": 1e6, "num_experts_per_tok": 2, "tie_word_embeddings": false}
	qwen3MoE = with(common, keys{"model_type": "qwen3_moe", "num_experts": 8, "moe_intermediate_size": 64, "intermediate_size": 96, "norm_topk_prob": true,
		"decoder_sparse_step": 1, "mlp_only_layers": []int{}, "attention_bias": false, "use_sliding_window": false})
	deepseek = with(common, keys{"model_type": "deepseek_v3", "head_dim": nil, "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_routed_experts": 8,
		"n_shared_experts": 2, "n_group": 2, "topk_group": 1, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
		"norm_topk_prob": true, "q_lora_rank": nil, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 24,
		"intermediate_size": 96, "moe_intermediate_size": 64, "attention_bias": false})
	glm = with(common, keys{"model_type": "glm4_moe", "partial_rotary_factor": 0.5, "use_qk_norm": true, "attention_bias": true, "first_k_dense_replace": 2,
		"n_routed_experts": 8, "n_shared_experts": 1, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 2.5, "norm_topk_prob": true,
		"intermediate_size": 96, "moe_intermediate_size": 64, "num_nextn_predict_layers": 1, "rope_scaling": json.RawMessage("null")})
	minimax = with(common, keys{"model_type": "minimax_m2", "rotary_dim": 16, "num_local_experts": 8, "intermediate_size": 64, "use_qk_norm": true,
		"qk_norm_type": "per_layer", "scoring_func": "sigmoid", "use_routing_bias": true, "shared_intermediate_size": 0, "attn_type_list": []int{1, 1, 1, 1},
		"sliding_window": json.RawMessage("null"), "num_mtp_modules": 3})
	minimax3 = with(common, keys{"hidden_act": "swigluoai", "rotary_dim": 16, "num_local_experts": 8, "intermediate_size": 64, "dense_intermediate_size": 96,
		"shared_intermediate_size": 64, "n_shared_experts": 1, "use_qk_norm": true, "qk_norm_type": "per_head", "use_gemma_norm": true, "scoring_func": "sigmoid",
		"use_routing_bias": true, "routed_scaling_factor": 2.0, "moe_layer_freq": []int{0, 1, 1, 1}, "swiglu_alpha": 1.702, "swiglu_limit": 7.0,
		"sparse_attention_config": sparse})
	sparse = keys{"use_sparse_attention": true, "sparse_attention_freq": []int{0, 1, 0, 1}, "sparse_disable_index_value": []int{0, 1, 0, 1}, "sparse_num_index_heads": 2,
		"sparse_index_dim": 24, "sparse_topk_blocks": 16, "sparse_block_size": 128, "sparse_local_block": 1, "sparse_init_block": 0, "sparse_score_type": "max"}
	step = with(common, keys{"model_type": "step3p5", "num_key_value_heads": nil, "num_attention_groups": 2, "num_experts_per_tok": nil, "moe_top_k": 2, "moe_num_experts": 8,
		"moe_intermediate_size": 64, "intermediate_size": 96, "share_expert_dim": 64, "moe_router_activation": "sigmoid", "moe_router_scaling_factor": 3.0,
		"norm_expert_weight": true, "use_moe_router_bias": true, "use_head_wise_attn_gate": true, "use_qk_norm": true, "zero_centered": true, "sink": false,
		"moe_layers_enum": "1,2,3", "sliding_window": 512, "rope_theta": []float64{5e6, 1e4, 1e4, 5e6, 1e4}, "partial_rotary_factors": []float64{0.5, 1, 1, 0.5, 1},
		"layer_types":             []string{"full_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention"},
		"attention_other_setting": keys{"attention_type": "sliding_attention", "head_dim": 32, "num_attention_groups": 2, "num_attention_heads": 6},
		"rope_scaling":            keys{"rope_type": "llama3", "factor": 2.0, "original_max_position_embeddings": 131072, "low_freq_factor": 1.0, "high_freq_factor": 32.0},
		"yarn_only_types":         []string{"full_attention"}, "swiglu_limits": []float64{0, 0, 7, 0, 0}, "swiglu_limits_shared": []float64{0, 0, 16, 0, 0}})
	hunyuan = with(common, keys{"model_type": "hy_v3", "num_experts": 8, "num_shared_experts": 1, "moe_intermediate_size": 64, "expert_hidden_dim": 64,
		"intermediate_size": 96, "first_k_dense_replace": 1, "route_norm": true, "router_scaling_factor": 2.826, "qk_norm": true, "attention_bias": false,
		"mlp_bias": false, "moe_router_use_sigmoid": true, "moe_router_enable_expert_bias": true, "num_nextn_predict_layers": 1})
	hunyuan1 = with(common, keys{"model_type": "hunyuan_v1_moe", "num_experts_per_tok": nil, "head_dim": nil, "attention_head_dim": 32, "num_experts": 8,
		"moe_topk": []int{2, 2, 2, 2}, "moe_intermediate_size": []int{48, 48, 48, 48}, "num_shared_expert": []int{2, 2, 2, 2}, "intermediate_size": 64,
		"use_mixed_mlp_moe": true, "use_qk_norm": true, "attention_bias": false, "mlp_bias": false, "moe_drop_tokens": false, "moe_layer_num_skipped": 0,
		"norm_topk_prob": true, "group_limited_greedy": false, "n_group": false, "topk_group": false, "routed_scaling_factor": false, "use_cla": false,
		"use_mla": false, "q_lora_rank": json.RawMessage("null"), "rope_theta": 10000.0, "tie_word_embeddings": true,
		"rope_scaling": keys{"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0, "type": "dynamic"}})
	indexed = with(deepseek, keys{"model_type": "deepseek_v32", "q_lora_rank": 32, "index_n_heads": 4, "index_head_dim": 24, "index_topk": 12})
	glm5    = with(indexed, keys{"model_type": "glm_moe_dsa", "rope_theta": nil, "rope_parameters": keys{"rope_type": "default", "rope_theta": 1e6}})
	gptOss  = with(common, keys{"model_type": "gpt_oss", "num_local_experts": 8, "experts_per_token": 2, "intermediate_size": 64, "attention_bias": true, "sliding_window": 128,
		"swiglu_limit": 7.0, "initial_context_length": 4096, "layer_types": slices.Repeat([]string{"full_attention"}, 4), "rope_theta": 150000,
		"rope_scaling":        keys{"rope_type": "yarn", "factor": 32.0, "original_max_position_embeddings": 4096, "beta_fast": 32.0, "beta_slow": 1.0, "truncate": false},
		"quantization_config": keys{"quant_method": "mxfp4", "modules_to_not_convert": []string{"lm_head"}}})
	miMo = with(common, keys{"model_type": "mimo_v2_flash", "rms_norm_eps": nil, "layernorm_epsilon": 1e-5, "n_routed_experts": 8, "moe_intermediate_size": 64,
		"intermediate_size": 96, "n_shared_experts": json.RawMessage("null"), "n_group": 1, "topk_group": 1, "routed_scaling_factor": json.RawMessage("null"),
		"scoring_func": "sigmoid", "topk_method": "noaux_tc", "norm_topk_prob": true, "attention_bias": false, "v_head_dim": 24, "attention_value_scale": 0.707,
		"partial_rotary_factor": 0.5, "hybrid_layer_pattern": []int{0, 1, 1, 0}, "moe_layer_freq": []int{0, 1, 1, 1}, "sliding_window": 128,
		"swa_num_attention_heads": 4, "swa_num_key_value_heads": 4, "swa_head_dim": 32, "swa_v_head_dim": 24, "swa_rope_theta": 10000,
		"add_swa_attention_sink_bias": true, "add_full_attention_sink_bias": false})
	mistral = with(deepseek, keys{"model_type": "mistral4", "scoring_func": nil, "topk_method": nil, "moe_layer_freq": nil, "n_group": 1, "rope_interleave": true,
		"rope_theta": nil, "rope_parameters": keys{"rope_type": "yarn", "rope_theta": 1e4, "factor": 8, "original_max_position_embeddings": 16,
			"mscale": 1, "mscale_all_dim": 1, "llama_4_scaling_beta": 0.1}})
)

func TestParseConfigFamilyForms(t *testing.T) {
	type config = model.Config
	yarn := keys{"rope_type": "yarn", "factor": 4}
	for _, c := range []struct {
		name string
		keys keys
		ok   func(*config) bool
	}{
		{"qwen3_moe: the default of norm_topk_prob", with(qwen3MoE, keys{"norm_topk_prob": nil}), func(c *config) bool { return !c.NormTopKProb && c.RotaryDim == 32 }},
		{"qwen3_moe: dense layers by list", with(qwen3MoE, keys{"mlp_only_layers": []int{0, 2}}), func(c *config) bool {
			return reflect.DeepEqual(c.Layers, layersOf(model.FullAttention, "dmdm")) && c.IntermediateSize == 96 && slices.Equal(c.MoELayers(), []int{1, 3})
		}},
		{"qwen3_moe: dense layers by step", with(qwen3MoE, keys{"decoder_sparse_step": 2}), func(c *config) bool {
			return reflect.DeepEqual(c.Layers, layersOf(model.FullAttention, "dmdm"))
		}},
		{"qwen3_moe: all layer types full", with(qwen3MoE, keys{"layer_types": []string{"full_attention", "full_attention"}, "shared_expert_intermediate_size": 0}),
			func(c *config) bool { return c.Count(model.FullAttention) == 4 && c.IntermediateSize == 0 }},
		{"qwen3_moe: yarn with defaults", with(qwen3MoE, keys{"rope_scaling": yarn}), func(c *config) bool {
			return reflect.DeepEqual(c.YaRN, &model.YaRN{Factor: 4, OriginalMaxPositionEmbeddings: 4096, BetaFast: 32, BetaSlow: 1, Truncate: true})
		}},
		{"yarn with all keys, beside an older copy", with(qwen3MoE, keys{"rope_theta": nil, "rope_scaling": keys{"type": "yarn"}, "rope_parameters": keys{
			"rope_type": "yarn", "type": "yarn", "rope_theta": 50000, "factor": 8, "original_max_position_embeddings": 512, "beta_fast": 16, "beta_slow": 2, "mscale": 0.5,
			"mscale_all_dim": 0.25, "attention_factor": 1.5, "truncate": false}}), func(c *config) bool {
			return c.RopeTheta == 5e4 && reflect.DeepEqual(c.YaRN, &model.YaRN{Factor: 8, OriginalMaxPositionEmbeddings: 512, BetaFast: 16, BetaSlow: 2, MScale: 0.5, MScaleAllDim: 0.25, AttentionFactor: 1.5})
		}},
		{"deepseek_v3 without compression of queries", deepseek, func(c *config) bool {
			return c.QLoraRank == 0 && c.HeadDim == 48 && c.RotaryDim == 16 && c.RopeInterleaved && c.LatentDim() == 80 && c.NumKeyValueHeads == 4 &&
				c.SharedExpertIntermediateSize == 128 && c.SharedExpert == model.SharedExpertUngated && reflect.DeepEqual(c.Layers, layersOf(model.LatentAttention, "dmmm"))
		}},
		{"deepseek_v3: every other layer, none shared, half-split rope", with(deepseek, keys{"moe_layer_freq": 2, "n_shared_experts": json.RawMessage("null"), "rope_interleave": false}),
			func(c *config) bool {
				return reflect.DeepEqual(c.Layers, layersOf(model.LatentAttention, "ddmd")) && c.SharedExpert == model.NoSharedExpert && !c.RopeInterleaved
			}},
		{"deepseek_v3: no dense layer", with(deepseek, keys{"first_k_dense_replace": 0, "intermediate_size": nil}), func(c *config) bool { return c.IntermediateSize == 0 }},
		{"kimi_k2", with(deepseek, keys{"model_type": "kimi_k2", "n_group": 1, "routed_scaling_factor": 2.827}), func(c *config) bool {
			return c.Arch == model.KimiK2 && c.RoutedScalingFactor == 2.827 && c.RMSNormEps == 1e-5 && model.LatentNormEps == 1e-6
		}},
		{"kimi_k25, nested", keys{"model_type": "kimi_k25", "bos_token_id": 7, "text_config": with(deepseek, keys{"model_type": "kimi_k2", "eos_token_id": 9}), "vision_config": keys{}},
			func(c *config) bool {
				return c.Arch == model.KimiK2 && c.BOSTokenID == 7 && slices.Equal(c.EOSTokenIDs, []int32{9})
			}},
		{"kimi_k25, nested without a type", keys{"model_type": "kimi_k25", "text_config": with(deepseek, keys{"model_type": nil})}, func(c *config) bool { return c.Arch == model.KimiK2 }},
		{"glm4_moe", glm, func(c *config) bool {
			return c.AttentionBias && c.QKNorm == model.QKNormPerHead && c.RotaryDim == 16 && !c.RopeInterleaved && c.Scoring == model.SigmoidScores && c.CorrectionBias &&
				c.RoutedScalingFactor == 2.5 && reflect.DeepEqual(c.Layers, layersOf(model.FullAttention, "ddmm")) && c.SharedExpertIntermediateSize == 64
		}},
		{"glm4_moe, small", with(glm, keys{"use_qk_norm": false, "partial_rotary_factor": nil}), func(c *config) bool { return c.QKNorm == model.NoQKNorm && c.RotaryDim == 16 }},
		{"minimax_m2", minimax, func(c *config) bool {
			return c.QKNorm == model.QKNormWhole && c.RotaryDim == 16 && c.NumExperts == 8 && c.MoEIntermediateSize == 64 && c.IntermediateSize == 0 && c.SharedExpert == model.NoSharedExpert &&
				c.Scoring == model.SigmoidScores && c.CorrectionBias && c.NormTopKProb && c.NGroup == 1 && c.RoutedScalingFactor == 1
		}},
		{"minimax_m2 without norm and bias", with(minimax, keys{"rotary_dim": nil, "use_qk_norm": false, "use_routing_bias": false}), func(c *config) bool {
			return c.QKNorm == model.NoQKNorm && c.RotaryDim == 32 && !c.CorrectionBias
		}},
		{"hy_v3", hunyuan, func(c *config) bool {
			return c.QKNorm == model.QKNormPerHead && c.RotaryDim == 32 && c.Scoring == model.SigmoidScores && c.CorrectionBias && c.NormTopKProb && c.NGroup == 1 &&
				c.RoutedScalingFactor == 2.826 && c.SharedExpert == model.SharedExpertUngated && c.SharedExpertIntermediateSize == 64 &&
				reflect.DeepEqual(c.Layers, layersOf(model.FullAttention, "dmmm"))
		}},
		{"hy_v3: the first layer is dense if nothing is said", with(hunyuan, keys{"first_k_dense_replace": nil}), func(c *config) bool {
			return reflect.DeepEqual(c.Layers, layersOf(model.FullAttention, "dmmm"))
		}},
		{"hy_v3: dense layers by list, options off", with(hunyuan, keys{"mlp_layer_types": []string{"sparse", "dense", "sparse", "dense"}, "first_k_dense_replace": 3,
			"qk_norm": false, "route_norm": false, "moe_router_enable_expert_bias": false, "num_shared_experts": 0, "expert_hidden_dim": nil}), func(c *config) bool {
			return reflect.DeepEqual(c.Layers, layersOf(model.FullAttention, "mdmd")) && c.QKNorm == model.NoQKNorm && !c.NormTopKProb && !c.CorrectionBias &&
				c.SharedExpert == model.NoSharedExpert
		}},
		{"hunyuan_v1_moe", hunyuan1, func(c *config) bool {
			return c.QKNorm == model.QKNormPerHead && c.NormAfterRope && c.HeadDim == 32 && c.RotaryDim == 32 && math.Abs(c.RopeTheta/1.584893192461114e7-1) < 1e-12 && // 10^(4+3·32/30)
				c.YaRN == nil && c.Scoring == model.SoftmaxScores && c.NormTopKProb && c.NumExpertsPerTok == 2 && c.MoEIntermediateSize == 48 && c.RoutedScalingFactor == 1 &&
				c.SharedExpert == model.SharedExpertUngated && c.SharedExpertIntermediateSize == 128 && !c.AttentionBias && !c.OutputBias &&
				reflect.DeepEqual(c.Layers, layersOf(model.FullAttention, "mmmm"))
		}},
		{"hunyuan_v1_moe as transformers saves it, options off", with(hunyuan1, keys{"attention_head_dim": nil, "head_dim": 16, "moe_topk": 3, "moe_intermediate_size": nil,
			"num_shared_expert": nil, "attention_bias": true, "use_qk_norm": false, "rope_theta": nil, "rope_scaling": nil,
			"rope_parameters": keys{"rope_type": "default", "rope_theta": 5000.0}}), func(c *config) bool {
			return c.HeadDim == 16 && c.NumExpertsPerTok == 3 && c.MoEIntermediateSize == 64 && c.SharedExpertIntermediateSize == 64 && c.RopeTheta == 5000 &&
				c.AttentionBias && c.OutputBias && c.QKNorm == model.NoQKNorm && !c.NormAfterRope
		}},
		{"hunyuan_v1_moe without shared expert and width of heads", with(hunyuan1, keys{"attention_head_dim": nil, "use_mixed_mlp_moe": false, "rope_scaling": json.RawMessage("null")}),
			func(c *config) bool {
				return c.HeadDim == 16 && c.SharedExpert == model.NoSharedExpert && c.SharedExpertIntermediateSize == 0 && c.RopeTheta == 1e4
			}},
		{"deepseek_v32", indexed, func(c *config) bool {
			return c.IndexNHeads == 4 && c.IndexHeadDim == 24 && c.IndexTopK == 12 && !c.IndexerRopeInterleaved && c.RopeInterleaved && indexersOf(c) == "0123"
		}},
		{"glm_moe_dsa", glm5, func(c *config) bool { return c.IndexerRopeInterleaved && indexersOf(c) == "0123" }},
		{"glm_moe_dsa by list, one longer than the model", with(glm5, keys{"indexer_types": []string{"full", "shared", "shared", "full", "shared"}, "index_topk_freq": 1}),
			func(c *config) bool { return indexersOf(c) == "0..1" && c.Indexers() == 2 }},
		{"glm_moe_dsa by letters", with(glm5, keys{"index_topk_pattern": "FFSF"}), func(c *config) bool { return indexersOf(c) == "01.2" }},
		{"glm_moe_dsa by a step", with(glm5, keys{"num_hidden_layers": 12, "index_topk_freq": 4, "index_skip_topk_offset": 3}),
			func(c *config) bool { return indexersOf(c) == "012...3...4." }},
		{"step3p5, whose lists are one longer than the model", step, func(c *config) bool {
			full, window := c.Attention(model.FullAttention), c.Attention(model.WindowAttention)
			return mixersOf(c) == "fwwf" && c.HeadGate && c.QKNorm == model.QKNormPerHead && c.RoutedScalingFactor == 3 && c.CorrectionBias && c.IntermediateSize == 96 &&
				slices.Equal(c.MoELayers(), []int{1, 2, 3}) && c.SharedExpertIntermediateSize == 64 && c.Layers[2].Clamp == model.Clamp{Limit: 7} &&
				c.Layers[2].MLPClamp == model.Clamp{Limit: 16} && c.Layers[1].Clamp == model.Clamp{} &&
				*full.Llama3 == model.Llama3{Factor: 2, OriginalMaxPositionEmbeddings: 131072, LowFreqFactor: 1, HighFreqFactor: 32} &&
				full == model.Attention{Heads: 4, KVHeads: 2, HeadDim: 32, ValueDim: 32, RotaryDim: 16, RopeTheta: 5e6, Llama3: c.Llama3} &&
				window == model.Attention{Heads: 6, KVHeads: 2, HeadDim: 32, ValueDim: 32, RotaryDim: 32, RopeTheta: 1e4, Window: 512}
		}},
		{"minimax_m3_vl", keys{"model_type": "minimax_m3_vl", "text_config": minimax3, "vision_config": keys{"model_type": "clip_vision_model"}}, func(c *config) bool {
			clamp := model.Clamp{Limit: 7, Alpha: 1.702}
			return c.Arch == model.MiniMaxM3 && c.QKNorm == model.QKNormPerHead && c.RotaryDim == 16 && c.Scoring == model.SigmoidScores && c.CorrectionBias &&
				c.RoutedScalingFactor == 2 && c.SharedExpert == model.SharedExpertUngated && c.SharedExpertIntermediateSize == 64 && c.IntermediateSize == 96 &&
				slices.Equal(c.MoELayers(), []int{1, 2, 3}) && c.Layers[0].MLPClamp == clamp && c.Layers[3].Clamp == clamp && indexersOf(c) == "-0-1" &&
				c.IndexNHeads == 2 && c.IndexHeadDim == 24 && c.IndexTopK == 16 && c.IndexBlock == 128 && c.IndexLocal == 1 && c.IndexBudget() == 2048 && c.IndexLists() == 2
		}},
		{"minimax_m3_vl that attends to all positions", keys{"model_type": "minimax_m3_vl", "text_config": with(minimax3, keys{"sparse_attention_config": nil})},
			func(c *config) bool { return indexersOf(c) == "----" && c.IndexTopK == 0 && c.IndexBlock == 0 }},
		{"gpt_oss", gptOss, func(c *config) bool {
			return c.AttentionBias && c.OutputBias && c.AttentionSinks && c.RouterBias && c.ExpertBias && c.Layers[1].Clamp == model.Clamp{Limit: 7, Alpha: 1.702} && c.Layers[1].MLPClamp == model.Clamp{} && c.QKNorm == model.NoQKNorm &&
				c.RotaryDim == 32 && c.Scoring == model.SoftmaxScores && c.NormTopKProb && c.YaRN.Factor == 32 && !c.YaRN.Truncate && c.AttentionScale() == 1/math.Sqrt(32) &&
				math.Abs(c.RopeMultiplier()-1.3465736) < 1e-7
		}},
		{"gpt_oss, windows by list", with(gptOss, keys{"layer_types": []string{"full_attention", "sliding_attention", "sliding_attention", "full_attention"}}), func(c *config) bool {
			a := c.Attention(model.WindowAttention)
			return mixersOf(c) == "fwwf" && a.Window == 128 && a.Sinks && a.YaRN == c.YaRN && a.KVHeads == 2 && c.Layers[2].MixerIndex == 1 && c.Layers[3].MixerIndex == 1
		}},
		{"gpt_oss, windows by default", with(gptOss, keys{"layer_types": nil}), func(c *config) bool { return mixersOf(c) == "wfwf" }},
		{"mimo_v2_flash", miMo, func(c *config) bool {
			full, window := c.Attention(model.FullAttention), c.Attention(model.WindowAttention)
			return mixersOf(c) == "fwwf" && c.RMSNormEps == 1e-5 && c.RoutedScalingFactor == 1 && c.CorrectionBias && c.ValueScale == 0.707 && c.IntermediateSize == 96 &&
				slices.Equal(c.MoELayers(), []int{1, 2, 3}) &&
				full == model.Attention{Heads: 4, KVHeads: 2, HeadDim: 32, ValueDim: 24, RotaryDim: 16, RopeTheta: 1e6} &&
				window == model.Attention{Heads: 4, KVHeads: 4, HeadDim: 32, ValueDim: 24, RotaryDim: 16, RopeTheta: 1e4, Sinks: true, Window: 128}
		}},
		{"gpt_oss, defaults", with(gptOss, keys{"swiglu_limit": nil, "attention_bias": nil}), func(c *config) bool { return c.OutputBias && c.Layers[0].Clamp.Limit == 7 }},
		{"mistral4", mistral, func(c *config) bool {
			return c.Scoring == model.SoftmaxScores && !c.CorrectionBias && c.RopeInterleaved && c.NormTopKProb && c.RoutedScalingFactor == 2.5 &&
				reflect.DeepEqual(c.QueryGrowth, &model.QueryGrowth{Beta: 0.1, Every: 16}) && reflect.DeepEqual(c.Layers, layersOf(model.LatentAttention, "dmmm"))
		}},
		{"mistral4, nested in a family that is not known", keys{"model_type": "mistral3", "text_config": mistral, "vision_config": keys{}}, func(c *config) bool {
			return c.Arch == model.Mistral4 && c.QueryGrowth != nil
		}},
		{"mistral4 whose queries do not grow", with(mistral, keys{"rope_parameters": keys{"rope_type": "default", "rope_theta": 1e4}}), func(c *config) bool {
			return c.QueryGrowth == nil && c.YaRN == nil
		}},
		{"deepseek_v3 whose queries grow, without YaRN", with(deepseek, keys{"rope_theta": nil, "rope_parameters": keys{"rope_theta": 1e4, "llama_4_scaling_beta": 0.5,
			"original_max_position_embeddings": 64}}), func(c *config) bool {
			return reflect.DeepEqual(c.QueryGrowth, &model.QueryGrowth{Beta: 0.5, Every: 64})
		}},
		{"fp8", with(minimax, keys{"quantization_config": keys{"quant_method": "fp8", "fmt": "float8_e4m3fn", "weight_block_size": []int{128, 128}, "activation_scheme": "dynamic"}}),
			func(*config) bool { return true }},
		{"packed int4", with(deepseek, keys{"quantization_config": keys{"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": keys{}}}),
			func(*config) bool { return true }},
	} {
		got, err := model.ParseConfig(encode(t, c.keys), nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !c.ok(got) {
			t.Errorf("%s: got %+v", c.name, got)
		}
		for _, s := range got.Sizes() {
			where := c.keys
			if text, ok := where["text_config"].(keys); ok {
				where = text
			}
			said := where[s.Key]
			if list, ok := said.([]int); ok && len(slices.Compact(slices.Clone(list))) == 1 {
				said = list[0]
			}
			if said == nil && where["model_type"] == "hunyuan_v1_moe" {
				continue // follows from another key
			}
			if s.Value < 1 || said != s.Value {
				t.Errorf("%s: Sizes says %s is %d, config.json %v", c.name, s.Key, s.Value, where[s.Key])
			}
		}
	}
}

// mixersOf shows which layers have a window.
func mixersOf(c *model.Config) string {
	var b strings.Builder
	for _, l := range c.Layers {
		b.WriteByte(map[model.Mixer]byte{model.FullAttention: 'f', model.WindowAttention: 'w'}[l.Mixer])
	}
	return b.String()
}

// indexersOf shows which layers have indexers: their index, a dot for those that share a choice, or
// a dash.
func indexersOf(c *model.Config) string {
	var b strings.Builder
	for _, l := range c.Layers {
		switch l.Indexer {
		case model.OwnIndexer:
			fmt.Fprint(&b, l.IndexerIndex)
		case model.LowerIndexer:
			b.WriteByte('.')
		default:
			b.WriteByte('-')
		}
	}
	return b.String()
}

// sparseWith returns the sparse attention of a MiniMax-M3 with one key changed.
func sparseWith(key string, value any) string {
	raw, err := json.Marshal(with(sparse, keys{key: value}))
	if err != nil {
		panic(err)
	}
	return string(raw)
}

func TestParseConfigFamilyRefuses(t *testing.T) {
	families := map[string]keys{"qwen3_moe": qwen3MoE, "deepseek_v3": deepseek, "glm4_moe": glm, "minimax_m2": minimax, "hy_v3": hunyuan, "mistral4": mistral, "gpt_oss": gptOss, "windowed": with(gptOss, keys{"layer_types": nil}), "mimo_v2_flash": miMo,
		"deepseek_v32": indexed, "glm_moe_dsa": glm5, "minimax_m3_vl": with(minimax3, keys{"model_type": "minimax_m3_vl"}), "step3p5": step, "hunyuan_v1_moe": hunyuan1}
	for _, c := range []struct{ family, key, value, names string }{
		{"qwen3_moe", "num_experts", "", "num_experts"},
		{"qwen3_moe", "attention_bias", "true", "attention_bias"},
		{"qwen3_moe", "use_sliding_window", "true", "use_sliding_window"},
		{"qwen3_moe", "shared_expert_intermediate_size", "64", "shared_expert_intermediate_size"},
		{"qwen3_moe", "mlp_only_layers", "[4]", "mlp_only_layers"},
		{"qwen3_moe", "mlp_only_layers", "[-1]", "mlp_only_layers"},
		{"qwen3_moe", "mlp_only_layers", "[0,1,2,3]", "num_hidden_layers"},
		{"qwen3_moe", "decoder_sparse_step", "0", "decoder_sparse_step"},
		{"qwen3_moe", "layer_types", `["linear_attention"]`, "layer_types"},
		{"qwen3_moe", "rope_scaling", `{"rope_type":"longrope"}`, "rope_scaling.rope_type"},
		{"qwen3_moe", "rope_scaling", `{"type":"linear","factor":2}`, "rope_scaling.type"},
		{"qwen3_moe", "rope_scaling", `{"type":"yarn"}`, "rope_scaling.factor"},
		{"qwen3_moe", "rope_scaling", `{"type":"yarn","factor":-1}`, "rope_scaling.factor"},
		{"qwen3_moe", "rope_scaling", `{"type":"yarn","factor":0.5}`, "rope_scaling.factor"},
		{"qwen3_moe", "rope_scaling", `{"type":"yarn","factor":2,"beta_fast":0}`, "rope_scaling.beta_fast"},
		{"qwen3_moe", "rope_scaling", `{"type":"yarn","factor":2,"beta_fast":1,"beta_slow":2}`, "rope_scaling.beta_fast"},
		{"qwen3_moe", "rope_scaling", `{"type":"yarn","factor":2,"mscale":-0.5}`, "rope_scaling.mscale"},
		{"qwen3_moe", "rope_scaling", `{"type":"yarn","factor":2,"original_max_position_embeddings":0}`, "rope_scaling.original_max_position_embeddings"},
		{"deepseek_v3", "kv_lora_rank", "", "kv_lora_rank"},
		{"deepseek_v3", "q_lora_rank", "0", "q_lora_rank"},
		{"deepseek_v3", "qk_nope_head_dim", "", "qk_nope_head_dim"},
		{"deepseek_v3", "qk_rope_head_dim", "15", "qk_rope_head_dim"},
		{"deepseek_v3", "v_head_dim", "0", "v_head_dim"},
		{"deepseek_v3", "scoring_func", `"softmax"`, "scoring_func"},
		{"deepseek_v3", "topk_method", `"group_limited_greedy"`, "topk_method"},
		{"deepseek_v3", "n_group", "3", "n_group"},
		{"deepseek_v3", "n_group", "8", "n_group"},
		{"deepseek_v3", "n_group", "", "n_group"},
		{"deepseek_v3", "topk_group", "3", "topk_group"},
		{"deepseek_v3", "num_experts_per_tok", "5", "num_experts_per_tok"},
		{"deepseek_v3", "routed_scaling_factor", "", "routed_scaling_factor"},
		{"deepseek_v3", "first_k_dense_replace", "", "first_k_dense_replace"},
		{"deepseek_v3", "first_k_dense_replace", "4", "num_hidden_layers"},
		{"deepseek_v3", "moe_layer_freq", "[0,1]", "moe_layer_freq"},
		{"deepseek_v3", "intermediate_size", "", "intermediate_size"},
		{"deepseek_v3", "attention_bias", "true", "attention_bias"},
		{"hy_v3", "mlp_bias", "true", "mlp_bias"},
		{"hy_v3", "moe_router_use_sigmoid", "false", "moe_router_use_sigmoid"},
		{"hy_v3", "router_scaling_factor", "", "router_scaling_factor"},
		{"hy_v3", "expert_hidden_dim", "32", "expert_hidden_dim"},
		{"hy_v3", "mlp_layer_types", `["sparse"]`, "mlp_layer_types"},
		{"hy_v3", "mlp_layer_types", `["dense", "moe", "sparse", "sparse"]`, "mlp_layer_types"},
		{"hy_v3", "layer_types", `["sliding_attention"]`, "layer_types"},
		{"hunyuan_v1_moe", "moe_topk", "[2,2,2,1]", "moe_topk"},
		{"hunyuan_v1_moe", "moe_topk", "[2,2,2]", "moe_topk"},
		{"hunyuan_v1_moe", "moe_topk", "9", "moe_topk"},
		{"hunyuan_v1_moe", "moe_topk", "", "moe_topk"},
		{"hunyuan_v1_moe", "moe_intermediate_size", "[0,0,0,0]", "moe_intermediate_size"},
		{"hunyuan_v1_moe", "num_experts", "[8,4,8,8]", "num_experts"},
		{"hunyuan_v1_moe", "num_shared_expert", "[1,2,1,1]", "num_shared_expert"},
		{"hunyuan_v1_moe", "intermediate_size", "", "intermediate_size"},
		{"hunyuan_v1_moe", "moe_layer_num_skipped", "1", "moe_layer_num_skipped"},
		{"hunyuan_v1_moe", "group_limited_greedy", "true", "group_limited_greedy"},
		{"hunyuan_v1_moe", "use_cla", "true", "use_cla"},
		{"hunyuan_v1_moe", "use_mla", "true", "use_mla"},
		{"hunyuan_v1_moe", "attention_head_dim", "3", "head_dim"},
		{"hunyuan_v1_moe", "rope_scaling", `{"type":"dynamic","factor":2}`, "rope_scaling.alpha"},
		{"hunyuan_v1_moe", "rope_scaling", `{"type":"yarn","factor":2}`, "rope_scaling.type"},
		{"hunyuan_v1_moe", "layer_types", `["sliding_attention"]`, "layer_types"},
		{"deepseek_v32", "index_topk", "", "index_topk"},
		{"deepseek_v32", "index_topk", "0", "index_topk"},
		{"deepseek_v32", "index_n_heads", "", "index_n_heads"},
		{"deepseek_v32", "index_head_dim", "15", "index_head_dim"},
		{"deepseek_v32", "q_lora_rank", "", "q_lora_rank"},
		{"glm_moe_dsa", "indexer_types", `["shared","full","full","full"]`, "indexer_types"},
		{"glm_moe_dsa", "indexer_types", `["full","full","full"]`, "indexer_types"},
		{"glm_moe_dsa", "indexer_types", `["full","half","full","full"]`, "indexer_types"},
		{"glm_moe_dsa", "index_topk_pattern", `"FSX"`, "index_topk_pattern"},
		{"windowed", "sliding_window", "0", "sliding_window"},
		{"windowed", "sliding_window", "", "sliding_window"},
		{"mimo_v2_flash", "moe_layer_freq", "[0,1]", "moe_layer_freq"},
		{"mimo_v2_flash", "hybrid_layer_pattern", "[0,1,2,1]", "hybrid_layer_pattern"},
		{"mimo_v2_flash", "hybrid_layer_pattern", "", "hybrid_layer_pattern"},
		{"mimo_v2_flash", "sliding_window", "", "sliding_window"},
		{"mimo_v2_flash", "v_head_dim", "33", "v_head_dim"},
		{"mimo_v2_flash", "swa_head_dim", "16", "swa_head_dim"},
		{"mimo_v2_flash", "swa_num_key_value_heads", "3", "swa_num_attention_heads"},
		{"mimo_v2_flash", "n_group", "2", "n_group"},
		{"mimo_v2_flash", "n_shared_experts", "1", "n_shared_experts"},
		{"mimo_v2_flash", "layernorm_epsilon", "", "layernorm_epsilon"},
		{"step3p5", "zero_centered", "false", "zero_centered"},
		{"step3p5", "sink", "true", "sink"},
		{"step3p5", "layer_types", `["full_attention"]`, "layer_types"},
		{"step3p5", "layer_types", "", "layer_types"},
		{"step3p5", "moe_layers_enum", `"1,x"`, "moe_layers_enum"},
		{"step3p5", "moe_layers_enum", "", "moe_layers_enum"},
		{"step3p5", "rope_theta", "[5e6,1e4,1e4]", "rope_theta"},
		{"step3p5", "rope_theta", "[5e6,1e4,2e4,5e6]", "rope_theta"},
		{"step3p5", "partial_rotary_factors", "[0.01,1,1,0.01]", "partial_rotary_factors"},
		{"step3p5", "yarn_only_types", `["sliding_attention"]`, "yarn_only_types"},
		{"step3p5", "rope_scaling", `{"rope_type":"yarn","factor":2}`, "rope_scaling.rope_type"},
		{"step3p5", "rope_scaling", `{"rope_type":"llama3","factor":2,"original_max_position_embeddings":64,"low_freq_factor":4,"high_freq_factor":4}`, "rope_scaling.high_freq_factor"},
		{"step3p5", "attention_other_setting", `{"num_attention_heads":5}`, "attention_other_setting.num_attention_heads"},
		{"step3p5", "attention_other_setting", `{"head_dim":16}`, "attention_other_setting.head_dim"},
		{"step3p5", "swiglu_limits", "[0,-1,0,0]", "swiglu_limits"},
		{"step3p5", "norm_expert_weight", "false", "norm_expert_weight"},
		{"minimax_m3_vl", "hidden_act", `"silu"`, "hidden_act"},
		{"minimax_m3_vl", "use_gemma_norm", "false", "use_gemma_norm"},
		{"minimax_m3_vl", "qk_norm_type", `"per_layer"`, "qk_norm_type"},
		{"minimax_m3_vl", "n_shared_experts", "2", "n_shared_experts"},
		{"minimax_m3_vl", "moe_layer_freq", "", "moe_layer_freq"},
		{"minimax_m3_vl", "moe_layer_freq", "[0,1,1]", "moe_layer_freq"},
		{"minimax_m3_vl", "moe_layer_freq", "[0,1,1,2]", "moe_layer_freq"},
		{"minimax_m3_vl", "dense_intermediate_size", "", "dense_intermediate_size"},
		{"minimax_m3_vl", "sparse_attention_config", sparseWith("sparse_num_index_heads", 4), "sparse_attention_config.sparse_num_index_heads"},
		{"minimax_m3_vl", "sparse_attention_config", sparseWith("sparse_index_dim", 8), "sparse_attention_config.sparse_index_dim"},
		{"minimax_m3_vl", "sparse_attention_config", sparseWith("sparse_local_block", 0), "sparse_attention_config.sparse_local_block"},
		{"minimax_m3_vl", "sparse_attention_config", sparseWith("sparse_local_block", 17), "sparse_attention_config.sparse_local_block"},
		{"minimax_m3_vl", "sparse_attention_config", sparseWith("sparse_init_block", 1), "sparse_attention_config.sparse_init_block"},
		{"minimax_m3_vl", "sparse_attention_config", sparseWith("sparse_score_type", "mean"), "sparse_attention_config.sparse_score_type"},
		{"minimax_m3_vl", "sparse_attention_config", sparseWith("sparse_disable_index_value", []int{0, 0, 0, 1}), "sparse_attention_config.sparse_disable_index_value"},
		{"minimax_m3_vl", "sparse_attention_config", sparseWith("sparse_attention_freq", []int{0, 0, 0, 0}), "sparse_attention_config.sparse_attention_freq"},
		{"minimax_m3_vl", "sparse_attention_config", sparseWith("sparse_topk_blocks", nil), "sparse_attention_config.sparse_topk_blocks"},
		{"gpt_oss", "layer_types", `["full_attention"]`, "layer_types"},
		{"gpt_oss", "layer_types", `["full_attention","full_attention","full_attention","linear_attention"]`, "layer_types"},
		{"gpt_oss", "swiglu_limit", "0", "swiglu_limit"},
		{"gpt_oss", "norm_topk_prob", "false", "norm_topk_prob"},
		{"gpt_oss", "num_local_experts", "", "num_local_experts"},
		{"mistral4", "n_group", "2", "n_group"},
		{"mistral4", "scoring_func", `"sigmoid"`, "scoring_func"},
		{"mistral4", "rope_interleave", "false", "rope_parameters.llama_4_scaling_beta"},
		{"mistral4", "qk_nope_head_dim", "15", "rope_parameters.llama_4_scaling_beta"},
		{"mistral4", "rope_parameters", `{"rope_theta":1e4,"llama_4_scaling_beta":0.1}`, "original_max_position_embeddings"},
		{"mistral4", "rope_parameters", `{"rope_theta":1e4,"llama_4_scaling_beta":-1,"original_max_position_embeddings":4}`, "rope_parameters.llama_4_scaling_beta"},
		{"qwen3_moe", "rope_parameters", `{"rope_theta":1e4,"llama_4_scaling_beta":0.1}`, "rope_parameters.llama_4_scaling_beta"},
		{"glm4_moe", "scoring_func", `"softmax"`, "scoring_func"},
		{"glm4_moe", "partial_rotary_factor", "0.01", "partial_rotary_factor"},
		{"minimax_m2", "num_local_experts", "", "num_local_experts"},
		{"minimax_m2", "rotary_dim", "15", "rotary_dim"},
		{"minimax_m2", "rotary_dim", "64", "rotary_dim"},
		{"minimax_m2", "scoring_func", `"softmax"`, "scoring_func"},
		{"minimax_m2", "qk_norm_type", `"per_head"`, "qk_norm_type"},
		{"minimax_m2", "attn_type_list", "[1,0,1,1]", "attn_type_list"},
		{"minimax_m2", "shared_intermediate_size", "64", "shared_intermediate_size"},
		{"minimax_m2", "sliding_window", "128", "sliding_window"},
		{"minimax_m2", "quantization_config", `{"quant_method":"fp8","weight_block_size":[64,128]}`, "quantization_config.weight_block_size"},
		{"minimax_m2", "quantization_config", `{"quant_method":"fp8","weight_block_size":[128,128],"fmt":"e5m2"}`, "quantization_config.fmt"},
		{"qwen3_moe", "quantization_config", `{"quant_method":"bitsandbytes","load_in_4bit":true}`, "quantization_config.quant_method"},
		{"qwen3_moe", "quantization_config", `{"quant_method":"gptq","bits":4,"checkpoint_format":"marlin"}`, "quantization_config.checkpoint_format"},
		{"qwen3_moe", "quantization_config", `{"quant_method":"awq","bits":4,"version":"gemv"}`, "quantization_config.version"},
		{"qwen3_moe", "quantization_config", `{"quant_method":"modelopt","quant_algo":"W4A8_AWQ"}`, "quantization_config.quant_algo"},
		{"qwen3_moe", "quantization_config", `{"quant_method":"compressed-tensors","format":"marlin-24"}`, "quantization_config.format"},
		{"qwen3_moe", "quantization", `{"group_size":32,"bits":4,"mode":"mxfp6"}`, "quantization.mode"},
		{"qwen3_moe", "quantization", `{"group_size":64,"bits":4,"model.layers.0.mlp.gate":{"mode":"int4"}}`, "quantization.model.layers.0.mlp.gate.mode"},
	} {
		m := with(families[c.family], keys{c.key: json.RawMessage(c.value)})
		if c.value == "" {
			delete(m, c.key)
		}
		got, err := model.ParseConfig(encode(t, m), nil)
		found := false
		for _, e := range split(err) {
			var bad *model.ConfigError
			found = found || errors.As(e, &bad) && bad.Key == c.names && bad.File == "config.json"
		}
		if got != nil || !found {
			t.Errorf("%s: %s = %s: got %v, %v, want a *ConfigError of %s", c.family, c.key, c.value, got, err, c.names)
		}
	}
	both := with(qwen3MoE, keys{"rope_scaling": keys{"type": "default"}, "rope_parameters": keys{"rope_type": "yarn", "factor": 2}})
	var bad *model.ConfigError
	if _, err := model.ParseConfig(encode(t, both), nil); !errors.As(err, &bad) || bad.Key != "rope_scaling.rope_type" {
		t.Errorf("two schemes: got %v", err)
	}
}

// A family that the engine does not have is refused by name, with what is missing.
func TestParseConfigMissing(t *testing.T) {
	for _, name := range model.Refused() {
		for _, config := range []string{`{"model_type":"` + name + `"}`, `{"model_type":"some_vl", "text_config":{"model_type":"` + name + `"}}`} {
			_, err := model.ParseConfig([]byte(config), nil)
			var unknown *model.UnknownArchError
			if !errors.As(err, &unknown) || !strings.Contains(err.Error(), "the engine lacks "+model.Missing(name)+"; supported: ") || model.Missing(name) == "" {
				t.Errorf("%s: got %v", config, err)
				continue
			}
			if unknown.ModelType != name || unknown.File != "config.json" || slices.Contains(unknown.Known, model.Arch(name)) {
				t.Errorf("%s: got %+v", config, unknown)
			}
		}
	}
	// What people ask for, and the engine has not.
	for _, name := range []string{
		"bailing_hybrid", "deepseek_v4", "deepseek_v41", "gemma4", "gemma4_text", "glm5_next", "granitemoehybrid",
		"inkling_mm_model", "kimi_k3", "kimi_linear", "laguna", "nemotron_h", "qwen4_exp",
	} {
		if !slices.Contains(model.Refused(), name) {
			t.Errorf("%s is refused without a reason", name)
		}
	}
}

// GGUF files have names of their own for some of them.
func TestMissingGGUF(t *testing.T) {
	for name, want := range map[string]string{
		"deepseek4": "deepseek_v4", "nemotron_h_moe": "nemotron_h", "granitehybrid": "granitemoehybrid",
		"kimi-linear": "kimi_linear", "gemma4": "gemma4", "laguna": "laguna",
	} {
		if got := model.MissingGGUF(name); got == "" || got != model.Missing(want) {
			t.Errorf("%s: got %q", name, got)
		}
	}
	if got := model.MissingGGUF("llama") + model.MissingGGUF("") + model.MissingGGUF("gpt-oss"); got != "" {
		t.Errorf("got %q of what is supported or unheard of", got)
	}
}

// A family of which nobody knows what is missing is refused without a guess.
func TestParseConfigUnheardOf(t *testing.T) {
	_, err := model.ParseConfig([]byte(`{"model_type":"gpt-2"}`), nil)
	var unknown *model.UnknownArchError
	if !errors.As(err, &unknown) || unknown.Missing != "" || strings.Contains(err.Error(), "lacks") {
		t.Errorf("got %v", err)
	}
}

// Every family has an entry under its own name, and none of them is said to be missing.
func TestKnown(t *testing.T) {
	known := model.Known()
	if len(known) < 7 || !slices.IsSorted(known) || len(slices.Compact(known)) != len(model.Known()) {
		t.Errorf("Known() = %v", known)
	}
	for _, a := range known {
		_, err := model.ParseConfig(encode(t, keys{"model_type": a}), nil)
		var unknown *model.UnknownArchError
		if errors.As(err, &unknown) {
			t.Errorf("%s: %v", a, err)
		}
		if model.Missing(string(a)) != "" {
			t.Errorf("%s is supported, and the engine lacks %s for it", a, model.Missing(string(a)))
		}
	}
}

// Every family has random models, which are compared with the float64 model, and a checkpoint with
// numbers of another program. Kimi K2 is DeepSeek V3 under another name.
func TestFamiliesAreCompared(t *testing.T) {
	for _, a := range model.Known() {
		if !slices.Contains(testmodel.Archs(), a) {
			t.Errorf("%s is not in the table of internal/testmodel", a)
		}
		of := func(name string) bool { return strings.HasPrefix(name, string(a)+"/") }
		if a != model.KimiK2 && !slices.ContainsFunc(fixtures.All(), of) {
			t.Errorf("%s has no checkpoint in internal/fixtures", a)
		}
	}
}

// The names of GGUF files lead to their families, each to one.
func TestArchOfGGUF(t *testing.T) {
	for name, want := range map[string]model.Arch{
		"qwen35moe": model.Qwen35MoE, "qwen3next": model.Qwen3Next, "qwen3moe": model.Qwen3MoE, "deepseek2": model.DeepseekV3,
		"glm4moe": model.Glm4MoE, "minimax-m2": model.MiniMaxM2, "gpt-oss": model.GptOss, "hy_v3": model.HyV3, "": "", "gptoss": "", "hunyuan-moe": model.HunyuanV1MoE, "deepseek32": model.DeepseekV32, "glm-dsa": model.GLMMoEDSA, "minimax-m3": model.MiniMaxM3, "step35": model.Step35, "llama": "", "qwen3_moe": "",
	} {
		if got, ok := model.ArchOfGGUF(name); got != want || ok != (want != "") {
			t.Errorf("%q: got %q, %v, want %q", name, got, ok, want)
		}
	}
}
