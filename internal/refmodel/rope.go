package refmodel

import (
	"math"

	"github.com/moeflux/moeflux-actor/model"
)

// rotary rotates pairs of channels by an angle that grows with the position.
type rotary struct {
	freq        []float64 // [R/2], radians a position
	mult        float64   // of cosine and sine
	interleaved bool      // channels 2i and 2i+1 are a pair, not i and i+R/2
}

// newRotary returns the rotary embedding of r channels.
func newRotary(r int, theta float64, y *model.YaRN, interleaved bool) rotary {
	out := rotary{mult: 1, interleaved: interleaved}
	if y == nil {
		for i := range r / 2 {
			out.freq = append(out.freq, math.Pow(theta, -2*float64(i)/float64(r)))
		}
		return out
	}
	out.freq = yarnFrequencies(r, theta, y)
	out.mult = yarnMultiplier(y)
	return out
}

// yarnFrequencies returns theta^(-2i/r) for fast pairs, that divided by the factor for slow ones,
// and a mixture between the two.
func yarnFrequencies(r int, theta float64, y *model.YaRN) []float64 {
	low, high := yarnBorders(r, theta, y)
	var out []float64
	for i := range r / 2 {
		kept := 1 / math.Pow(theta, 2*float64(i)/float64(r))
		divided := 1 / (y.Factor * math.Pow(theta, 2*float64(i)/float64(r)))
		share := (float64(i) - low) / (high - low)
		if share < 0 {
			share = 0
		}
		if share > 1 {
			share = 1
		}
		out = append(out, divided*share+kept*(1-share))
	}
	return out
}

// yarnBorders returns the pairs that make beta_fast and beta_slow turns in the original context.
func yarnBorders(r int, theta float64, y *model.YaRN) (low, high float64) {
	pair := func(turns float64) float64 {
		return float64(r) * math.Log(float64(y.OriginalMaxPositionEmbeddings)/(turns*2*math.Pi)) / (2 * math.Log(theta))
	}
	low, high = pair(y.BetaFast), pair(y.BetaSlow)
	if y.Truncate {
		low, high = math.Floor(low), math.Ceil(high)
	}
	if low < 0 {
		low = 0
	}
	if high > float64(r-1) {
		high = float64(r - 1)
	}
	if low == high {
		high += 0.001
	}
	return low, high
}

// yarnTemperature is m(s, a).
func yarnTemperature(s, a float64) float64 {
	if s <= 1 {
		return 1
	}
	return 0.1*a*math.Log(s) + 1
}

// yarnMultiplier returns the multiplier that the configuration gives, or else m(s, mscale) / m(s,
// mscale_all_dim), where missing keys count as 1 and 0.
func yarnMultiplier(y *model.YaRN) float64 {
	if y.AttentionFactor != 0 {
		return y.AttentionFactor
	}
	mscale := y.MScale
	if mscale == 0 {
		mscale = 1
	}
	return yarnTemperature(y.Factor, mscale) / yarnTemperature(y.Factor, y.MScaleAllDim)
}

// turn returns x with its first R channels rotated for position p, and the others unchanged.
func (r rotary) turn(x []float64, p int) []float64 {
	out := append([]float64(nil), x...)
	half := len(r.freq)
	for i, f := range r.freq {
		c, s := math.Cos(float64(p)*f)*r.mult, math.Sin(float64(p)*f)*r.mult
		a, b := i, i+half
		if r.interleaved {
			a, b = 2*i, 2*i+1
		}
		out[a] = x[a]*c - x[b]*s
		out[b] = x[a]*s + x[b]*c
	}
	return out
}

// llama3Frequency keeps a frequency whose wave is short against the original context, divides one
// whose wave is long, and blends between.
func llama3Frequency(f float64, l *model.Llama3) float64 {
	wave := 2 * math.Pi / f
	context := float64(l.OriginalMaxPositionEmbeddings)
	switch {
	case wave < context/l.HighFreqFactor:
		return f
	case wave > context/l.LowFreqFactor:
		return f / l.Factor
	}
	blend := (context/wave - l.LowFreqFactor) / (l.HighFreqFactor - l.LowFreqFactor)
	return (1-blend)*f/l.Factor + blend*f
}
