package model

import "math"

// Sliding is how layers with a window differ from those of full attention; heads are as wide.
type Sliding struct {
	Window            int // positions that a row attends to at most, its own among them
	NumAttentionHeads int
	NumKeyValueHeads  int
	RotaryDim         int
	RopeTheta         float64
	YaRN              *YaRN // nil: plain frequencies
	Sinks             bool
}

// Attention is a layer of softmax attention, with a window or without.
type Attention struct {
	Heads, KVHeads    int
	HeadDim, ValueDim int // channels of a query and key, and of a value
	RotaryDim         int
	RopeTheta         float64
	YaRN              *YaRN // nil: plain frequencies
	Llama3            *Llama3
	Sinks             bool // each head has a score that counts in the softmax and has no value
	Window            int  // positions that a row attends to at most; 0: all
}

// KeyDim returns the channels of a position's keys.
func (a *Attention) KeyDim() int { return a.KVHeads * a.HeadDim }

// ValuesDim returns the channels of a position's values.
func (a *Attention) ValuesDim() int { return a.KVHeads * a.ValueDim }

// Attention returns what layers of full attention, or of those with a window, are.
func (c *Config) Attention(m Mixer) Attention {
	a := Attention{Heads: c.NumAttentionHeads, KVHeads: c.NumKeyValueHeads, HeadDim: c.HeadDim, ValueDim: c.HeadDim,
		RotaryDim: c.RotaryDim, RopeTheta: c.RopeTheta, YaRN: c.YaRN, Llama3: c.Llama3, Sinks: c.AttentionSinks}
	if c.VHeadDim > 0 {
		a.ValueDim = c.VHeadDim
	}
	if s := c.Sliding; m == WindowAttention && s != nil {
		a.Heads, a.KVHeads, a.Sinks, a.Window = s.NumAttentionHeads, s.NumKeyValueHeads, s.Sinks, s.Window
		a.RotaryDim, a.RopeTheta, a.YaRN, a.Llama3 = s.RotaryDim, s.RopeTheta, s.YaRN, nil
	}
	return a
}

// SameRope reports whether two layers turn queries and keys alike.
func (a *Attention) SameRope(b *Attention) bool {
	return a.RotaryDim == b.RotaryDim && a.RopeTheta == b.RopeTheta && a.YaRN == b.YaRN && a.Llama3 == b.Llama3
}

// RopeFrequencies returns the angle per position of each pair of rotated channels, [RotaryDim/2].
func (a *Attention) RopeFrequencies() []float64 {
	f := make([]float64, a.RotaryDim/2)
	for i := range f {
		f[i] = math.Pow(a.RopeTheta, -2*float64(i)/float64(a.RotaryDim))
	}
	if a.Llama3 != nil {
		for i := range f {
			f[i] = a.Llama3.stretch(f[i])
		}
	}
	if a.YaRN == nil {
		return f
	}
	low, high := a.YaRN.ramp(a.RotaryDim, a.RopeTheta)
	for i := range f {
		r := min(max((float64(i)-low)/(high-low), 0), 1)
		f[i] = f[i]/a.YaRN.Factor*r + f[i]*(1-r)
	}
	return f
}

// slidingAttention is what layer_types calls attention with a window.
const slidingAttention = "sliding_attention"

// parseSliding returns the mixers of a model whose layers have a window or not, as layer_types
// lists them; without that list those have one that slides says. With such layers it reads the
// window, and takes all else from full attention.
func parseSliding(r *reader, c *Config, slides func(layer int) bool) []Mixer {
	var names []string
	raw, listed := r.get("layer_types")
	if listed {
		names, _ = r.strings("layer_types", raw)
		if len(names) != c.NumHiddenLayers && c.NumHiddenLayers > 0 {
			r.fail("layer_types", "%d entries for num_hidden_layers %d", len(names), c.NumHiddenLayers)
			return nil
		}
	}
	mixers := uniform(c, FullAttention)
	for i := range mixers {
		switch {
		case listed && names[i] != slidingAttention && names[i] != FullAttention.String():
			r.fail("layer_types", "layer %d is %q; known are %s and %s", i, names[i], slidingAttention, FullAttention)
			return nil
		case listed && names[i] == slidingAttention || !listed && slides(i):
			mixers[i] = WindowAttention
		}
	}
	c.slide(r, mixers)
	return mixers
}

// slide reads the window, if layers have one, and takes all else from full attention.
func (c *Config) slide(r *reader, mixers []Mixer) {
	for _, m := range mixers {
		if m == WindowAttention {
			c.Sliding = &Sliding{Window: r.int("sliding_window", 1, maxPositions), NumAttentionHeads: c.NumAttentionHeads,
				NumKeyValueHeads: c.NumKeyValueHeads, RotaryDim: c.RotaryDim, RopeTheta: c.RopeTheta, YaRN: c.YaRN, Sinks: c.AttentionSinks}
			return
		}
	}
}
