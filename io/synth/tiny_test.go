package synth_test

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/moeflux/moeflux-actor/io/synth"
)

// tinyShapes are small models of every family, in the published form.
var tinyShapes = map[string]map[string]any{
	"qwen3_moe": {
		"model_type": "qwen3_moe", "head_dim": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "num_experts": 16,
		"num_experts_per_tok": 4, "moe_intermediate_size": 64, "norm_topk_prob": true, "rope_theta": 1000000,
	},
	"qwen3_5_moe": {
		"model_type": "qwen3_5_moe", "text_config": map[string]any{
			"model_type": "qwen3_5_moe_text", "head_dim": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "num_experts": 16,
			"num_experts_per_tok": 4, "moe_intermediate_size": 64, "shared_expert_intermediate_size": 128, "full_attention_interval": 4,
			"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 64, "linear_value_head_dim": 32,
			"linear_conv_kernel_dim": 4, "rope_parameters": map[string]any{"rope_theta": 10000000, "partial_rotary_factor": 0.25},
		},
	},
	"qwen3_next": {
		"model_type": "qwen3_next", "head_dim": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "num_experts": 24,
		"num_experts_per_tok": 5, "moe_intermediate_size": 64, "shared_expert_intermediate_size": 64, "full_attention_interval": 4,
		"linear_num_key_heads": 2, "linear_num_value_heads": 4, "linear_key_head_dim": 64, "linear_value_head_dim": 32,
		"linear_conv_kernel_dim": 4, "rope_theta": 10000000, "partial_rotary_factor": 0.25, "norm_topk_prob": true,
	},
	"kimi_k2": {
		"model_type": "kimi_k2", "num_attention_heads": 4, "num_key_value_heads": 4, "n_routed_experts": 32, "n_shared_experts": 1,
		"num_experts_per_tok": 4, "moe_intermediate_size": 64, "first_k_dense_replace": 1, "intermediate_size": 192, "n_group": 1,
		"topk_group": 1, "norm_topk_prob": true, "routed_scaling_factor": 2.827, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
		"moe_layer_freq": 1, "q_lora_rank": 64, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
		"rope_theta": 50000, "rope_scaling": nil,
	},
	"glm4_moe": {
		"model_type": "glm4_moe", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "n_routed_experts": 32,
		"n_shared_experts": 1, "num_experts_per_tok": 4, "moe_intermediate_size": 64, "first_k_dense_replace": 1, "intermediate_size": 192,
		"n_group": 1, "topk_group": 1, "norm_topk_prob": true, "routed_scaling_factor": 2.5, "use_qk_norm": true, "attention_bias": true,
		"partial_rotary_factor": 0.5, "rope_theta": 1000000,
	},
	"minimax_m2": {
		"model_type": "minimax_m2", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "num_local_experts": 32,
		"num_experts_per_tok": 4, "intermediate_size": 64, "rotary_dim": 32, "rope_theta": 5000000, "use_qk_norm": true,
		"scoring_func": "sigmoid", "use_routing_bias": true,
	},
	"minimax_m3_vl": {
		"model_type": "minimax_m3_vl", "text_config": map[string]any{
			"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "num_local_experts": 32, "num_experts_per_tok": 4, "intermediate_size": 64,
			"dense_intermediate_size": 192, "n_shared_experts": 1, "shared_intermediate_size": 64, "rotary_dim": 32, "rope_theta": 5000000,
			"routed_scaling_factor": 2.0, "moe_layer_freq": []int{0, 1, 1, 1, 1}, "scoring_func": "sigmoid", "sparse_attention_config": map[string]any{
				"sparse_attention_freq": []int{0, 1, 1, 1, 1}, "sparse_num_index_heads": 2, "sparse_index_dim": 64, "sparse_topk_blocks": 4,
				"sparse_block_size": 4, "sparse_local_block": 1, "sparse_init_block": 0, "sparse_score_type": "max",
			},
		},
	},
	"step3p5": {
		"model_type": "step3p5", "num_attention_heads": 4, "num_attention_groups": 2, "head_dim": 64, "moe_num_experts": 32, "moe_top_k": 4,
		"moe_intermediate_size": 64, "intermediate_size": 192, "share_expert_dim": 64, "moe_router_scaling_factor": 3.0, "use_head_wise_attn_gate": true,
		"moe_layers_enum": "1,2,3,4,5,6,7", "sliding_window": 8, "rope_theta": []float64{5e6, 1e4, 1e4, 5e6, 1e4, 1e4, 1e4, 5e6},
		"partial_rotary_factors":  []float64{0.5, 1, 1, 0.5, 1, 1, 1, 0.5},
		"layer_types":             []string{"full_attention", "sliding_attention", "sliding_attention", "full_attention", "sliding_attention", "sliding_attention", "sliding_attention", "full_attention"},
		"attention_other_setting": map[string]any{"num_attention_heads": 6, "num_attention_groups": 2}, "swiglu_limits": []float64{0, 0, 0, 0, 7, 0, 0, 7},
	},
	"hy_v3": {
		"model_type": "hy_v3", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "num_experts": 32, "num_shared_experts": 1,
		"num_experts_per_tok": 4, "moe_intermediate_size": 64, "first_k_dense_replace": 1, "intermediate_size": 192, "route_norm": true,
		"router_scaling_factor": 2.826, "qk_norm": true, "rope_parameters": map[string]any{"rope_theta": 11158840, "rope_type": "default"},
	},
	"hunyuan_v1_moe": {
		"model_type": "hunyuan_v1_moe", "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 64, "num_experts": 32, "moe_topk": 4,
		"moe_intermediate_size": 64, "intermediate_size": 64, "num_shared_expert": 1, "use_mixed_mlp_moe": true, "use_qk_norm": true, "rope_theta": 10000,
		"rope_scaling": map[string]any{"type": "dynamic", "alpha": 1000.0, "factor": 1.0},
	},
	"mistral4": {
		"model_type": "mistral4", "num_attention_heads": 4, "num_key_value_heads": 4, "n_routed_experts": 32, "n_shared_experts": 1,
		"num_experts_per_tok": 4, "moe_intermediate_size": 64, "first_k_dense_replace": 0, "norm_topk_prob": true, "routed_scaling_factor": 1.0,
		"q_lora_rank": 64, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
		"rope_parameters": map[string]any{
			"rope_type": "yarn", "rope_theta": 10000, "factor": 8, "original_max_position_embeddings": 16, "mscale": 1.0, "mscale_all_dim": 1.0,
			"llama_4_scaling_beta": 0.1,
		},
	},
	"deepseek_v32": {
		"model_type": "deepseek_v32", "num_attention_heads": 4, "num_key_value_heads": 4, "n_routed_experts": 32, "n_shared_experts": 1,
		"num_experts_per_tok": 4, "moe_intermediate_size": 64, "first_k_dense_replace": 1, "intermediate_size": 192, "n_group": 4,
		"topk_group": 2, "norm_topk_prob": true, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
		"moe_layer_freq": 1, "q_lora_rank": 64, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
		"index_n_heads": 4, "index_head_dim": 32, "index_topk": 16, "rope_theta": 10000, "rope_scaling": nil,
	},
	"glm_moe_dsa": {
		"model_type": "glm_moe_dsa", "num_attention_heads": 4, "num_key_value_heads": 4, "n_routed_experts": 32, "n_shared_experts": 1,
		"num_experts_per_tok": 4, "moe_intermediate_size": 64, "first_k_dense_replace": 1, "intermediate_size": 192, "n_group": 1,
		"topk_group": 1, "norm_topk_prob": true, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
		"moe_layer_freq": 1, "q_lora_rank": 64, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
		"index_n_heads": 4, "index_head_dim": 32, "index_topk": 16, "index_topk_freq": 2, "index_skip_topk_offset": 1,
		"rope_parameters": map[string]any{"rope_theta": 1000000, "rope_type": "default"},
	},
	"deepseek_v3": {
		"model_type": "deepseek_v3", "num_attention_heads": 4, "num_key_value_heads": 4, "n_routed_experts": 32, "n_shared_experts": 1,
		"num_experts_per_tok": 4, "moe_intermediate_size": 64, "first_k_dense_replace": 1, "intermediate_size": 192, "n_group": 4,
		"topk_group": 2, "norm_topk_prob": true, "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "topk_method": "noaux_tc",
		"moe_layer_freq": 1, "q_lora_rank": 64, "kv_lora_rank": 64, "qk_nope_head_dim": 32, "qk_rope_head_dim": 16, "v_head_dim": 32,
		"rope_theta": 10000, "rope_scaling": map[string]any{
			"type": "yarn", "factor": 4, "original_max_position_embeddings": 128, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0,
		},
	},
}

// tiny returns the options of a small model; options may be changed before use.
func tiny(t testing.TB, family string) synth.Options {
	t.Helper()
	config := maps.Clone(tinyShapes[family])
	text := config
	if inner, ok := config["text_config"].(map[string]any); ok {
		text = maps.Clone(inner)
		config["text_config"] = text
	}
	maps.Copy(text, map[string]any{
		"hidden_size": 320, "num_hidden_layers": 5, "vocab_size": 512, "max_position_embeddings": 512, "rms_norm_eps": 1e-6,
		"tie_word_embeddings": false, "eos_token_id": 511,
	})
	raw, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	return synth.Options{Shape: synth.Shape{Name: "tiny " + family, Config: raw, Generation: []byte(`{"eos_token_id": [511, 507], "bos_token_id": 3}`)}, Topics: 8, Run: 16, Seed: 7}
}
