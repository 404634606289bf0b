package dispatch

import (
	"math"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// rope makes the rotary table. Angles are computed in float64 and rounded once.
type rope struct {
	channels int       // that are rotated
	freq     []float64 // [channels/2]
	factor   float64   // of cosine and sine
}

func newRope(m *model.Config) rope {
	return rope{channels: m.RotaryDim, freq: m.RopeFrequencies(), factor: m.RopeMultiplier()}
}

// table appends cosine and sine of every row's angles, [rows, channels/2, 2].
func (r *rope) table(dst []float32, rows []stages.Row) []float32 {
	for i := range rows {
		for _, f := range r.freq {
			sin, cos := math.Sincos(float64(rows[i].Pos) * f)
			dst = append(dst, float32(cos*r.factor), float32(sin*r.factor))
		}
	}
	return dst
}
