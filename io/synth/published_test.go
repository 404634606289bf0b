package synth_test

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moeflux/moeflux-actor/io/synth"
	"github.com/moeflux/moeflux-actor/model"
)

type keys = map[string]any

// The sizes of published models of families that have no shape of their own here, in the form of
// their config.json. Parameters are those that their makers tell of, in billions.
var published = map[string]struct {
	arch       model.Arch
	parameters float64
	config     keys
}{
	"Hy3": {model.HyV3, 295.0, keys{"model_type": "hy_v3", "attention_bias": false, "enable_lm_head_fp32": true, "expert_hidden_dim": 1536,
		"first_k_dense_replace": 1, "head_dim": 128, "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 13312, "max_position_embeddings": 262144,
		"mlp_bias": false, "moe_intermediate_size": 1536, "moe_router_enable_expert_bias": true, "moe_router_use_sigmoid": true, "num_attention_heads": 64,
		"num_experts": 192, "num_experts_per_tok": 8, "num_hidden_layers": 80, "num_key_value_heads": 8, "num_nextn_predict_layers": 1, "num_shared_experts": 1,
		"qk_norm": true, "rms_norm_eps": 1e-5, "rope_parameters": keys{"rope_theta": 11158840, "rope_type": "default"}, "route_norm": true,
		"router_scaling_factor": 2.826, "tie_word_embeddings": false, "vocab_size": 120832}},
	// Its head is its embedding, which synth does not make.
	"Hunyuan-A13B": {model.HunyuanV1MoE, 80.9, keys{"model_type": "hunyuan_v1_moe", "attention_bias": false, "attention_head_dim": 128, "hidden_act": "silu",
		"hidden_size": 4096, "intermediate_size": 3072, "max_position_embeddings": 32768, "mlp_bias": false, "moe_intermediate_size": eachOf(32, 3072), "moe_topk": eachOf(32, 8),
		"moe_layer_num_skipped": 0, "norm_topk_prob": true, "num_attention_heads": 32, "num_experts": 64, "num_hidden_layers": 32, "num_key_value_heads": 8,
		"num_shared_expert": eachOf(32, 1), "rms_norm_eps": 1e-5, "rope_scaling": keys{"alpha": 1000.0, "factor": 1.0, "type": "dynamic"}, "rope_theta": 10000.0,
		"tie_word_embeddings": false, "use_cla": false, "use_mixed_mlp_moe": true, "use_mla": false, "use_qk_norm": true, "vocab_size": 128167}},
	// Nested, with experts in 4 bits.
	"Kimi K2.5": {model.KimiK2, 1026, keys{"model_type": "kimi_k25", "vision_config": keys{"hidden_size": 1152}, "text_config": keys{
		"model_type": "kimi_k2", "hidden_size": 7168, "num_hidden_layers": 61, "first_k_dense_replace": 1, "intermediate_size": 18432, "hidden_act": "silu",
		"num_attention_heads": 64, "num_key_value_heads": 64, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64,
		"v_head_dim": 128, "attention_bias": false, "n_routed_experts": 384, "num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1,
		"n_group": 1, "topk_group": 1, "routed_scaling_factor": 2.827, "scoring_func": "sigmoid", "topk_method": "noaux_tc", "norm_topk_prob": true,
		"moe_layer_freq": 1, "vocab_size": 163840, "max_position_embeddings": 262144, "rms_norm_eps": 1e-5, "rope_theta": 50000, "tie_word_embeddings": false,
		"num_nextn_predict_layers": 0, "rope_scaling": keys{"type": "yarn", "factor": 64, "original_max_position_embeddings": 4096, "beta_fast": 1, "beta_slow": 1,
			"mscale": 1, "mscale_all_dim": 1}}}},
	// The indexers are 0.9 billion more than DeepSeek V3 has.
	"DeepSeek V3.2": {model.DeepseekV32, 671.9, keys{"model_type": "deepseek_v32", "hidden_size": 7168, "num_hidden_layers": 61, "first_k_dense_replace": 3,
		"intermediate_size": 18432, "hidden_act": "silu", "num_attention_heads": 128, "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512,
		"qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "attention_bias": false, "n_routed_experts": 256, "num_experts_per_tok": 8,
		"moe_intermediate_size": 2048, "n_shared_experts": 1, "n_group": 8, "topk_group": 4, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid",
		"topk_method": "noaux_tc", "norm_topk_prob": true, "moe_layer_freq": 1, "vocab_size": 129280, "max_position_embeddings": 163840, "rms_norm_eps": 1e-6,
		"rope_theta": 10000, "tie_word_embeddings": false, "num_nextn_predict_layers": 1, "index_n_heads": 64, "index_head_dim": 128, "index_topk": 2048,
		"rope_scaling": keys{"type": "yarn", "factor": 40, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1, "mscale": 1, "mscale_all_dim": 1}}},
	"GLM-5": {model.GLMMoEDSA, 743.8, keys{"model_type": "glm_moe_dsa", "hidden_size": 6144, "num_hidden_layers": 78, "first_k_dense_replace": 3,
		"intermediate_size": 12288, "hidden_act": "silu", "num_attention_heads": 64, "num_key_value_heads": 64, "q_lora_rank": 2048, "kv_lora_rank": 512,
		"qk_nope_head_dim": 192, "qk_rope_head_dim": 64, "v_head_dim": 256, "head_dim": 64, "attention_bias": false, "n_routed_experts": 256,
		"num_experts_per_tok": 8, "moe_intermediate_size": 2048, "n_shared_experts": 1, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 2.5,
		"scoring_func": "sigmoid", "topk_method": "noaux_tc", "norm_topk_prob": true, "moe_layer_freq": 1, "vocab_size": 154880,
		"max_position_embeddings": 202752, "rms_norm_eps": 1e-5, "tie_word_embeddings": false, "num_nextn_predict_layers": 1, "index_n_heads": 32,
		"index_head_dim": 128, "index_topk": 2048, "indexer_rope_interleave": true, "rope_parameters": keys{"rope_theta": 1000000, "rope_type": "default"}}},
	// Told are layers, hidden size, experts, picks and the ratios of heads; widths and numbers of
	// heads are those that give 2.4 trillion parameters in all.
	"Qwen3.8-2.4T-A95B": {model.Qwen35MoE, 2419, keys{"model_type": "qwen3_5_moe_text", "hidden_size": 8192, "num_hidden_layers": 92, "full_attention_interval": 4,
		"num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 256, "attn_output_gate": true, "linear_num_key_heads": 16, "linear_num_value_heads": 128,
		"linear_key_head_dim": 128, "linear_value_head_dim": 128, "linear_conv_kernel_dim": 4, "num_experts": 512, "num_experts_per_tok": 10,
		"moe_intermediate_size": 2048, "shared_expert_intermediate_size": 2048, "vocab_size": 248320, "rms_norm_eps": 1e-6, "hidden_act": "silu",
		"tie_word_embeddings": false, "max_position_embeddings": 262144, "rope_parameters": keys{"rope_theta": 10000000, "partial_rotary_factor": 0.25}}},
	// Three of four layers have a window; which of the lists' entries are which changes few
	// parameters.
	"Step-3.5-Flash": {model.Step35, 196.9, keys{"model_type": "step3p5", "hidden_size": 4096, "num_hidden_layers": 45, "num_attention_heads": 64,
		"num_attention_groups": 8, "head_dim": 128, "attention_other_setting": keys{"attention_type": "sliding_attention", "num_attention_heads": 96,
			"num_attention_groups": 8, "head_dim": 128}, "moe_num_experts": 288, "moe_top_k": 8, "moe_intermediate_size": 1280, "share_expert_dim": 1280,
		"intermediate_size": 11264, "moe_layers_enum": layersFrom(3, 45), "moe_router_scaling_factor": 3.0, "moe_router_activation": "sigmoid",
		"norm_expert_weight": true, "use_moe_router_bias": true, "use_head_wise_attn_gate": true, "use_qk_norm": true, "zero_centered": true, "sliding_window": 512,
		"layer_types": everyFourth(48, "full_attention", "sliding_attention"), "rope_theta": everyFourth(48, 5e6, 1e4), "partial_rotary_factors": everyFourth(48, 0.5, 1.0),
		"rope_scaling":    keys{"rope_type": "llama3", "factor": 2.0, "original_max_position_embeddings": 131072, "low_freq_factor": 1.0, "high_freq_factor": 32.0},
		"yarn_only_types": []string{"full_attention"}, "vocab_size": 128896, "rms_norm_eps": 1e-5, "tie_word_embeddings": false, "max_position_embeddings": 262144}},
	// That all but the dense layers choose blocks is not known; their indexers are a 2,000th of
	// all.
	"MiniMax-M3": {model.MiniMaxM3, 426.0, keys{"model_type": "minimax_m3_vl", "vision_config": keys{"hidden_size": 1280}, "text_config": keys{
		"hidden_size": 6144, "num_hidden_layers": 60, "num_attention_heads": 64, "num_key_value_heads": 4, "head_dim": 128, "rotary_dim": 64, "rope_theta": 5000000,
		"num_local_experts": 128, "num_experts_per_tok": 4, "intermediate_size": 3072, "dense_intermediate_size": 12288, "n_shared_experts": 1,
		"shared_intermediate_size": 3072, "routed_scaling_factor": 2.0, "moe_layer_freq": sparseFrom(3, 60), "vocab_size": 200064, "rms_norm_eps": 1e-6,
		"hidden_act": "swigluoai", "swiglu_alpha": 1.702, "swiglu_limit": 7.0, "use_gemma_norm": true, "use_qk_norm": true, "qk_norm_type": "per_head",
		"scoring_func": "sigmoid", "use_routing_bias": true, "tie_word_embeddings": false, "max_position_embeddings": 1048576, "sparse_attention_config": keys{
			"use_sparse_attention": true, "sparse_attention_freq": sparseFrom(3, 60), "sparse_disable_index_value": sparseFrom(3, 60), "sparse_num_index_heads": 4,
			"sparse_index_dim": 128, "sparse_topk_blocks": 16, "sparse_block_size": 128, "sparse_local_block": 1, "sparse_init_block": 0, "sparse_score_type": "max"}}}},
	"MiniMax-M2, M2.5 and M2.7": {model.MiniMaxM2, 228.7, keys{"model_type": "minimax_m2", "hidden_size": 3072, "num_hidden_layers": 62, "num_attention_heads": 48,
		"num_key_value_heads": 8, "head_dim": 128, "rotary_dim": 64, "rope_theta": 5000000, "num_local_experts": 256, "num_experts_per_tok": 8,
		"intermediate_size": 1536, "shared_intermediate_size": 0, "vocab_size": 200064, "rms_norm_eps": 1e-6, "hidden_act": "silu", "use_qk_norm": true,
		"qk_norm_type": "per_layer", "scoring_func": "sigmoid", "use_routing_bias": true, "use_mtp": true, "num_mtp_modules": 3, "tie_word_embeddings": false,
		"max_position_embeddings": 196608, "eos_token_id": 200020}},
	"GLM-4.6 and 4.7": {model.Glm4MoE, 352.8, keys{"model_type": "glm4_moe", "hidden_size": 5120, "num_hidden_layers": 92, "first_k_dense_replace": 3,
		"intermediate_size": 12288, "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "attention_bias": true, "use_qk_norm": true,
		"partial_rotary_factor": 0.5, "rope_theta": 1000000, "rope_scaling": nil, "n_routed_experts": 160, "num_experts_per_tok": 8, "moe_intermediate_size": 1536,
		"n_shared_experts": 1, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 2.5, "norm_topk_prob": true, "num_nextn_predict_layers": 1,
		"vocab_size": 151552, "max_position_embeddings": 202752, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": false,
		"eos_token_id": []int{151329, 151336, 151338}}},
	"GLM-4.5-Air": {model.Glm4MoE, 106.9, keys{"model_type": "glm4_moe", "hidden_size": 4096, "num_hidden_layers": 46, "first_k_dense_replace": 1,
		"intermediate_size": 10944, "num_attention_heads": 96, "num_key_value_heads": 8, "head_dim": 128, "attention_bias": true, "use_qk_norm": false,
		"partial_rotary_factor": 0.5, "rope_theta": 1000000, "rope_scaling": nil, "n_routed_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 1408,
		"n_shared_experts": 1, "n_group": 1, "topk_group": 1, "routed_scaling_factor": 1.0, "norm_topk_prob": true, "num_nextn_predict_layers": 1,
		"vocab_size": 151552, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": false,
		"eos_token_id": []int{151329, 151336, 151338}}},
}

// layersFrom lists the layers from first to n-1.
func layersFrom(first, n int) string {
	var list []string
	for i := first; i < n; i++ {
		list = append(list, strconv.Itoa(i))
	}
	return strings.Join(list, ",")
}

// everyFourth returns a list of n layers, of which every fourth, from the first on, has full.
func everyFourth[T any](n int, full, other T) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = other
		if i%4 == 0 {
			list[i] = full
		}
	}
	return list
}

// eachOf returns a list that says the same of n layers.
func eachOf(n, value int) []int { return slices.Repeat([]int{value}, n) }

// sparseFrom returns a list of n layers, with 1 from layer first on.
func sparseFrom(first, n int) []int {
	list := make([]int, n)
	for i := first; i < n; i++ {
		list[i] = 1
	}
	return list
}

// Published configurations are read as they are, nested or not, and give the number of parameters
// that is known of the model.
func TestPublishedConfigurations(t *testing.T) {
	for name, want := range published {
		raw, err := json.Marshal(want.config)
		if err != nil {
			t.Fatal(err)
		}
		m, err := synth.New(synth.Options{Shape: synth.Shape{Name: name, Config: raw}})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// 4 bits in groups of 64 are 9/16 of a byte each; routers, norms and biases are few.
		dense, experts := m.Size()
		got := float64(dense+experts) / 0.5625 / 1e9
		if m.Config().Arch != want.arch || math.Abs(got-want.parameters) > 0.003*want.parameters {
			t.Errorf("%s: %s with %.1f billion parameters, want %s with %.1f", name, m.Config().Arch, got, want.arch, want.parameters)
		}
	}
}
