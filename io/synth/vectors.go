package synth

import (
	"encoding/binary"
	"math"

	"github.com/moeflux/moeflux-actor/model/quant"
)

// vector returns the content of a vector.
func (m *Model) vector(s vectorSpec) []byte {
	n := 1
	for _, d := range s.shape {
		n *= d
	}
	r, wire := m.key(s.name).stream(), wireChannels(m.cfg)
	var out []byte
	for i := range n {
		var v float64
		switch s.role {
		case hiddenNorm:
			switch {
			case i >= ballastAt && i < wire:
			case i < wire:
				v = float64(m.normWeight)
			default:
				v = float64(m.normWeight) * (0.75 + 0.5*r.float())
			}
		case otherNorm:
			v = 0.75 + 0.5*r.float()
		case convTaps:
			v = r.float() - 0.5
		case decay:
			v = 2*r.float() - 1
		case timeStep:
			v = -4 * r.float() // small steps: a long memory
		case bias:
			v = 0.25 * r.norm()
		case correction:
			v = float64(m.routers[s.layer].bias[i]) * biasStep
		}
		if s.f32 {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(v)))
		} else {
			out = binary.LittleEndian.AppendUint16(out, quant.F32ToBF16(float32(v)))
		}
	}
	return out
}
