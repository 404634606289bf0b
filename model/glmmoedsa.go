package model

// GLMMoEDSA is GLM-5.
const GLMMoEDSA Arch = "glm_moe_dsa"

var glmMoEDSA = family{
	arch: GLMMoEDSA, gguf: "glm-dsa", toolCalls: "glm",
	keys:       deepseekKeys,
	defaults:   defaults{normTopK: true},
	checkpoint: Checkpoint{FloatRouter: true},
	parse:      parseGLMMoEDSA,
}

// parseGLMMoEDSA reads glm_moe_dsa: deepseek_v3, with an indexer in every layer, or in some of
// them, whose choice the layers above share.
func parseGLMMoEDSA(r *reader, f *family, c *Config) {
	parseDeepseekV3(r, f, c)
	parseIndexer(r, c, true)
	own := 0
	for i, kind := range parseIndexerTypes(r, c) {
		if i < len(c.Layers) {
			c.Layers[i].Indexer, c.Layers[i].IndexerIndex = kind, own
		}
		if kind == OwnIndexer {
			own++
		}
	}
}

// parseIndexerTypes returns which layers have an indexer of their own: those that indexer_types
// calls full; without that list those of an F in index_topk_pattern; without both the first
// index_skip_topk_offset layers and every index_topk_freq-th from there on.
func parseIndexerTypes(r *reader, c *Config) []Indexer {
	out := make([]Indexer, c.NumHiddenLayers)
	switch {
	case r.has("indexer_types"):
		raw, _ := r.get("indexer_types")
		names, _ := r.strings("indexer_types", raw)
		setIndexers(r, "indexer_types", out, names, "full", "shared")
	case r.has("index_topk_pattern"):
		raw, _ := r.get("index_topk_pattern")
		pattern, _ := r.string("index_topk_pattern", raw)
		letters := make([]string, 0, len(pattern))
		for _, l := range pattern {
			letters = append(letters, string(l))
		}
		setIndexers(r, "index_topk_pattern", out, letters, "F", "S")
	default:
		every, offset := r.intOr("index_topk_freq", 1, maxLayers, 1), r.intOr("index_skip_topk_offset", 0, maxLayers, 2)
		for i := range out {
			out[i] = LowerIndexer
			if max(i-offset+1, 0)%max(every, 1) == 0 {
				out[i] = OwnIndexer
			}
		}
	}
	if len(out) > 0 && out[0] == LowerIndexer {
		r.fail("indexer_types", "layer 0 shares the choice of a layer below it, and there is none")
	}
	return out
}

// setIndexers fills dst from a list under key, which calls layers full or shared.
func setIndexers(r *reader, key string, dst []Indexer, names []string, full, shared string) {
	if len(names) < len(dst) { // more are those of draft layers
		r.fail(key, "%d entries for num_hidden_layers %d", len(names), len(dst))
		return
	}
	for i := range dst {
		switch names[i] {
		case full:
			dst[i] = OwnIndexer
		case shared:
			dst[i] = LowerIndexer
		default:
			r.fail(key, "layer %d is %q; known are %s and %s", i, names[i], full, shared)
			return
		}
	}
}
