package dispatch

import (
	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
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

func (x *linear) encode(cmd *gpu.Commands, l *lane) {
	m, rows := x.m, l.rows
	qkv := l.mixer
	conv := qkv.Floats(rows * m.LinearConvDim())
	z := conv.Floats(rows * m.LinearConvDim())
	y := z.Floats(rows * m.LinearValueDim())
	alpha := y.Floats(rows * m.LinearValueDim())
	beta := alpha.Floats(rows * m.LinearNumValueHeads)
	for _, p := range []struct {
		w gpu.Matrix
		y gpu.View
	}{{x.qkv, qkv}, {x.z, z}, {x.a, alpha}, {x.b, beta}} {
		cmd.EncodeMatMul(gpu.MatMul{W: p.w, X: l.normed, Y: p.y, Rows: rows})
	}
	cmd.EncodeCausalConv(gpu.CausalConv{
		X: qkv, W: x.conv, Y: conv, Channels: m.LinearConvDim(), Kernel: m.LinearConvKernelDim, Segments: l.state[2*x.index],
	})
	cmd.EncodeDeltaRule(gpu.DeltaRule{
		QKV: conv, Alpha: alpha, Beta: beta, ALog: x.aLog, DtBias: x.dtb, Y: y,
		KeyHeads: m.LinearNumKeyHeads, ValueHeads: m.LinearNumValueHeads,
		KeyDim: m.LinearKeyHeadDim, ValueDim: m.LinearValueHeadDim, Segments: l.state[2*x.index+1],
	})
	cmd.EncodeGatedNorm(gpu.GatedNorm{
		X: y, W: x.norm, Z: z, Y: y, Vectors: rows * m.LinearNumValueHeads, Dim: m.LinearValueHeadDim, Eps: m.RMSNormEps,
	})
	cmd.EncodeMatMul(gpu.MatMul{W: x.out, X: y, Y: l.mixed, Rows: rows})
}
