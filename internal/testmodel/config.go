package testmodel

import (
	"encoding/json"
	"fmt"
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
	if s.DenseWidth > 0 {
		c["intermediate_size"] = s.DenseWidth
	}
	s.attentionKeys(c)
	s.ropeKeys(c)
	of(s.Arch).keys(&s, c)
	if s.has(nested) {
		c["model_type"] = string(s.Arch) + "_text"
		c = map[string]any{"model_type": string(s.Arch), "tie_word_embeddings": s.Tied, "text_config": c}
	}
	if s.has(inner) {
		delete(c, "model_type")
		c = map[string]any{"model_type": string(s.Arch), "text_config": c, "vision_config": map[string]any{"model_type": "clip_vision_model"}}
	}
	out, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("testmodel: config.json: %w", err)
	}
	return append(out, '\n'), nil
}

func (s Spec) attentionKeys(c map[string]any) {
	c["attention_bias"] = s.Bias
	if s.has(latent) {
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
	if s.has(linear) {
		c["full_attention_interval"] = s.FullEvery
		c["linear_num_key_heads"], c["linear_num_value_heads"] = s.LinearKeyHeads, s.LinearValueHeads
		c["linear_key_head_dim"], c["linear_value_head_dim"] = s.LinearKeyDim, s.LinearValueDim
		c["linear_conv_kernel_dim"] = s.ConvKernel
	}
}

// ropeKeys writes the rotary embedding as most families do.
func (s Spec) ropeKeys(c map[string]any) {
	c["rope_theta"] = s.RopeTheta
	c["rope_scaling"] = nil
	if y := s.yarnKeys("type"); y != nil {
		c["rope_scaling"] = y
	}
}

// ropeParameters writes the rotary embedding as newer families do, in one object.
func (s Spec) ropeParameters(c map[string]any) {
	p := s.yarnKeys("rope_type")
	if p == nil {
		p = map[string]any{"rope_type": "default"}
	}
	p["rope_theta"] = s.RopeTheta
	delete(c, "rope_theta")
	delete(c, "rope_scaling")
	c["rope_parameters"] = p
}

// rotaryShare returns the part of a head that is rotated.
func (s Spec) rotaryShare() float64 { return float64(s.RotaryDim) / float64(s.HeadDim) }

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
