package testmodel

import (
	"fmt"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/model"
)

// families lists what their checkpoints have. It says again what package model knows, so that a
// mistake there is seen.
var families = []family{
	{arch: model.Qwen35MoE, has: linear | nested | fused | mustNormTopK, keys: qwen35Keys},
	{arch: model.Qwen3Next, has: linear | anyDense, keys: qwen3NextKeys},
	{arch: model.Qwen3MoE, has: wholeRope | anyDense, keys: qwen3Keys},
	{arch: model.DeepseekV3, has: latent | firstDense | noaux | scaled | groups | shared, keys: deepseekKeys},
	{arch: model.KimiK2, has: latent | firstDense | noaux | scaled | groups | shared, keys: deepseekKeys},
	{arch: model.Glm4MoE, has: freeNorm | firstDense | noaux | scaled | groups | shared, keys: glmKeys},
	{arch: model.DeepseekV32, has: latent | indexed | firstDense | noaux | scaled | groups | shared, keys: indexedKeys},
	{arch: model.GLMMoEDSA, has: latent | indexed | sharedIndex | firstDense | noaux | scaled | groups | shared, keys: glmDSAKeys},
	{arch: model.MiniMaxM2, has: wholeNorm | noaux | mustNormTopK, keys: miniMaxKeys, rename: strings.NewReplacer(
		".mlp.gate.e_score", ".block_sparse_moe.e_score", ".mlp.", ".block_sparse_moe.",
		".gate_proj.", ".w1.", ".down_proj.", ".w2.", ".up_proj.", ".w3.")},
	{arch: model.MiniMaxM3, has: blocks | inner | zeroCentred | bounded | firstDense | noaux | scaled | shared | mustNormTopK, keys: miniMaxM3Keys, rename: strings.NewReplacer(
		".mlp.gate.e_score", ".block_sparse_moe.e_score", ".mlp.gate.", ".block_sparse_moe.gate.", ".mlp.experts.", ".block_sparse_moe.experts.",
		".mlp.shared", ".block_sparse_moe.shared", ".w_gate_proj.", ".w1.", ".w_down_proj.", ".w2.", ".w_up_proj.", ".w3.")},
	{arch: model.HyV3, has: wholeRope | firstDense | noaux | scaled | shared, keys: hyKeys, rename: strings.NewReplacer(
		".mlp.gate.e_score_correction_bias", ".mlp.expert_bias", ".mlp.gate.", ".mlp.router.gate.", ".mlp.shared_experts.", ".mlp.shared_mlp.")},
	{arch: model.HunyuanV1MoE, has: wholeRope | rotated | shared | mustNormTopK, keys: hunyuanKeys, rename: strings.NewReplacer(
		".mlp.gate.", ".mlp.gate.wg.", ".mlp.shared_experts.", ".mlp.shared_mlp.", ".q_norm.", ".query_layernorm.", ".k_norm.", ".key_layernorm.")},
	{arch: model.GptOss, has: wholeRope | noNorm | sinking | sliding | inTurns | mustNormTopK, keys: gptOssKeys, rename: strings.NewReplacer(".mlp.gate.", ".mlp.router.")},
	{arch: model.MiMoV2Flash, has: noNorm | sliding | narrow | anyDense | noaux | scaled, keys: miMoKeys, rename: strings.NewReplacer(
		".self_attn.sinks", ".self_attn.attention_sink_bias")},
	{arch: model.Step35, has: sliding | stepped | zeroCentred | anyDense | noaux | scaled | shared | mustNormTopK, keys: stepKeys, rename: strings.NewReplacer(
		".mlp.gate.e_score_correction_bias", ".moe.router_bias", ".mlp.gate.", ".moe.gate.", ".mlp.shared_experts.", ".share_expert.", ".mlp.experts.", ".moe.")},
	{arch: model.Mistral4, has: latent | growing | firstDense | scaled | shared | fused, keys: mistralKeys},
}

// family is what checkpoints of a family have.
type family struct {
	arch model.Arch
	has  trait
	// keys writes the keys of config.json that the family alone has, or calls so.
	keys func(s *Spec, c map[string]any)
	// rename turns the names that most families have for tensors into this one's; nil: they are
	// the same
	rename *strings.Replacer
}

// trait is a set of what checkpoints of a family have, or may have.
type trait uint

const (
	latent      trait = 1 << iota // latent attention, and no full attention
	indexed                       // an indexer chooses positions, in every layer
	sharedIndex                   // or in some, and the layers above share its choice
	growing                       // queries of latent attention may grow with their position
	// linear attention in most layers, full attention with a gated output, a gated shared expert,
	// and norms stored as w of 1+w
	linear
	nested      // all is in text_config and below model.language_model; nothing is interleaved
	inner       // all is in text_config and below language_model
	zeroCentred // norms are stored as w of 1+w
	blocks      // full attention to blocks that indexers choose, in all layers but some
	bounded     // gates and ups are bounded, of all units
	fused       // the experts of a layer are two tensors
	freeNorm    // norms of queries and keys, and biases, are options
	noNorm      // queries and keys are not normalised
	wholeNorm   // norms of queries and keys are of all heads together
	wholeRope   // heads are rotated whole
	// heads are normalised after they are rotated; biases of all projections are an option, and so
	// is a base of rotary frequencies that is stretched by alpha
	rotated
	sinking // full attention has sinks, and biases of all projections
	sliding // any layers may have a window
	// values are narrower than keys, and scaled; layers with a window have sinks, and heads of
	// their own
	narrow
	// heads have a gate each; layers with a window have heads and a rotary embedding of their own;
	// those without may have frequencies as of Llama 3; units are bounded after the activation in
	// some layers; there is one shared expert; the experts of a layer are three tensors
	stepped
	anyDense     // any layers may be dense
	firstDense   // the first layers may be dense
	noaux        // a router of sigmoids with correction bias
	scaled       // weights of experts are scaled
	groups       // experts are in groups
	shared       // perhaps shared experts without a gate, of a multiple of an expert's width
	mustNormTopK // norm_topk_prob is true
	// router and experts have biases, and gates and ups are bounded; the experts of a layer are two
	// tensors, with gate and up in turns and inputs first, or in MXFP4
	inTurns
)

// of returns a family's entry, one without traits if there is none.
func of(a model.Arch) family {
	if i := slices.IndexFunc(families, func(f family) bool { return f.arch == a }); i >= 0 {
		return families[i]
	}
	return family{arch: a}
}

// Published returns what checkpoints of a family call a tensor that has this name in most.
func Published(a model.Arch, name string) string {
	if r := of(a).rename; r != nil {
		return r.Replace(name)
	}
	return name
}

// ZeroCentred reports whether checkpoints of a family have norms as w of 1+w as they were trained.
func ZeroCentred(a model.Arch) bool { return of(a).has&(linear|zeroCentred) != 0 }

// has reports whether the Spec's family has a trait.
func (s *Spec) has(t trait) bool { return of(s.Arch).has&t != 0 }

// Archs returns all families, in a fixed order.
func Archs() []model.Arch {
	var out []model.Arch
	for _, f := range families {
		out = append(out, f.arch)
	}
	return out
}

func qwen35Keys(s *Spec, c map[string]any) {
	c["attn_output_gate"] = true
	qwenKeys(s, c)
	c["shared_expert_intermediate_size"] = s.SharedWidth
	s.ropeParameters(c)
	c["rope_parameters"].(map[string]any)["partial_rotary_factor"] = s.rotaryShare()
}

func qwen3NextKeys(s *Spec, c map[string]any) {
	qwen3Keys(s, c)
	c["shared_expert_intermediate_size"] = s.SharedWidth
	c["partial_rotary_factor"] = s.rotaryShare()
}

func qwen3Keys(s *Spec, c map[string]any) {
	qwenKeys(s, c)
	c["decoder_sparse_step"], c["mlp_only_layers"] = 1, append([]int{}, s.DenseLayers...)
	c["norm_topk_prob"] = s.NormTopK
}

func qwenKeys(s *Spec, c map[string]any) {
	c["num_experts"], c["moe_intermediate_size"] = s.Experts, s.ExpertWidth
}

func deepseekKeys(s *Spec, c map[string]any) {
	countedKeys(s, c)
	c["scoring_func"], c["topk_method"], c["moe_layer_freq"] = "sigmoid", "noaux_tc", 1
}

func indexedKeys(s *Spec, c map[string]any) {
	deepseekKeys(s, c)
	c["index_n_heads"], c["index_head_dim"], c["index_topk"] = s.IndexHeads, s.IndexDim, s.IndexTopK
}

func glmDSAKeys(s *Spec, c map[string]any) {
	indexedKeys(s, c)
	s.ropeParameters(c)
	var types []string
	for i := range s.Layers {
		kind := "full"
		if slices.Contains(s.SharedIndex, i) {
			kind = "shared"
		}
		types = append(types, kind)
	}
	c["indexer_types"], c["rope_interleave"], c["indexer_rope_interleave"] = types, true, true
}

func glmKeys(s *Spec, c map[string]any) {
	countedKeys(s, c)
	c["use_qk_norm"], c["partial_rotary_factor"] = s.QKNorm, s.rotaryShare()
}

// countedKeys writes the names that DeepSeek and its kin have.
func countedKeys(s *Spec, c map[string]any) {
	c["n_routed_experts"], c["moe_intermediate_size"], c["n_shared_experts"] = s.Experts, s.ExpertWidth, s.SharedWidth/s.ExpertWidth
	c["n_group"], c["topk_group"], c["routed_scaling_factor"] = s.Groups, s.TopKGroups, s.RoutedScale
	c["first_k_dense_replace"], c["norm_topk_prob"] = len(s.DenseLayers), s.NormTopK
}

func miniMaxKeys(s *Spec, c map[string]any) {
	c["use_qk_norm"], c["qk_norm_type"] = true, "per_layer"
	c["num_local_experts"], c["intermediate_size"] = s.Experts, s.ExpertWidth
	c["scoring_func"], c["use_routing_bias"], c["shared_intermediate_size"] = "sigmoid", true, 0
	// Some readers know one key, some the other.
	c["rotary_dim"], c["partial_rotary_factor"] = s.RotaryDim, s.rotaryShare()
}

func miniMaxM3Keys(s *Spec, c map[string]any) {
	c["hidden_act"], c["use_gemma_norm"], c["use_qk_norm"], c["qk_norm_type"] = "swigluoai", true, true, "per_head"
	c["num_local_experts"], c["intermediate_size"], c["dense_intermediate_size"] = s.Experts, s.ExpertWidth, s.DenseWidth
	c["scoring_func"], c["use_routing_bias"], c["routed_scaling_factor"] = "sigmoid", true, s.RoutedScale
	c["n_shared_experts"], c["shared_intermediate_size"] = min(s.SharedWidth, 1), s.SharedWidth
	c["rotary_dim"], c["swiglu_alpha"], c["swiglu_limit"] = s.RotaryDim, 1.702, s.Limit
	var moe, sparse []int
	for i := range s.Layers {
		moe = append(moe, 1)
		if slices.Contains(s.DenseLayers, i) {
			moe[i] = 0
		}
		sparse = append(sparse, 1)
		if slices.Contains(s.NoIndex, i) {
			sparse[i] = 0
		}
	}
	c["moe_layer_freq"] = moe
	c["sparse_attention_config"] = map[string]any{"use_sparse_attention": true, "sparse_attention_freq": sparse, "sparse_disable_index_value": sparse,
		"sparse_num_index_heads": s.IndexHeads, "sparse_index_dim": s.IndexDim, "sparse_topk_blocks": s.IndexTopK, "sparse_block_size": s.IndexBlock,
		"sparse_local_block": s.IndexLocal, "sparse_init_block": 0, "sparse_score_type": "max"}
}

func stepKeys(s *Spec, c map[string]any) {
	c["num_attention_groups"], c["moe_num_experts"], c["moe_top_k"], c["moe_intermediate_size"] = s.KVHeads, s.Experts, s.TopK, s.ExpertWidth
	delete(c, "num_key_value_heads")
	delete(c, "num_experts_per_tok")
	c["attention_other_setting"] = map[string]any{"attention_type": "sliding_attention", "num_attention_heads": s.WindowHeads,
		"num_attention_groups": s.WindowKVHeads, "head_dim": s.HeadDim}
	c["share_expert_dim"], c["moe_router_activation"], c["moe_router_scaling_factor"] = s.SharedWidth, "sigmoid", s.RoutedScale
	c["norm_expert_weight"], c["use_moe_router_bias"], c["use_head_wise_attn_gate"], c["use_qk_norm"], c["zero_centered"] = true, true, true, true, true
	delete(c, "rope_scaling")
	if l := s.Llama3; l != nil {
		c["rope_scaling"] = map[string]any{"rope_type": "llama3", "factor": l.Factor, "original_max_position_embeddings": l.OriginalMaxPositionEmbeddings,
			"low_freq_factor": l.LowFreqFactor, "high_freq_factor": l.HighFreqFactor}
	}
	c["yarn_only_types"], c["sliding_window"] = []string{"full_attention"}, max(s.Window, 1)
	var types, moe []string
	var bases, parts, limits, others []float64
	for i := range s.Layers + 1 { // one for a draft layer
		kind, base, rotary := "full_attention", s.RopeTheta, s.RotaryDim
		if slices.Contains(s.Sliding, i) {
			kind, base, rotary = "sliding_attention", s.WindowTheta, s.HeadDim
		}
		types, bases, parts = append(types, kind), append(bases, base), append(parts, float64(rotary)/float64(s.HeadDim))
		if i < s.Layers && !slices.Contains(s.DenseLayers, i) {
			moe = append(moe, fmt.Sprint(i))
		}
		limit, other := s.limits(i)
		limits, others = append(limits, limit), append(others, other)
	}
	c["layer_types"], c["rope_theta"], c["partial_rotary_factors"], c["moe_layers_enum"] = types, bases, parts, strings.Join(moe, ",")
	c["swiglu_limits"], c["swiglu_limits_shared"] = limits, others
}

// limits returns the bounds of a layer's routed experts and of its other units: every other layer
// has some, the last among them.
func (s *Spec) limits(layer int) (routed, others float64) {
	if (s.Layers-1-layer)%2 != 0 || layer >= s.Layers {
		return 0, 0
	}
	return s.Limit, 2 * s.Limit
}

func hyKeys(s *Spec, c map[string]any) {
	qwenKeys(s, c)
	c["num_shared_experts"], c["expert_hidden_dim"], c["first_k_dense_replace"] = s.SharedWidth/s.ExpertWidth, s.ExpertWidth, len(s.DenseLayers)
	c["router_scaling_factor"], c["route_norm"], c["qk_norm"] = s.RoutedScale, s.NormTopK, true
	c["moe_router_use_sigmoid"], c["moe_router_enable_expert_bias"], c["mlp_bias"] = true, true, false
	s.ropeParameters(c)
}

func hunyuanKeys(s *Spec, c map[string]any) {
	perLayer := func(n int) []int { return slices.Repeat([]int{n}, s.Layers) }
	c["num_experts"], c["moe_topk"], c["moe_intermediate_size"] = s.Experts, perLayer(s.TopK), perLayer(s.ExpertWidth)
	delete(c, "num_experts_per_tok")
	c["use_qk_norm"], c["use_mixed_mlp_moe"], c["norm_topk_prob"] = true, s.SharedWidth > 0, true
	c["moe_drop_tokens"], c["use_cla"], c["group_limited_greedy"], c["n_group"], c["moe_layer_num_skipped"] = false, false, false, false, 0
	// The shared expert is as wide as so many of intermediate_size, which may be another width than
	// that of the others.
	c["intermediate_size"], c["num_shared_expert"] = s.ExpertWidth, perLayer(max(s.SharedWidth/s.ExpertWidth, 1))
	switch {
	case s.SharedWidth > s.ExpertWidth && s.Layers%2 == 0:
		c["intermediate_size"], c["num_shared_expert"] = s.SharedWidth, 1
	case s.Layers%2 == 1:
		delete(c, "moe_intermediate_size")
	}
	if s.Alpha > 0 {
		c["rope_scaling"] = map[string]any{"type": "dynamic", "alpha": s.Alpha, "factor": 1.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}
	}
}

func gptOssKeys(s *Spec, c map[string]any) {
	c["num_local_experts"], c["experts_per_token"], c["intermediate_size"] = s.Experts, s.TopK, s.ExpertWidth
	c["swiglu_limit"], c["attention_bias"] = s.Limit, true
	types := slices.Repeat([]string{"full_attention"}, s.Layers)
	for _, i := range s.Sliding {
		types[i] = "sliding_attention"
	}
	c["layer_types"], c["sliding_window"] = types, max(s.Window, 1)
	if s.MXFP4 {
		c["quantization_config"] = map[string]any{"quant_method": "mxfp4", "modules_to_not_convert": []string{"model.layers.*.self_attn", "lm_head"}}
	}
	if y := s.yarnKeys("rope_type"); y != nil {
		c["rope_scaling"] = y
	}
}

func miMoKeys(s *Spec, c map[string]any) {
	c["n_routed_experts"], c["moe_intermediate_size"], c["n_shared_experts"] = s.Experts, s.ExpertWidth, nil
	c["n_group"], c["topk_group"], c["routed_scaling_factor"], c["norm_topk_prob"] = 1, 1, s.RoutedScale, s.NormTopK
	c["scoring_func"], c["topk_method"] = "sigmoid", "noaux_tc"
	c["layernorm_epsilon"] = c["rms_norm_eps"]
	delete(c, "rms_norm_eps")
	moe, window := slices.Repeat([]int{1}, s.Layers), make([]int, s.Layers)
	for _, i := range s.DenseLayers {
		moe[i] = 0
	}
	for _, i := range s.Sliding {
		window[i] = 1
	}
	c["moe_layer_freq"], c["hybrid_layer_pattern"], c["sliding_window"] = moe, window, max(s.Window, 1)
	c["partial_rotary_factor"] = s.rotaryShare()
	c["v_head_dim"], c["attention_value_scale"] = s.ValueDim, s.ValueScale
	c["swa_num_attention_heads"], c["swa_num_key_value_heads"] = s.WindowHeads, s.WindowKVHeads
	c["swa_head_dim"], c["swa_v_head_dim"], c["swa_rope_theta"] = s.HeadDim, s.ValueDim, s.WindowTheta
	c["add_swa_attention_sink_bias"], c["add_full_attention_sink_bias"] = true, false
}

func mistralKeys(s *Spec, c map[string]any) {
	one := *s
	one.Groups, one.TopKGroups = 1, 1
	countedKeys(&one, c)
	c["rope_interleave"] = true
	s.ropeParameters(c)
	if g := s.QueryGrowth; g != nil {
		p := c["rope_parameters"].(map[string]any)
		p["llama_4_scaling_beta"], p["original_max_position_embeddings"] = g.Beta, g.Every
	}
}
