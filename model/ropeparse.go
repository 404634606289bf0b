package model

// parsePartialRope reads the rotary embedding of softmax attention, which may leave channels of a
// head as they are: rotary_dim says how many it rotates, or else partial_rotary_factor their part
// of head_dim.
func parsePartialRope(r *reader, f *family, c *Config) {
	pick := parseRope(r, c)
	if p := pick(growthKey); p.has(growthKey) {
		p.fail(growthKey, "queries that grow with their position are supported in latent attention alone")
	}
	if r.has("rotary_dim") {
		c.RotaryDim = r.int("rotary_dim", 2, maxHeadDim)
		if c.RotaryDim%2 != 0 || c.HeadDim > 0 && c.RotaryDim > c.HeadDim {
			r.fail("rotary_dim", "%d rotary channels for head_dim %d: must be even and at most that", c.RotaryDim, c.HeadDim)
		}
		return
	}
	factor := f.defaults.rotaryFactor
	if p := pick("partial_rotary_factor"); p.has("partial_rotary_factor") {
		factor = p.float("partial_rotary_factor", 0, 1)
	}
	c.RotaryDim = int(float64(c.HeadDim) * factor)
	if c.HeadDim > 0 && factor > 0 && (c.RotaryDim < 2 || c.RotaryDim%2 != 0) {
		r.fail("partial_rotary_factor", "%v of head_dim %d gives %d rotary channels: must be even and above 0",
			factor, c.HeadDim, c.RotaryDim)
	}
}

// parseRope reads base and scaling of the rotary frequencies from rope_parameters, its older name
// rope_scaling, or flat keys. Values in the object win; pick returns the reader that has a key.
// mrope sections change nothing for text, whose three positions are equal.
func parseRope(r *reader, c *Config) (pick func(key string) *reader) {
	sub, older := r.object("rope_parameters"), r.object("rope_scaling")
	if sub == nil {
		sub, older = older, nil
	}
	pick = func(key string) *reader {
		if sub != nil && sub.has(key) {
			return sub
		}
		return r
	}
	c.RopeTheta = pick("rope_theta").float("rope_theta", 1, 1e12)
	if sub == nil {
		return pick
	}
	kind, ok := ropeKind(sub)
	if older != nil {
		// Both may be there in a file that was written for two readers; then they say the same.
		if k, ok2 := ropeKind(older); ok && ok2 && k != kind {
			older.fail("rope_type", "%q, but rope_parameters.rope_type is %q", k, kind)
		}
	}
	if ok && kind == "yarn" {
		c.YaRN = parseYaRN(sub, c)
	}
	return pick
}

// ropeKind returns the frequency scheme, "default" or "yarn"; ok is false, and an error gathered,
// if it is another.
func ropeKind(r *reader) (kind string, ok bool) {
	kind, ok = "default", true
	for _, key := range []string{"type", "rope_type"} { // the second is the newer name and wins
		raw, there := r.get(key)
		if !there {
			continue
		}
		s, isString := r.string(key, raw)
		switch {
		case !isString:
			ok = false
		// what older files call the plain frequencies with position sections
		case s == "default" || s == "mrope":
			kind = "default"
		case s == "yarn":
			kind = s
		default:
			r.fail(key, "%q is not supported, only \"default\" and \"yarn\"", s)
			ok = false
		}
	}
	return kind, ok
}

// parseYaRN reads the scaling of long contexts.
func parseYaRN(r *reader, c *Config) *YaRN {
	y := &YaRN{
		Factor:                        r.float("factor", 0, 1e6),
		OriginalMaxPositionEmbeddings: r.intOr("original_max_position_embeddings", 1, maxPositions, c.MaxPositionEmbeddings),
		BetaFast:                      r.floatOr("beta_fast", 0, 1e6, 32),
		BetaSlow:                      r.floatOr("beta_slow", 0, 1e6, 1),
		MScale:                        r.floatOr("mscale", -1, 1e3, 0),
		MScaleAllDim:                  r.floatOr("mscale_all_dim", -1, 1e3, 0),
		AttentionFactor:               r.floatOr("attention_factor", 0, 1e3, 0),
		Truncate:                      r.bool("truncate", true),
	}
	for _, m := range []struct {
		key   string
		value float64
	}{{"mscale", y.MScale}, {"mscale_all_dim", y.MScaleAllDim}} {
		if m.value < 0 {
			r.fail(m.key, "%v is negative", m.value)
		}
	}
	if y.Factor > 0 && y.Factor < 1 {
		r.fail("factor", "%v is below 1: it would shorten the context", y.Factor)
	}
	if y.BetaFast < y.BetaSlow {
		r.fail("beta_fast", "%v is below beta_slow %v", y.BetaFast, y.BetaSlow)
	}
	return y
}
