package ggufmodel

// hunyuanMoE adds what is its own. Keys and names are those of conversion/hunyuan.py and
// src/models/hunyuan-moe.cpp of llama.cpp: the base of rotary frequencies is the stretched one, and
// weights of experts are divided by their sum, without a key.
func hunyuanMoE(k *keys, c object) {
	k.heads(c)
	if n := k.intOr("rope.dimension_count", k.int("attention.key_length")); n != c["head_dim"] {
		k.fail("rope.dimension_count", "is %d of %d channels: heads of this architecture are rotated whole", n, c["head_dim"])
	}
	delete(c, "rotary_dim")
	k.experts(c, "num_experts", "moe_intermediate_size", 1)
	k.refuse("expert_weights_scale", 1)
	k.refuse("leading_dense_block_count")
	c["moe_topk"] = c["num_experts_per_tok"]
	delete(c, "num_experts_per_tok")
	c["attention_bias"] = k.tensor("blk.0.attn_q.bias")
	c["use_qk_norm"] = k.tensor("blk.0.attn_q_norm.weight")
	c["intermediate_size"] = k.intOr("expert_shared_feed_forward_length", k.int("feed_forward_length"))
	c["use_mixed_mlp_moe"] = k.tensor("blk.0.ffn_gate_shexp.weight")
}
