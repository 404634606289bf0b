package dispatch

import (
	"math"

	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// rope makes the rotary table. Angles are computed in float64 and rounded once. Those of the last
// few thousand positions are kept, because texts that are read or decoded together mostly share
// them, and the device sits idle until the table of a step's rows is ready.
type rope struct {
	channels int       // that are rotated
	freq     []float64 // [channels/2]
	factor   float64   // of cosine and sine
	growth   *model.QueryGrowth
	still    int // channels of a query that are not rotated, before those that are

	turns []float32 // [kept, channels/2, 2]: those of position p at p % kept
	of    []int32   // [kept]: the position plus one; 0: empty
}

// turnsKept limits the number of positions whose angles are kept: 2 MiB with 128 channels.
const turnsKept = 4096

// newRope makes the table for layers with a mixer. All texts together have that many positions.
func newRope(m *model.Config, mixer model.Mixer, positions int) rope {
	kept := min(max(1, positions), turnsKept)
	a := m.Attention(mixer)
	return rope{
		channels: a.RotaryDim, freq: a.RopeFrequencies(), factor: a.RopeMultiplier(), growth: m.QueryGrowth, still: m.QKNopeHeadDim,
		turns: make([]float32, kept*a.RotaryDim), of: make([]int32, kept),
	}
}

// windowRotary returns the channels of a row in the table of layers with a window; 0 if there are
// none, or if they turn as others do.
func windowRotary(m *model.Config) int {
	full, window := m.Attention(model.FullAttention), m.Attention(model.WindowAttention)
	if m.Sliding == nil || full.SameRope(&window) {
		return 0
	}
	return window.RotaryDim
}

// table appends cosine and sine of every row's angles, [rows, channels/2, 2].
func (r *rope) table(dst []float32, rows []stages.Row) []float32 {
	for i := range rows {
		dst = append(dst, r.turn(rows[i].Pos)...)
	}
	return dst
}

// turn returns cosine and sine of a position's angles, [channels/2, 2], valid until the next call.
func (r *rope) turn(pos int32) []float32 {
	at := int(pos) % len(r.of)
	row := r.turns[at*r.channels:][:r.channels]
	if r.of[at] == pos+1 {
		return row
	}
	for i, f := range r.freq {
		sin, cos := math.Sincos(float64(pos) * f)
		row[2*i], row[2*i+1] = float32(cos*r.factor), float32(sin*r.factor)
	}
	r.of[at] = pos + 1
	return row
}

// queryTable appends what turns and scales whole queries that grow with their position: pairs that
// are not rotated have the factor as cosine, [rows, head/2, 2].
func (r *rope) queryTable(dst []float32, rows []stages.Row) []float32 {
	for i := range rows {
		grown := r.growth.Factor(int(rows[i].Pos))
		for range r.still / 2 {
			dst = append(dst, float32(grown), 0)
		}
		for _, f := range r.freq {
			sin, cos := math.Sincos(float64(rows[i].Pos) * f)
			dst = append(dst, float32(cos*r.factor*grown), float32(sin*r.factor*grown))
		}
	}
	return dst
}

// queryRotary returns the channels of a row in queryTable; 0 if the model needs none.
func queryRotary(m *model.Config) int {
	if m.QueryGrowth == nil {
		return 0
	}
	return m.HeadDim
}
