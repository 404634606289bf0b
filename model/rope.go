package model

import "math"

// YaRN stretches rotary frequencies to a context longer than the one trained with.
type YaRN struct {
	Factor                        float64
	OriginalMaxPositionEmbeddings int
	BetaFast, BetaSlow            float64
	MScale, MScaleAllDim          float64 // 0: not given
	// what cosine and sine are multiplied by; 0: as the two above say
	AttentionFactor float64
	Truncate        bool // round the borders of the ramp to whole channels
}

// RopeFrequencies returns the angle per position of each pair of rotated channels, [RotaryDim/2],
// of layers without a window.
func (c *Config) RopeFrequencies() []float64 {
	a := c.Attention(FullAttention)
	return a.RopeFrequencies()
}

// RopeMultiplier returns what cosine and sine are multiplied by in layers without a window.
func (c *Config) RopeMultiplier() float64 {
	a := c.Attention(FullAttention)
	return a.RopeMultiplier()
}

// ramp returns between which pairs the frequencies change from kept to divided.
func (y *YaRN) ramp(rotary int, theta float64) (low, high float64) {
	at := func(turns float64) float64 {
		return float64(rotary) * math.Log(float64(y.OriginalMaxPositionEmbeddings)/(turns*2*math.Pi)) / (2 * math.Log(theta))
	}
	low, high = at(y.BetaFast), at(y.BetaSlow)
	if y.Truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	low, high = max(low, 0), min(high, float64(rotary-1))
	if low == high {
		high += 0.001
	}
	return low, high
}

// mscale is the attention temperature for a factor and one of the two mscale keys.
func (y *YaRN) mscale(key float64) float64 {
	if y.Factor <= 1 {
		return 1
	}
	return 0.1*key*math.Log(y.Factor) + 1
}

// RopeMultiplier returns what cosine and sine are multiplied by: AttentionFactor, or the ratio of
// the temperatures of the two mscale keys, of which MScale counts as 1 where it is not given.
func (a *Attention) RopeMultiplier() float64 {
	y := a.YaRN
	switch {
	case y == nil:
		return 1
	case y.AttentionFactor != 0:
		return y.AttentionFactor
	case y.MScale == 0:
		return y.mscale(1) / y.mscale(y.MScaleAllDim)
	default:
		return y.mscale(y.MScale) / y.mscale(y.MScaleAllDim)
	}
}

// AttentionScale returns what scores are multiplied by before the softmax, of full attention or, in
// a model that has it, of latent attention.
func (c *Config) AttentionScale() float64 {
	if c.Count(LatentAttention) == 0 {
		return 1 / math.Sqrt(float64(c.HeadDim))
	}
	s := 1 / math.Sqrt(float64(c.QKNopeHeadDim+c.QKRopeHeadDim))
	if y := c.YaRN; y != nil && y.MScaleAllDim != 0 {
		s *= y.mscale(y.MScaleAllDim) * y.mscale(y.MScaleAllDim)
	}
	return s
}

// Llama3 stretches the slow ones of the rotary frequencies, and leaves cosine and sine as they are.
type Llama3 struct {
	Factor                        float64
	OriginalMaxPositionEmbeddings int
	LowFreqFactor, HighFreqFactor float64
}

// stretch returns a frequency: kept where it makes HighFreqFactor turns in the original context,
// divided by Factor where it makes LowFreqFactor, and a mixture between.
func (l *Llama3) stretch(f float64) float64 {
	turns := float64(l.OriginalMaxPositionEmbeddings) * f / (2 * math.Pi)
	t := min(max((turns-l.LowFreqFactor)/(l.HighFreqFactor-l.LowFreqFactor), 0), 1)
	return f * (t + (1-t)/l.Factor)
}

// QueryGrowth multiplies rotated queries by a factor that grows with their position.
type QueryGrowth struct {
	Beta  float64
	Every int // positions
}

// Factor returns 1 + Beta·ln(1 + floor(pos/Every)).
func (g *QueryGrowth) Factor(pos int) float64 {
	return 1 + g.Beta*math.Log1p(float64(pos/g.Every))
}

// LatentNormEps is the epsilon of the norms inside latent attention and its indexer, whatever
// rms_norm_eps says.
const LatentNormEps = 1e-6
