package dispatch

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
)

// mlp is a SwiGLU that every row uses: l.normed to l.shared.
type mlp struct {
	gate, up, down gpu.Matrix
	clamp          gpu.Clamp
}

func clampOf(c model.Clamp) gpu.Clamp {
	return gpu.Clamp{Limit: float32(c.Limit), Alpha: float32(c.Alpha)}
}

func newMLP(b *binder, prefix string, hidden, width int) *mlp {
	return &mlp{
		gate: b.matrix(prefix+"gate_proj", width, hidden),
		up:   b.matrix(prefix+"up_proj", width, hidden),
		down: b.matrix(prefix+"down_proj", hidden, width),
	}
}

func (x *mlp) encode(cmd *gpu.Commands, l *lane) {
	rows, width := l.rows, x.gate.Rows
	gate := l.sharedScratch
	up := gate.Floats(rows * width)
	gpu.Encode(cmd, gpu.MatMul{W: x.gate, X: l.normed, Y: gate, Rows: rows})
	gpu.Encode(cmd, gpu.MatMul{W: x.up, X: l.normed, Y: up, Rows: rows})
	gpu.Encode(cmd, gpu.SwiGLU{Gate: gate, Up: up, Y: gate, Rows: rows, Dim: width, Clamp: x.clamp})
	gpu.Encode(cmd, gpu.MatMul{W: x.down, X: gate, Y: l.shared, Rows: rows})
}

// sharedExpert is the expert that every row uses besides the routed ones, perhaps with a gate of
// its own, whose score goes to l.sharedGate.
type sharedExpert struct {
	mlp
	gated bool
	score gpu.Matrix
}

func newSharedExpert(b *binder, m *model.Config, prefix string) *sharedExpert {
	h, i := m.HiddenSize, m.SharedExpertIntermediateSize
	if m.SharedExpert == model.SharedExpertUngated {
		return &sharedExpert{mlp: *newMLP(b, prefix+"shared_experts.", h, i)}
	}
	return &sharedExpert{mlp: *newMLP(b, prefix+"shared_expert.", h, i), gated: true, score: b.matrix(prefix+"shared_expert_gate", 1, h)}
}

func (x *sharedExpert) encode(cmd *gpu.Commands, l *lane) {
	if x.gated {
		gpu.Encode(cmd, gpu.MatMul{W: x.score, X: l.normed, Y: l.sharedGate, Rows: l.rows})
	}
	x.mlp.encode(cmd, l)
}
