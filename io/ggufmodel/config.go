package ggufmodel

import (
	"slices"

	"github.com/moeflux/moeflux-actor/model"
)

// mostLayers bounds the layers that are looked for.
const mostLayers = 1 << 12

// config returns the config.json that the file's keys and tensors stand for.
func (k *keys) config(arch model.Arch, r rule) object {
	c := object{"model_type": string(arch), "hidden_act": "silu"}
	drafts := k.intOr("nextn_predict_layers", 0)
	layers := k.int("block_count") - drafts
	if layers > mostLayers || layers < 1 {
		k.fail("block_count", "leaves %d layers, of which %d propose further tokens: there must be 1 to %d others", layers+drafts, drafts, mostLayers)
		return c
	}
	c["num_hidden_layers"] = layers
	c["hidden_size"] = k.int("embedding_length")
	c["max_position_embeddings"] = k.int("context_length")
	if !r.headsByLayer {
		c["num_attention_heads"] = k.int("attention.head_count")
	}
	c["rms_norm_eps"] = k.float("attention.layer_norm_rms_epsilon")
	c["vocab_size"] = k.vocab()
	c["tie_word_embeddings"] = !k.tensor("output.weight")
	c["num_experts_per_tok"] = k.int("expert_used_count")
	k.rope(c)
	k.ends(c)
	if !r.windows {
		k.refuse("attention.sliding_window")
	}
	r.config(k, c)
	return c
}

// vocab returns the number of tokens: of the key, or else of rows of the embedding.
func (k *keys) vocab() int {
	if n := k.intOr("vocab_size", 0); n > 0 {
		return n
	}
	t := k.file.Tensor("token_embd.weight")
	if t == nil || len(t.Shape) != 2 {
		k.fail("vocab_size", "the key is missing, and so is a matrix token_embd.weight, which would tell")
		return 0
	}
	return t.Shape[0]
}

// ends adds the tokens that begin and end a text. Chat models end a turn by another token than a
// text.
func (k *keys) ends(c object) {
	m := k.file.Metadata()
	var ends []int64
	for _, name := range []string{"eos", "eot", "eom"} {
		if id, ok := m.Int("tokenizer.ggml." + name + "_token_id"); ok && !slices.Contains(ends, id) {
			ends = append(ends, id)
		}
	}
	if len(ends) > 0 {
		c["eos_token_id"] = ends
	}
	if id, ok := m.Int("tokenizer.ggml.bos_token_id"); ok {
		c["bos_token_id"] = id
	}
}

// rope adds base and scaling of the rotary frequencies.
func (k *keys) rope(c object) {
	c["rope_theta"] = k.float("rope.freq_base")
	kind := k.textOr("rope.scaling.type", "none")
	if kind == "none" || kind == "" {
		return
	}
	y := object{"type": kind} // refused by name unless it is yarn
	c["rope_scaling"] = y
	if kind != "yarn" {
		return
	}
	y["factor"] = k.float("rope.scaling.factor")
	if k.has("rope.scaling.original_context_length") {
		y["original_max_position_embeddings"] = k.int("rope.scaling.original_context_length")
	}
	for _, b := range []string{"beta_fast", "beta_slow"} {
		if k.has("rope.scaling.yarn_" + b) {
			y[b] = k.float("rope.scaling.yarn_" + b)
		}
	}
	k.refuse("rope.scaling.attn_factor", 1)
	k.refuse("rope.scaling.yarn_attn_factor", 1)
	k.refuse("rope.scaling.yarn_ext_factor", 1)
}

// heads adds softmax attention.
func (k *keys) heads(c object) {
	c["num_key_value_heads"] = k.int("attention.head_count_kv")
	head := k.intOr("attention.key_length", 0)
	if n := k.intOr("attention.head_count", 0); head == 0 && n > 0 {
		head = k.intOr("embedding_length", 0) / n
	}
	c["head_dim"] = head
	if v := k.intOr("attention.value_length", head); v != head {
		k.fail("attention.value_length", "is %d, but heads of keys have %d: they must be equal in this architecture", v, head)
	}
	c["rotary_dim"] = k.intOr("rope.dimension_count", head)
}

// experts adds the number and the width of routed experts, under the family's names, and checks how
// they are chosen: gating is 1 for softmax, 2 for sigmoid; a file that does not say has that of the
// family.
func (k *keys) experts(c object, number, width string, gating int) {
	c[number] = k.int("expert_count")
	c[width] = k.int("expert_feed_forward_length")
	if g := k.intOr("expert_gating_func", gating); g != gating && g != 0 {
		k.fail("expert_gating_func", "is %d, but experts of this architecture are chosen by %d (1 is softmax, 2 is sigmoid, 3 is softmax over the chosen ones)", g, gating)
	}
}

// sparse adds which layers have no experts, by their tensors, and the width of those.
func (k *keys) sparse(c object) {
	var dense []int
	for i := range c["num_hidden_layers"].(int) {
		if !k.tensor("blk.%d.ffn_gate_inp.weight", i) {
			dense = append(dense, i)
		}
	}
	if len(dense) > 0 {
		c["mlp_only_layers"] = dense
		c["intermediate_size"] = k.int("feed_forward_length")
	}
}

// qwen3MoE adds what is its own. Its files have no key that says whether weights are divided by
// their sum: all readers do so.
func qwen3MoE(k *keys, c object) {
	k.heads(c)
	k.experts(c, "num_experts", "moe_intermediate_size", 1)
	k.refuse("expert_weights_scale", 1)
	c["norm_topk_prob"] = k.boolOr("expert_weights_norm", true)
	k.sparse(c)
}

// hybrid adds what qwen3_next and qwen3_5_moe have: linear attention in the layers with its
// tensors, and a shared expert.
func hybrid(k *keys, c object) {
	qwen3MoE(k, c)
	c["shared_expert_intermediate_size"] = k.int("expert_shared_feed_forward_length")
	c["linear_conv_kernel_dim"] = k.int("ssm.conv_kernel")
	c["linear_key_head_dim"] = k.int("ssm.state_size")
	c["linear_num_key_heads"] = k.int("ssm.group_count")
	values, width := k.int("ssm.time_step_rank"), k.int("ssm.inner_size")
	c["linear_num_value_heads"] = values
	c["linear_value_head_dim"] = width / max(values, 1)
	if values > 0 && width%values != 0 {
		k.fail("ssm.inner_size", "%d channels do not divide among %d heads", width, values)
	}
	types := make([]string, c["num_hidden_layers"].(int))
	for i := range types {
		types[i] = model.FullAttention.String()
		if k.tensor("blk.%d.ssm_a", i) {
			types[i] = model.LinearAttention.String()
		}
	}
	c["layer_types"] = types
}

// sigmoidRouter adds a router with a correction bias, as deepseek_v3 has it.
func (k *keys) sigmoidRouter(c object) {
	k.experts(c, "n_routed_experts", "moe_intermediate_size", 2)
	c["n_shared_experts"] = k.intOr("expert_shared_count", 0)
	c["n_group"] = max(1, k.intOr("expert_group_count", 1))
	c["topk_group"] = max(1, k.intOr("expert_group_used_count", 1))
	c["norm_topk_prob"] = k.boolOr("expert_weights_norm", false)
	c["routed_scaling_factor"] = decimal(1)
	if x := k.floatOr("expert_weights_scale", 0); x != 0 {
		c["routed_scaling_factor"] = decimal(x)
	}
	dense := k.intOr("leading_dense_block_count", 0)
	c["first_k_dense_replace"] = dense
	if dense > 0 {
		c["intermediate_size"] = k.int("feed_forward_length")
	}
	if layers := c["num_hidden_layers"].(int); dense < layers && !k.tensor("blk.%d.exp_probs_b.bias", layers-1) {
		c["topk_method"] = "greedy" // refused by name
	}
}

// deepseek adds latent attention, in the form of files of today or of old ones. Only mscale_all_dim
// of the two temperatures is in files, since published models have the same for both.
func deepseek(k *keys, c object) {
	k.sigmoidRouter(c)
	rotary := k.int("rope.dimension_count")
	if n := k.intOr("attention.q_lora_rank", 0); n > 0 {
		c["q_lora_rank"] = n
	}
	c["kv_lora_rank"] = k.int("attention.kv_lora_rank")
	head, value := "attention.key_length", "attention.value_length"
	if k.has(head + "_mla") {
		head, value = head+"_mla", value+"_mla"
	}
	c["qk_rope_head_dim"] = rotary
	c["qk_nope_head_dim"] = k.int(head) - rotary
	c["v_head_dim"] = k.int(value)
	y, ok := c["rope_scaling"].(object)
	if !ok {
		return
	}
	if k.has("rope.scaling.yarn_log_multiplier") {
		// a tenth, in the file: the decimals are shifted before they are rounded again
		x, _ := k.float("rope.scaling.yarn_log_multiplier").Float64()
		y["mscale"], y["mscale_all_dim"] = decimal(10*x), decimal(10*x)
	} else {
		y["attention_factor"] = 1
	}
}

// glm4MoE adds what is its own. Whether it has biases and norms, its tensors tell.
func glm4MoE(k *keys, c object) {
	k.heads(c)
	k.sigmoidRouter(c)
	c["attention_bias"] = k.tensor("blk.0.attn_q.bias")
	c["use_qk_norm"] = k.tensor("blk.0.attn_q_norm.weight")
}

// miniMaxM2 adds what is its own.
func miniMaxM2(k *keys, c object) {
	k.heads(c)
	k.experts(c, "num_local_experts", "intermediate_size", 2)
	k.refuse("expert_weights_scale", 1)
	c["scoring_func"] = "sigmoid"
	c["use_qk_norm"] = k.tensor("blk.0.attn_q_norm.weight")
	c["use_routing_bias"] = k.tensor("blk.0.exp_probs_b.bias")
}
