package model

import "cmp"

// parseFullAttention reads heads and rotary embedding of softmax attention.
func parseFullAttention(r *reader, f *family, c *Config) {
	c.NumAttentionHeads = r.int("num_attention_heads", 1, maxHeads)
	groups := cmp.Or(f.keys.kvHeads, "num_key_value_heads")
	c.NumKeyValueHeads = r.int(groups, 1, maxHeads)
	c.HeadDim = r.int("head_dim", 1, maxHeadDim)
	r.divides("num_attention_heads", c.NumAttentionHeads, groups, c.NumKeyValueHeads)
	parsePartialRope(r, f, c)
}

// parseLatentAttention reads multi-head latent attention.
func parseLatentAttention(r *reader, c *Config) {
	c.NumAttentionHeads = r.int("num_attention_heads", 1, maxHeads)
	// Every head has a key and a value of its own, made from the one latent vector.
	c.NumKeyValueHeads = c.NumAttentionHeads
	r.require("attention_bias", false)
	if r.has("q_lora_rank") {
		c.QLoraRank = r.int("q_lora_rank", 1, maxWidth)
	}
	c.KVLoraRank = r.int("kv_lora_rank", 1, maxWidth)
	c.QKNopeHeadDim = r.int("qk_nope_head_dim", 1, maxHeadDim)
	c.QKRopeHeadDim = r.int("qk_rope_head_dim", 2, maxHeadDim)
	c.VHeadDim = r.int("v_head_dim", 1, maxHeadDim)
	if c.QKRopeHeadDim%2 != 0 {
		r.fail("qk_rope_head_dim", "%d is odd: channels are rotated in pairs", c.QKRopeHeadDim)
	}
	c.HeadDim = c.QKNopeHeadDim + c.QKRopeHeadDim
	c.RotaryDim = c.QKRopeHeadDim
	c.RopeInterleaved = r.bool("rope_interleave", true)
	parseQueryGrowth(parseRope(r, c), c)
}

// growthKey says how much queries grow with their position.
const growthKey = "llama_4_scaling_beta"

// parseQueryGrowth reads the growth of queries from where the keys of the rotary embedding are.
func parseQueryGrowth(pick func(key string) *reader, c *Config) {
	r := pick(growthKey)
	if !r.has(growthKey) {
		return
	}
	g := &QueryGrowth{Beta: r.float(growthKey, 0, 1e3)}
	if c.YaRN != nil {
		g.Every = c.YaRN.OriginalMaxPositionEmbeddings
	} else {
		const original = "original_max_position_embeddings"
		g.Every = pick(original).int(original, 1, maxPositions)
	}
	// The engine scales channels in pairs, like those that it rotates.
	if !c.RopeInterleaved || c.QKNopeHeadDim%2 != 0 {
		r.fail(growthKey, "supported with rope_interleave and an even qk_nope_head_dim alone")
	}
	c.QueryGrowth = g
}

// parseIndexer reads the indexer of latent attention. interleaved says how it pairs the channels
// that it rotates where the configuration does not.
func parseIndexer(r *reader, c *Config, interleaved bool) {
	c.IndexNHeads = r.int("index_n_heads", 1, maxHeads)
	c.IndexHeadDim = r.int("index_head_dim", 2, maxHeadDim)
	c.IndexTopK = r.int("index_topk", 1, maxChosen)
	c.IndexerRopeInterleaved = r.bool("indexer_rope_interleave", interleaved)
	if d := c.IndexHeadDim; d > 0 && d < c.QKRopeHeadDim {
		r.fail("index_head_dim", "%d is less than the qk_rope_head_dim %d that are rotated", d, c.QKRopeHeadDim)
	}
	if c.QLoraRank == 0 {
		r.fail("q_lora_rank", "missing: the indexer reads compressed queries")
	}
}
