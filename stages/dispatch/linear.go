package dispatch

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// linear is a gated delta-net layer (architectures.md, 2.4).
type linear struct {
	m                     *model.Config
	index                 int // among the linear layers
	qkv, z, a, b, out     gpu.Matrix
	conv, aLog, dtb, norm gpu.View
}

func newLinear(b *binder, m *model.Config, prefix string, index int) *linear {
	l := &linear{m: m, index: index}
	l.qkv = b.matrix(prefix+"in_proj_qkv", m.LinearConvDim(), m.HiddenSize)
	l.z = b.matrix(prefix+"in_proj_z", m.LinearValueDim(), m.HiddenSize)
	l.a = b.matrix(prefix+"in_proj_a", m.LinearNumValueHeads, m.HiddenSize)
	l.b = b.matrix(prefix+"in_proj_b", m.LinearNumValueHeads, m.HiddenSize)
	l.out = b.matrix(prefix+"out_proj", m.HiddenSize, m.LinearValueDim())
	b.vector(&l.conv, prefix+"conv1d.weight", m.LinearConvDim()*m.LinearConvKernelDim)
	b.vector(&l.aLog, prefix+"A_log", m.LinearNumValueHeads)
	b.vector(&l.dtb, prefix+"dt_bias", m.LinearNumValueHeads)
	b.vector(&l.norm, prefix+"norm.weight", m.LinearValueHeadDim)
	return l
}

// linearViews is what the mixer keeps in l.mixer.
type linearViews struct{ qkv, conv, z, y, alpha, beta gpu.View }

func (x *linear) views(l *lane) (v linearViews) {
	m, rows := x.m, l.rows
	v.qkv = l.mixer
	v.conv = v.qkv.Floats(rows * m.LinearConvDim())
	v.z = v.conv.Floats(rows * m.LinearConvDim())
	v.y = v.z.Floats(rows * m.LinearValueDim())
	v.alpha = v.y.Floats(rows * m.LinearValueDim())
	v.beta = v.alpha.Floats(rows * m.LinearNumValueHeads)
	return v
}

func (x *linear) encode(cmd *gpu.Commands, l *lane) {
	m, rows, v := x.m, l.rows, x.views(l)
	x.tapStates(cmd, l, stages.DumpConvStateIn, stages.DumpStateIn)
	for _, p := range []struct {
		w gpu.Matrix
		y gpu.View
	}{{x.qkv, v.qkv}, {x.z, v.z}, {x.a, v.alpha}, {x.b, v.beta}} {
		gpu.Encode(cmd, gpu.MatMul{W: p.w, X: l.normed, Y: p.y, Rows: rows})
	}
	gpu.Encode(cmd, gpu.CausalConv{
		X: v.qkv, W: x.conv, Y: v.conv, Channels: m.LinearConvDim(), Kernel: m.LinearConvKernelDim, StateAt: recurrentAt(m, x.index), Segments: l.state,
	})
	gpu.Encode(cmd, gpu.DeltaRule{
		QKV: v.conv, Alpha: v.alpha, Beta: v.beta, ALog: x.aLog, DtBias: x.dtb, Y: v.y,
		KeyHeads: m.LinearNumKeyHeads, ValueHeads: m.LinearNumValueHeads,
		KeyDim: m.LinearKeyHeadDim, ValueDim: m.LinearValueHeadDim, StateAt: deltaAt(m, x.index), Segments: l.state,
	})
	l.tap(cmd, stages.DumpHeads, v.y)
	gpu.Encode(cmd, gpu.GatedNorm{
		X: v.y, W: x.norm, Z: v.z, Y: v.y, Vectors: rows * m.LinearNumValueHeads, Dim: m.LinearValueHeadDim, Eps: m.RMSNormEps,
	})
	gpu.Encode(cmd, gpu.MatMul{W: x.out, X: v.y, Y: l.mixed, Rows: rows})
}

func (x *linear) tap(cmd *gpu.Commands, l *lane) {
	v := x.views(l)
	l.tap(cmd, stages.DumpQKV, v.qkv)
	l.tap(cmd, stages.DumpZ, v.z)
	l.tap(cmd, stages.DumpAlpha, v.alpha)
	l.tap(cmd, stages.DumpBeta, v.beta)
	l.tap(cmd, stages.DumpConv, v.conv)
	l.tap(cmd, stages.DumpHeadsGated, v.y)
	x.tapStates(cmd, l, stages.DumpConvState, stages.DumpState)
}

// tapStates collects the states of the segments as they are.
func (x *linear) tapStates(cmd *gpu.Commands, l *lane, conv, delta stages.Quantity) {
	for i := range l.state {
		state := l.state[i].State
		l.tapRows(cmd, conv, i, 1, state.At(recurrentAt(x.m, x.index)))
		l.tapRows(cmd, delta, i, 1, state.At(deltaAt(x.m, x.index)))
	}
}
