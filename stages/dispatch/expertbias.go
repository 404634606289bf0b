package dispatch

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
)

// expertBiases are the biases of all experts of a layer, on the device. They stay there, unlike the
// matrices: they are a 400th of these, and every record keeps its layout, in packs and in files of
// other programs, where biases are tensors of their own.
type expertBiases struct {
	gate, up, down gpu.View // [experts, rows of the matrix]
}

func (x *expertBiases) bind(b *binder, m *model.Config, prefix string) {
	b.vector(&x.gate, prefix+"gate_proj.bias", m.NumExperts*m.MoEIntermediateSize)
	b.vector(&x.up, prefix+"up_proj.bias", m.NumExperts*m.MoEIntermediateSize)
	b.vector(&x.down, prefix+"down_proj.bias", m.NumExperts*m.HiddenSize)
}

// add gives an expert its biases, if there are any.
func (x *expertBiases) add(e *gpu.Expert, expert int) {
	if x.gate.IsZero() {
		return
	}
	e.GateBias, e.UpBias = x.gate.Floats(expert*e.Gate.Rows), x.up.Floats(expert*e.Up.Rows)
	e.DownBias = x.down.Floats(expert * e.Down.Rows)
}
