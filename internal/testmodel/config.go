package testmodel

import (
	"encoding/json"
	"fmt"

	"github.com/moeflux/moeflux-actor/model"
)

// configJSON returns config.json with the keys of the family's published checkpoints.
func (s Spec) configJSON() ([]byte, error) {
	c := map[string]any{
		"model_type":              string(s.Arch),
		"hidden_act":              "silu",
		"hidden_size":             s.Hidden,
		"num_hidden_layers":       s.Layers,
		"vocab_size":              s.Vocab,
		"max_position_embeddings": s.MaxPositions,
		"rms_norm_eps":            s.Eps,
		"tie_word_embeddings":     s.Tied,
		"num_attention_heads":     s.Heads,
		"num_experts_per_tok":     s.TopK,
		"torch_dtype":             "bfloat16",
		"eos_token_id":            s.Vocab - 1,
	}
	s.attentionKeys(c)
	s.ropeKeys(c)
	s.expertKeys(c)
	if s.Arch == model.Qwen35MoE {
		c["model_type"] = "qwen3_5_moe_text"
		c = map[string]any{"model_type": string(s.Arch), "tie_word_embeddings": s.Tied, "text_config": c}
	}
	out, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("testmodel: config.json: %w", err)
	}
	return append(out, '\n'), nil
}

func (s Spec) attentionKeys(c map[string]any) {
	c["attention_bias"] = s.Bias
	if latent(s.Arch) {
		c["num_key_value_heads"] = s.Heads
		c["q_lora_rank"] = nil
		if s.QLora > 0 {
			c["q_lora_rank"] = s.QLora
		}
		c["kv_lora_rank"], c["v_head_dim"] = s.KVLora, s.VHead
		c["qk_nope_head_dim"], c["qk_rope_head_dim"] = s.QKNope, s.QKRope
		return
	}
	c["num_key_value_heads"], c["head_dim"] = s.KVHeads, s.HeadDim
	switch s.Arch {
	case model.Glm4MoE:
		c["use_qk_norm"] = s.QKNorm
	case model.MiniMaxM2:
		c["use_qk_norm"], c["qk_norm_type"] = true, "per_layer"
	}
	if hybrid(s.Arch) {
		c["full_attention_interval"] = s.FullEvery
		c["linear_num_key_heads"], c["linear_num_value_heads"] = s.LinearKeyHeads, s.LinearValueHeads
		c["linear_key_head_dim"], c["linear_value_head_dim"] = s.LinearKeyDim, s.LinearValueDim
		c["linear_conv_kernel_dim"] = s.ConvKernel
	}
	if s.Arch == model.Qwen35MoE {
		c["attn_output_gate"] = true
	}
}

// ropeKeys writes the rotary embedding: in rope_parameters for qwen3_5_moe, flat and with
// rope_scaling for the others.
func (s Spec) ropeKeys(c map[string]any) {
	share := float64(s.RotaryDim) / float64(max(s.HeadDim, 1))
	if s.Arch == model.Qwen35MoE {
		p := s.yarnKeys("rope_type")
		if p == nil {
			p = map[string]any{"rope_type": "default"}
		}
		p["rope_theta"], p["partial_rotary_factor"] = s.RopeTheta, share
		c["rope_parameters"] = p
		return
	}
	c["rope_theta"] = s.RopeTheta
	c["rope_scaling"] = nil
	if y := s.yarnKeys("type"); y != nil {
		c["rope_scaling"] = y
	}
	switch s.Arch {
	case model.Qwen3Next, model.Glm4MoE:
		c["partial_rotary_factor"] = share
	case model.MiniMaxM2:
		// Some readers know one key, some the other.
		c["rotary_dim"], c["partial_rotary_factor"] = s.RotaryDim, share
	}
}

// yarnKeys returns the object that asks for YaRN, nil if the Spec does not.
func (s Spec) yarnKeys(typeKey string) map[string]any {
	y := s.YaRN
	if y == nil {
		return nil
	}
	out := map[string]any{
		typeKey: "yarn", "factor": y.Factor, "original_max_position_embeddings": y.OriginalMaxPositionEmbeddings,
		"beta_fast": y.BetaFast, "beta_slow": y.BetaSlow,
	}
	for key, value := range map[string]float64{"mscale": y.MScale, "mscale_all_dim": y.MScaleAllDim, "attention_factor": y.AttentionFactor} {
		if value != 0 {
			out[key] = value
		}
	}
	if !y.Truncate {
		out["truncate"] = false
	}
	return out
}

func (s Spec) expertKeys(c map[string]any) {
	experts, width := "num_experts", "moe_intermediate_size"
	switch {
	case grouped(s.Arch):
		experts = "n_routed_experts"
		c["n_shared_experts"] = s.SharedWidth / s.ExpertWidth
		c["n_group"], c["topk_group"], c["routed_scaling_factor"] = s.Groups, s.TopKGroups, s.RoutedScale
		c["first_k_dense_replace"] = len(s.DenseLayers)
		if latent(s.Arch) {
			c["scoring_func"], c["topk_method"], c["moe_layer_freq"] = "sigmoid", "noaux_tc", 1
		}
	case s.Arch == model.MiniMaxM2:
		experts, width = "num_local_experts", "intermediate_size"
		c["scoring_func"], c["use_routing_bias"], c["shared_intermediate_size"] = "sigmoid", true, 0
	case hybrid(s.Arch):
		c["shared_expert_intermediate_size"] = s.SharedWidth
	}
	if s.DenseWidth > 0 {
		c["intermediate_size"] = s.DenseWidth
	}
	if s.Arch == model.Qwen3Next || s.Arch == model.Qwen3MoE {
		c["decoder_sparse_step"], c["mlp_only_layers"] = 1, append([]int{}, s.DenseLayers...)
	}
	c[experts], c[width] = s.Experts, s.ExpertWidth
	// these families have no such key: it is always true
	if s.Arch != model.Qwen35MoE && s.Arch != model.MiniMaxM2 {
		c["norm_topk_prob"] = s.NormTopK
	}
}
