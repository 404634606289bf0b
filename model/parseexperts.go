package model

import "cmp"

// parseExperts reads the routed experts, with a softmax router without groups unless the caller
// changes that.
func parseExperts(r *reader, f *family, c *Config) {
	c.NumExperts = r.int(f.keys.experts, 1, maxExperts)
	c.NumExpertsPerTok = r.int(cmp.Or(f.keys.picks, picksKey), 1, maxExperts)
	c.MoEIntermediateSize = r.int(f.keys.width, 1, maxWidth)
	c.NormTopKProb = r.bool("norm_topk_prob", f.defaults.normTopK)
	c.NGroup, c.TopKGroup, c.RoutedScalingFactor = 1, 1, 1
	if k, n := c.NumExpertsPerTok, c.NumExperts; k > 0 && n > 0 && k > n {
		r.fail(cmp.Or(f.keys.picks, picksKey), "%d is more than %s %d", k, f.keys.experts, n)
	}
}

// parseSigmoidRouter reads a router that scores each expert on its own and chooses by score plus
// correction bias.
func parseSigmoidRouter(r *reader, f *family, c *Config) {
	c.Scoring, c.CorrectionBias = SigmoidScores, true
	c.RoutedScalingFactor = float32(r.float("routed_scaling_factor", 1e-6, 1e6))
	c.NGroup = r.int("n_group", 1, maxExperts)
	c.TopKGroup = r.int("topk_group", 1, maxExperts)
	g, kept, n := c.NGroup, c.TopKGroup, c.NumExperts
	switch {
	case g == 0 || kept == 0 || n == 0:
	case n%g != 0:
		r.fail("n_group", "%s %d does not divide into %d groups", f.keys.experts, n, g)
	case kept > g:
		r.fail("topk_group", "%d is more than n_group %d", kept, g)
	case g > 1 && n/g < 2:
		r.fail("n_group", "%d groups of %s %d: a group is scored by its two best experts", g, f.keys.experts, n)
	case c.NumExpertsPerTok > n/g*kept:
		r.fail("num_experts_per_tok", "%d is more than the %d experts of topk_group %d groups", c.NumExpertsPerTok, n/g*kept, kept)
	}
}

// parseSharedExperts reads experts that every token uses: one SwiGLU of their common width.
func parseSharedExperts(r *reader, f *family, c *Config) {
	if n := r.intOr(f.keys.shared, 0, 64, 0); n > 0 {
		c.SharedExpert = SharedExpertUngated
		c.SharedExpertIntermediateSize = n * c.MoEIntermediateSize
	}
}
