package ggufmodel

// miniMaxM3Names are the tensors of indexers that choose blocks of positions.
var miniMaxM3Names = map[string]string{
	"indexer.q_proj.weight": "self_attn.index_q_proj.weight", "indexer.k_proj.weight": "self_attn.index_k_proj.weight",
	"indexer.q_norm.weight": "self_attn.index_q_norm.weight", "indexer.k_norm.weight": "self_attn.index_k_norm.weight",
}

// miniMaxM3 adds what is its own. Keys and names are those of conversion/minimax.py and
// src/models/minimax-m3.cpp of llama.cpp. Files do not say how gates are bounded: the published
// model is the only one. Those without indexers, which were made before these were known, attend
// to all positions, as the model does not, and are refused for want of the keys.
func miniMaxM3(k *keys, c object) {
	k.heads(c)
	c["hidden_act"] = "swigluoai"
	k.experts(c, "num_local_experts", "intermediate_size", 2)
	if !k.boolOr("expert_weights_norm", true) {
		k.fail("expert_weights_norm", "is false, which is not supported in this architecture")
	}
	c["routed_scaling_factor"] = decimal(1)
	if x := k.floatOr("expert_weights_scale", 0); x != 0 {
		c["routed_scaling_factor"] = decimal(x)
	}
	shared := k.intOr("expert_shared_count", 0)
	c["n_shared_experts"] = shared
	c["shared_intermediate_size"] = shared * k.int("expert_feed_forward_length")
	c["use_routing_bias"] = k.tensor("blk.%d.exp_probs_b.bias", c["num_hidden_layers"].(int)-1)
	var experts, chosen []int
	for i := range c["num_hidden_layers"].(int) {
		experts, chosen = append(experts, 0), append(chosen, 0)
		if k.tensor("blk.%d.ffn_gate_inp.weight", i) {
			experts[i] = 1
		} else if w := k.rows("blk.%d.ffn_gate.weight", i); w > 0 {
			c["dense_intermediate_size"] = w
		}
		if k.tensor("blk.%d.indexer.q_proj.weight", i) {
			chosen[i] = 1
		}
	}
	c["moe_layer_freq"] = experts
	c["sparse_attention_config"] = object{
		"sparse_attention_freq": chosen, "sparse_num_index_heads": k.int("attention.indexer.head_count"),
		"sparse_index_dim": k.int("attention.indexer.key_length"), "sparse_topk_blocks": k.int("attention.indexer.top_k"),
		"sparse_block_size": k.int("attention.indexer.block_size"), "sparse_local_block": k.int("attention.indexer.local_blocks"),
	}
}
