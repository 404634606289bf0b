package refmodel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/io/expertfile"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// Open reads a packed model directory into memory, at eight bytes a weight. The error joins every
// tensor that is missing or has a different shape from what config.json says.
func Open(packedDir string) (*Model, error) {
	raw, err := os.ReadFile(filepath.Join(packedDir, "config.json"))
	if err != nil {
		return nil, fmt.Errorf("refmodel: %w", err)
	}
	cfg, err := model.ParseConfig(raw, nil)
	if err != nil {
		return nil, fmt.Errorf("refmodel: %s: %w", packedDir, err)
	}
	w, err := weights.Open(packedDir)
	if err != nil {
		return nil, fmt.Errorf("refmodel: %w", err)
	}
	defer w.Close()
	l := &loader{cfg: cfg, weights: w}
	if len(cfg.MoELayers()) > 0 {
		if l.experts, err = expertfile.Open(packedDir, cfg); err != nil {
			return nil, fmt.Errorf("refmodel: %w", err)
		}
		defer l.experts.Close()
	}
	m := l.model()
	if err := errors.Join(l.errs...); err != nil {
		return nil, fmt.Errorf("refmodel: %s: %w", packedDir, err)
	}
	return m, nil
}

// loader widens tensors and collects what is wrong with them.
type loader struct {
	cfg     *model.Config
	weights *weights.File
	experts *expertfile.File
	errs    []error
}

// vector returns the n numbers of a tensor.
func (l *loader) vector(name string, n int) []float64 {
	v, err := l.weights.Vector(name, n)
	if err != nil {
		l.errs = append(l.errs, err)
		return make([]float64, n)
	}
	out := make([]float64, n)
	for i := range v {
		out[i] = float64(v[i])
	}
	return out
}

// matrix returns a matrix. name lacks the ".weight".
func (l *loader) matrix(name string, rows, cols int) *matrix {
	m, err := l.weights.Matrix(name, rows, cols)
	if err != nil {
		l.errs = append(l.errs, err)
		return &matrix{rows: rows, cols: cols, w: make([]float64, rows*cols)}
	}
	all := l.weights.Mapping()
	return widen(m.Format, rows, cols, all[m.WeightOffset:], all[m.ScalesOffset:], all[m.BiasesOffset:])
}

// widen unpacks a matrix row by row.
func widen(f quant.Format, rows, cols int, weight, scales, biases []byte) *matrix {
	out := &matrix{rows: rows, cols: cols, w: make([]float64, rows*cols)}
	row := make([]float32, cols)
	for r := range rows {
		f.Unpack(row, cols, weight, scales, biases, r)
		for i, v := range row {
			out.w[r*cols+i] = float64(v)
		}
	}
	return out
}

func (l *loader) mlp(prefix string, width int) *mlp {
	h := l.cfg.HiddenSize
	return &mlp{
		gate: l.matrix(prefix+"gate_proj", width, h),
		up:   l.matrix(prefix+"up_proj", width, h),
		down: l.matrix(prefix+"down_proj", h, width),
	}
}

func (l *loader) model() *Model {
	c := l.cfg
	m := &Model{cfg: c, embed: l.matrix("model.embed_tokens", c.VocabSize, c.HiddenSize), norm: l.vector("model.norm.weight", c.HiddenSize)}
	m.head = m.embed
	if !c.TieWordEmbeddings {
		m.head = l.matrix("lm_head", c.VocabSize, c.HiddenSize)
	}
	for i, kind := range c.Layers {
		p := fmt.Sprintf("model.layers.%d.", i)
		one := layer{
			inputNorm: l.vector(p+"input_layernorm.weight", c.HiddenSize),
			postNorm:  l.vector(p+"post_attention_layernorm.weight", c.HiddenSize),
		}
		switch kind.Mixer {
		case model.LinearAttention:
			one.linear = l.deltaNet(p + "linear_attn.")
		case model.FullAttention, model.WindowAttention:
			one.full = l.fullAttention(kind.Mixer, p+"self_attn.")
			if kind.Indexer == model.OwnIndexer {
				one.full.indexer = l.blockIndexer(p + "self_attn.")
			}
		default:
			one.latent = l.latentAttention(p + "self_attn.")
			if kind.Indexer == model.OwnIndexer {
				one.latent.indexer = l.indexer(p + "self_attn.indexer.")
			}
		}
		if kind.FFN == model.MixtureOfExperts {
			one.moe = l.moe(p+"mlp.", i)
			if one.moe.shared != nil {
				one.moe.shared.clamp = kind.MLPClamp
			}
		} else {
			one.mlp = l.mlp(p+"mlp.", c.IntermediateSize)
			one.mlp.clamp = kind.MLPClamp
		}
		m.layers = append(m.layers, one)
	}
	return m
}

func (l *loader) deltaNet(p string) *deltaNet {
	c, h, heads := l.cfg, l.cfg.HiddenSize, l.cfg.LinearNumValueHeads
	return &deltaNet{
		cfg:    c,
		qkv:    l.matrix(p+"in_proj_qkv", c.LinearConvDim(), h),
		z:      l.matrix(p+"in_proj_z", c.LinearValueDim(), h),
		a:      l.matrix(p+"in_proj_a", heads, h),
		b:      l.matrix(p+"in_proj_b", heads, h),
		conv:   l.vector(p+"conv1d.weight", c.LinearConvDim()*c.LinearConvKernelDim),
		aLog:   l.vector(p+"A_log", heads),
		dtBias: l.vector(p+"dt_bias", heads),
		norm:   l.vector(p+"norm.weight", c.LinearValueHeadDim),
		out:    l.matrix(p+"out_proj", h, c.LinearValueDim()),
	}
}

func (l *loader) fullAttention(kind model.Mixer, p string) *fullAttention {
	c, h, a := l.cfg, l.cfg.HiddenSize, l.cfg.Attention(kind)
	q, kv, values := a.Heads*a.HeadDim, a.KVHeads*a.HeadDim, a.KVHeads*a.ValueDim
	out := q
	if c.AttnOutputGate {
		q *= 2
	}
	f := &fullAttention{
		cfg: c, a: a, rope: newRotary(a.RotaryDim, a.RopeTheta, a.YaRN, c.RopeInterleaved),
		q: l.matrix(p+"q_proj", q, h), k: l.matrix(p+"k_proj", kv, h), v: l.matrix(p+"v_proj", values, h),
		o: l.matrix(p+"o_proj", h, a.Heads*a.ValueDim),
	}
	if l3 := a.Llama3; l3 != nil {
		for i, fr := range f.rope.freq {
			f.rope.freq[i] = llama3Frequency(fr, l3)
		}
	}
	if c.HeadGate {
		f.headGate = l.matrix(p+"g_proj", a.Heads, h)
	}
	if c.AttentionBias {
		f.qBias, f.kBias, f.vBias = l.vector(p+"q_proj.bias", q), l.vector(p+"k_proj.bias", kv), l.vector(p+"v_proj.bias", values)
	}
	if c.OutputBias {
		f.oBias = l.vector(p+"o_proj.bias", h)
	}
	if a.Sinks {
		f.sinks = l.vector(p+"sinks", a.Heads)
	}
	switch c.QKNorm {
	case model.QKNormPerHead:
		f.qNorm, f.kNorm = l.vector(p+"q_norm.weight", c.HeadDim), l.vector(p+"k_norm.weight", c.HeadDim)
	case model.QKNormWhole:
		f.qNorm, f.kNorm = l.vector(p+"q_norm.weight", out), l.vector(p+"k_norm.weight", kv)
	}
	return f
}

func (l *loader) latentAttention(p string) *latentAttention {
	c, h, heads := l.cfg, l.cfg.HiddenSize, l.cfg.NumAttentionHeads
	dn, dr, dv, rank := c.QKNopeHeadDim, c.QKRopeHeadDim, c.VHeadDim, c.KVLoraRank
	a := &latentAttention{
		cfg: c, rope: newRotary(dr, c.RopeTheta, c.YaRN, c.RopeInterleaved), softmult: softmaxScale(c),
		kvA:    l.matrix(p+"kv_a_proj_with_mqa", rank+dr, h),
		kvNorm: l.vector(p+"kv_a_layernorm.weight", rank),
		o:      l.matrix(p+"o_proj", h, heads*dv),
	}
	if c.QLoraRank == 0 {
		a.q = l.matrix(p+"q_proj", heads*(dn+dr), h)
	} else {
		a.qA = l.matrix(p+"q_a_proj", c.QLoraRank, h)
		a.qNorm = l.vector(p+"q_a_layernorm.weight", c.QLoraRank)
		a.qB = l.matrix(p+"q_b_proj", heads*(dn+dr), c.QLoraRank)
	}
	if l.weights.Has(p + "kv_b_proj.weight") {
		a.unfold = l.matrix(p+"kv_b_proj", heads*(dn+dv), rank)
	} else {
		a.embedQ = l.matrix(p+"embed_q", heads*rank, dn)
		a.unembed = l.matrix(p+"unembed_out", heads*dv, rank)
	}
	return a
}

func (l *loader) moe(p string, at int) *moe {
	c, h := l.cfg, l.cfg.HiddenSize
	m := &moe{cfg: c, router: l.matrix(p+"gate", c.NumExperts, h)}
	if c.RouterBias {
		m.scoreBias = l.vector(p+"gate.bias", c.NumExperts)
	}
	if c.CorrectionBias {
		m.bias = l.vector(p+"gate.e_score_correction_bias", c.NumExperts)
	}
	switch c.SharedExpert {
	case model.SharedExpertGated:
		m.shared = l.mlp(p+"shared_expert.", c.SharedExpertIntermediateSize)
		m.sharedGate = l.matrix(p+"shared_expert_gate", 1, h)
	case model.SharedExpertUngated:
		m.shared = l.mlp(p+"shared_experts.", c.SharedExpertIntermediateSize)
	}
	record := make([]byte, l.experts.Layout().Bytes)
	for e := range c.NumExperts {
		if err := l.experts.ReadExpert(at, e, record); err != nil {
			l.errs = append(l.errs, err)
			return m
		}
		part := func(p model.ExpertPart) *matrix {
			return widen(p.Format, p.Rows, p.Cols, record[p.WeightOffset:], record[p.ScalesOffset:], record[p.BiasesOffset:])
		}
		layout := l.experts.LayoutOf(at)
		m.experts = append(m.experts, &mlp{gate: part(layout.Gate), up: part(layout.Up), down: part(layout.Down), clamp: c.Layers[at].Clamp})
	}
	if c.ExpertBias {
		l.expertBiases(m, p+"switch_mlp.")
	}
	return m
}

// expertBiases gives the experts of a layer their biases.
func (l *loader) expertBiases(m *moe, p string) {
	for _, b := range []struct {
		name string
		rows int
		of   func(*mlp) *[]float64
	}{
		{"gate_proj", l.cfg.MoEIntermediateSize, func(x *mlp) *[]float64 { return &x.gateBias }},
		{"up_proj", l.cfg.MoEIntermediateSize, func(x *mlp) *[]float64 { return &x.upBias }},
		{"down_proj", l.cfg.HiddenSize, func(x *mlp) *[]float64 { return &x.downBias }},
	} {
		all := l.vector(p+b.name+".bias", len(m.experts)*b.rows)
		for e, x := range m.experts {
			*b.of(x) = all[e*b.rows : (e+1)*b.rows]
		}
	}
}
