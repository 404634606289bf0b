package dispatch

import (
	"math"

	"github.com/moeflux/moeflux-actor/gpu"
	"github.com/moeflux/moeflux-actor/model"
)

// mixerFloats returns the float32s of lane.mixer that one row needs, whichever mixer the layer has.
func mixerFloats(m *model.Config) int {
	linear := 2*m.LinearConvDim() + 2*m.LinearValueDim() + 2*m.LinearNumValueHeads
	full := 3*m.NumAttentionHeads*m.HeadDim + 2*m.KVDim()
	return max(linear, full)
}

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

// full is a softmax attention layer with an output gate (architectures.md, 2.3).
type full struct {
	m            *model.Config
	index        int // among the full layers
	q, k, v, o   gpu.Matrix
	qNorm, kNorm gpu.View
}

func newFull(b *binder, m *model.Config, prefix string, index int) *full {
	f := &full{m: m, index: index}
	heads := m.NumAttentionHeads * m.HeadDim
	f.q = b.matrix(prefix+"q_proj", 2*heads, m.HiddenSize)
	f.k = b.matrix(prefix+"k_proj", m.KVDim(), m.HiddenSize)
	f.v = b.matrix(prefix+"v_proj", m.KVDim(), m.HiddenSize)
	f.o = b.matrix(prefix+"o_proj", m.HiddenSize, heads)
	b.vector(&f.qNorm, prefix+"q_norm.weight", m.HeadDim)
	b.vector(&f.kNorm, prefix+"k_norm.weight", m.HeadDim)
	return f
}

func (x *full) encode(cmd *gpu.Commands, l *lane) {
	m, rows := x.m, l.rows
	heads, dim := m.NumAttentionHeads, m.HeadDim
	q := l.mixer // per head a query and its gate: [rows, heads, 2, dim]
	k := q.Floats(rows * 2 * heads * dim)
	v := k.Floats(rows * m.KVDim())
	y := v.Floats(rows * m.KVDim())
	cmd.EncodeMatMul(gpu.MatMul{W: x.q, X: l.normed, Y: q, Rows: rows})
	cmd.EncodeMatMul(gpu.MatMul{W: x.k, X: l.normed, Y: k, Rows: rows})
	cmd.EncodeMatMul(gpu.MatMul{W: x.v, X: l.normed, Y: v, Rows: rows})
	cmd.EncodeRMSNorm(gpu.RMSNorm{
		X: q, Y: q, W: x.qNorm, Vectors: rows * heads, Dim: dim, XStride: 2 * dim, YStride: 2 * dim, Eps: m.RMSNormEps,
	})
	cmd.EncodeRMSNorm(gpu.RMSNorm{X: k, Y: k, W: x.kNorm, Vectors: rows * m.NumKeyValueHeads, Dim: dim, Eps: m.RMSNormEps})
	if m.RotaryDim > 0 {
		cmd.EncodeRope(gpu.Rope{
			X: q, Table: l.rope, Rows: rows, Heads: heads, Rotary: m.RotaryDim, RowStride: 2 * heads * dim, HeadStride: 2 * dim,
		})
		cmd.EncodeRope(gpu.Rope{
			X: k, Table: l.rope, Rows: rows, Heads: m.NumKeyValueHeads, Rotary: m.RotaryDim, RowStride: m.KVDim(), HeadStride: dim,
		})
	}
	segments := l.kv[x.index]
	cmd.EncodeAppendKV(gpu.AppendKV{K: k, V: v, Segments: segments})
	cmd.EncodeAttention(gpu.Attention{
		Q: q, Y: y, QRowStride: 2 * heads * dim, QHeadStride: 2 * dim, Heads: heads, KVHeads: m.NumKeyValueHeads, HeadDim: dim,
		Scale: float32(1 / math.Sqrt(float64(dim))), Segments: segments,
	})
	cmd.EncodeSigmoidGate(gpu.SigmoidGate{
		X: y, G: q.Floats(dim), Rows: rows, Heads: heads, Dim: dim, GRowStride: 2 * heads * dim, GHeadStride: 2 * dim,
	})
	cmd.EncodeMatMul(gpu.MatMul{W: x.o, X: y, Y: l.mixed, Rows: rows})
}

// sharedExpert is the expert that every row uses, behind a gate of its own: l.normed to l.shared and l.sharedGate.
type sharedExpert struct {
	m                    *model.Config
	gate, up, down, sigm gpu.Matrix
}

func newSharedExpert(b *binder, m *model.Config, prefix string) sharedExpert {
	h, i := m.HiddenSize, m.SharedExpertIntermediateSize
	return sharedExpert{
		m:    m,
		gate: b.matrix(prefix+"shared_expert.gate_proj", i, h),
		up:   b.matrix(prefix+"shared_expert.up_proj", i, h),
		down: b.matrix(prefix+"shared_expert.down_proj", h, i),
		sigm: b.matrix(prefix+"shared_expert_gate", 1, h),
	}
}

func (x *sharedExpert) encode(cmd *gpu.Commands, l *lane) {
	rows, dim := l.rows, x.m.SharedExpertIntermediateSize
	gate := l.sharedScratch
	up := gate.Floats(rows * dim)
	cmd.EncodeMatMul(gpu.MatMul{W: x.sigm, X: l.normed, Y: l.sharedGate, Rows: rows})
	cmd.EncodeMatMul(gpu.MatMul{W: x.gate, X: l.normed, Y: gate, Rows: rows})
	cmd.EncodeMatMul(gpu.MatMul{W: x.up, X: l.normed, Y: up, Rows: rows})
	cmd.EncodeSwiGLU(gpu.SwiGLU{Gate: gate, Up: up, Y: gate, Rows: rows, Dim: dim})
	cmd.EncodeMatMul(gpu.MatMul{W: x.down, X: gate, Y: l.shared, Rows: rows})
}
