package model

// MiniMaxM3 is MiniMax-M3, the text part.
const MiniMaxM3 Arch = "minimax_m3_vl"

var miniMaxM3 = family{
	arch: MiniMaxM3, gguf: "minimax-m3", toolCalls: "minimax3",
	keys: sizeKeys{experts: "num_local_experts", width: "intermediate_size", shared: "shared_intermediate_size",
		dense: "dense_intermediate_size"},
	activation: "swigluoai",
	defaults:   defaults{rotaryFactor: 1, normTopK: true},
	checkpoint: Checkpoint{Rename: miniMaxM2.checkpoint.Rename, FloatRouter: true, AlwaysCentred: true},
	parse:      parseMiniMaxM3,
}

// parseMiniMaxM3 reads minimax_m3_vl: softmax attention with normalised heads, in most layers to
// blocks of positions that an indexer chooses, a sigmoid router without groups, an expert shared by
// all tokens, dense layers, and bounds of all gated units. All norms are of 1+w.
func parseMiniMaxM3(r *reader, f *family, c *Config) {
	parseFullAttention(r, f, c)
	r.require("attention_bias", false)
	r.require("use_gemma_norm", true)
	r.require("use_qk_norm", true)
	r.oneOf("qk_norm_type", "per_head")
	c.QKNorm = QKNormPerHead
	parseExperts(r, f, c)
	r.oneOf("scoring_func", "sigmoid")
	c.Scoring = SigmoidScores
	c.CorrectionBias = r.bool("use_routing_bias", true)
	c.RoutedScalingFactor = float32(r.floatOr("routed_scaling_factor", 1e-6, 1e6, 1))
	if r.intOr("n_shared_experts", 0, 1, 0) == 1 {
		c.SharedExpert = SharedExpertUngated
		c.SharedExpertIntermediateSize = r.int(f.keys.shared, 1, maxWidth)
	}
	r.compose(f, c, onlyFullAttention(r, c), parseFlags(r, c, "moe_layer_freq"))
	clamp := Clamp{Limit: r.floatOr("swiglu_limit", 0, 1e6, 7), Alpha: r.floatOr("swiglu_alpha", 0, 1e3, 1.702)}
	for i := range c.Layers {
		c.Layers[i].Clamp, c.Layers[i].MLPClamp = clamp, clamp
	}
	if sparse := r.object("sparse_attention_config"); sparse != nil && sparse.bool("use_sparse_attention", true) {
		parseBlockIndexer(sparse, c)
	}
}

// parseBlockIndexer reads the indexer that chooses blocks of positions for softmax attention.
func parseBlockIndexer(r *reader, c *Config) {
	c.IndexNHeads = r.int("sparse_num_index_heads", 1, maxHeads)
	c.IndexHeadDim = r.int("sparse_index_dim", 2, maxHeadDim)
	c.IndexBlock = r.int("sparse_block_size", 1, maxChosen)
	c.IndexTopK = r.int("sparse_topk_blocks", 1, maxChosen)
	c.IndexLocal = r.int("sparse_local_block", 1, maxChosen)
	r.zero("sparse_init_block")
	r.oneOf("sparse_score_type", "max")
	if n := c.IndexNHeads; n > 0 && n != c.NumKeyValueHeads {
		r.fail("sparse_num_index_heads", "%d for num_key_value_heads %d: each chooses for one of these", n, c.NumKeyValueHeads)
	}
	if d := c.IndexHeadDim; d > 0 && d < c.RotaryDim {
		r.fail("sparse_index_dim", "%d is less than the %d channels that are rotated", d, c.RotaryDim)
	}
	if k := c.IndexTopK; k > 0 && c.IndexLocal > k {
		r.fail("sparse_local_block", "%d is more than sparse_topk_blocks %d", c.IndexLocal, k)
	}
	chooses := parseFlags(r, c, "sparse_attention_freq")
	var values []int64 // that an indexer has besides its keys: the engine has none
	if raw, ok := r.get("sparse_disable_index_value"); ok {
		values = r.ints("sparse_disable_index_value", raw)
	}
	own := 0
	for i := range c.Layers {
		if !chooses(i) {
			continue
		}
		if i < len(values) && values[i] != 1 {
			r.fail("sparse_disable_index_value", "layer %d has %d: values of an indexer are not supported", i, values[i])
			break
		}
		c.Layers[i].Indexer, c.Layers[i].IndexerIndex = OwnIndexer, own
		own++
	}
	if own == 0 {
		r.fail("sparse_attention_freq", "no layer chooses what it attends to: use_sparse_attention has to be false")
	}
}
