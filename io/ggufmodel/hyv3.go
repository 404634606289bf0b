package ggufmodel

// hyV3 adds what is its own. Keys and names are those of conversion/hunyuan.py and
// src/models/hy-v3.cpp of llama.cpp; the router's correction bias has no ending in these files.
func hyV3(k *keys, c object) {
	k.heads(c)
	k.experts(c, "num_experts", "moe_intermediate_size", 2)
	c["moe_router_use_sigmoid"] = true
	c["route_norm"] = k.boolOr("expert_weights_norm", false)
	c["router_scaling_factor"] = decimal(1)
	if x := k.floatOr("expert_weights_scale", 0); x != 0 {
		c["router_scaling_factor"] = decimal(x)
	}
	c["qk_norm"] = k.tensor("blk.0.attn_q_norm.weight")
	layers := c["num_hidden_layers"].(int)
	types := make([]string, layers)
	for i := range types {
		types[i] = "sparse"
		if !k.tensor("blk.%d.ffn_gate_inp.weight", i) {
			types[i] = "dense"
			c["intermediate_size"] = k.int("feed_forward_length")
		}
	}
	c["mlp_layer_types"] = types
	c["moe_router_enable_expert_bias"] = k.tensor("blk.%d.exp_probs_b", layers-1) || k.tensor("blk.%d.exp_probs_b.bias", layers-1)
	width, shared := k.int("expert_feed_forward_length"), k.intOr("expert_shared_feed_forward_length", 0)
	if width > 0 && shared%width != 0 {
		k.fail("expert_shared_feed_forward_length", "%d is not a multiple of expert_feed_forward_length %d", shared, width)
	}
	c["num_shared_experts"] = shared / max(width, 1)
}
