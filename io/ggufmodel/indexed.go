package ggufmodel

// deepseek32 adds to latent attention an indexer in every layer. Keys and names are those of
// conversion/deepseek.py and src/models/deepseek32.cpp of llama.cpp.
func deepseek32(k *keys, c object) {
	deepseek(k, c)
	k.indexer(c)
}

// glmDSA adds an indexer to latent attention, in layers that have one; the others share the choice
// of one below. Keys and names are those of conversion/glm.py and src/models/glm-dsa.cpp of
// llama.cpp. Older files do not say which layers have one, and newer ones may leave that out: then
// their tensors tell.
func glmDSA(k *keys, c object) {
	deepseek(k, c)
	k.indexer(c)
	types := make([]string, c["num_hidden_layers"].(int))
	own := k.perLayer("attention.indexer.types", len(types))
	for i := range types {
		types[i] = "shared"
		if own == nil && k.tensor("blk.%d.indexer.attn_q_b.weight", i) || own != nil && own[i] != 0 {
			types[i] = "full"
		}
	}
	c["indexer_types"] = types
}

// indexer adds what indexers of latent attention have in common.
func (k *keys) indexer(c object) {
	c["index_n_heads"] = k.int("attention.indexer.head_count")
	c["index_head_dim"] = k.int("attention.indexer.key_length")
	c["index_topk"] = k.int("attention.indexer.top_k")
}
