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
}

func newRope(m *model.Config) rope {
	r := rope{channels: m.RotaryDim, freq: make([]float64, m.RotaryDim/2)}
	for i := range r.freq {
		r.freq[i] = math.Pow(m.RopeTheta, -2*float64(i)/float64(m.RotaryDim))
	}
	return r
}

// table appends cosine and sine of every row's angles, [rows, channels/2, 2].
func (r *rope) table(dst []float32, rows []stages.Row) []float32 {
	for i := range rows {
		for _, f := range r.freq {
			sin, cos := math.Sincos(float64(rows[i].Pos) * f)
			dst = append(dst, float32(cos), float32(sin))
		}
	}
	return dst
}
