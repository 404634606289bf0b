package testmodel

import (
	"fmt"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/io/safetensors"
)

// list gathers the tensors of a checkpoint.
type list struct {
	spec   Spec
	prefix string // of the layers and the embedding
	out    []drawn
}

// drawn is a tensor whose elements are mean + spread · N(0, 1), or evenly between mean and
// mean+spread.
type drawn struct {
	name         string
	dtype        safetensors.DType
	shape        []int
	mean, spread float64
	even         bool
}

// add adds a tensor, under the family's name for it.
func (l *list) add(d drawn) {
	d.name = Published(l.spec.Arch, d.name)
	l.out = append(l.out, d)
}

// matrix adds a matrix that turns inputs of order one into outputs of order gain. name lacks the
// ".weight".
func (l *list) matrix(name string, gain float64, shape ...int) {
	l.add(drawn{name: name + ".weight", dtype: safetensors.BF16, shape: shape, spread: gain / sqrt(shape[len(shape)-1])})
}

// norm adds the weight of a norm of the five kinds that some families store as w of 1+w.
func (l *list) norm(name string, n int, mean float64) {
	if l.spec.has(linear) || l.spec.has(zeroCentred) {
		mean--
	}
	l.vector(name+".weight", n, mean, 0.2)
}

func (l *list) vector(name string, n int, mean, spread float64) {
	l.add(drawn{name: name, dtype: safetensors.BF16, shape: []int{n}, mean: mean, spread: spread})
}

// wide stores the last tensor as F32.
func (l *list) wide() { l.out[len(l.out)-1].dtype = safetensors.F32 }

// tensors lists the checkpoint, one layer after the other.
func (s Spec) tensors() []drawn {
	l := &list{spec: s, prefix: "model."}
	head := "lm_head"
	switch {
	case s.has(nested):
		l.prefix = "model.language_model."
	case s.has(inner):
		l.prefix, head = "language_model.model.", "language_model.lm_head"
	}
	// A tied embedding is small, so that logits are of the order that a separate head gives.
	const headGain = 2.5
	embed := sqrt(s.Hidden)
	if s.Tied {
		embed = headGain
	} else {
		l.matrix(head, headGain, s.Vocab, s.Hidden)
	}
	l.matrix(l.prefix+"embed_tokens", embed, s.Vocab, s.Hidden)
	l.norm(l.prefix+"norm", s.Hidden, 1)
	for i := range s.Layers {
		p := fmt.Sprintf("%slayers.%d.", l.prefix, i)
		l.norm(p+"input_layernorm", s.Hidden, 1)
		l.norm(p+"post_attention_layernorm", s.Hidden, 1)
		switch {
		case s.has(latent):
			l.latentAttention(p + "self_attn.")
			if s.has(indexed) && !slices.Contains(s.SharedIndex, i) {
				l.indexer(p + "self_attn.indexer.")
			}
		case s.has(linear) && (i+1)%s.FullEvery != 0:
			l.linearAttention(p + "linear_attn.")
		default:
			l.fullAttention(p+"self_attn.", slices.Contains(s.Sliding, i))
			if s.has(blocks) && !slices.Contains(s.NoIndex, i) {
				l.blockIndexer(p + "self_attn.")
			}
		}
		if slices.Contains(s.DenseLayers, i) {
			l.mlp(p+"mlp.", s.DenseWidth)
		} else {
			l.experts(p)
		}
	}
	return l.out
}

func (l *list) fullAttention(p string, window bool) {
	s, h := l.spec, l.spec.Hidden
	heads, kvHeads, valueDim := s.Heads, s.KVHeads, s.HeadDim
	if s.has(narrow) {
		valueDim = s.ValueDim
		if window {
			heads, kvHeads = s.WindowHeads, s.WindowKVHeads
			l.vector(p+"sinks", heads, 0, 2)
		}
	}
	if s.has(stepped) {
		if window {
			heads, kvHeads = s.WindowHeads, s.WindowKVHeads
		}
		l.matrix(p+"g_proj", 2, heads, h)
	}
	q, kv := heads*s.HeadDim, kvHeads*s.HeadDim
	rows := q
	if s.has(linear) {
		rows *= 2 // with the gate of each head
	}
	l.matrix(p+"q_proj", 1.2, rows, h)
	l.matrix(p+"k_proj", 1.2, kv, h)
	l.matrix(p+"v_proj", 1, kvHeads*valueDim, h)
	l.matrix(p+"o_proj", 1.5, h, heads*valueDim)
	if s.Bias {
		l.vector(p+"q_proj.bias", q, 0, 0.5)
		l.vector(p+"k_proj.bias", kv, 0, 0.5)
		l.vector(p+"v_proj.bias", kv, 0, 0.5)
	}
	if s.Bias && s.has(rotated) {
		l.vector(p+"o_proj.bias", h, 0, 0.5)
	}
	if s.has(sinking) {
		l.vector(p+"q_proj.bias", q, 0, 0.5)
		l.vector(p+"k_proj.bias", kv, 0, 0.5)
		l.vector(p+"v_proj.bias", kv, 0, 0.5)
		l.vector(p+"o_proj.bias", h, 0, 0.5)
		l.vector(p+"sinks", s.Heads, 0, 2)
	}
	if !s.QKNorm {
		return
	}
	if !s.has(wholeNorm) {
		q, kv = s.HeadDim, s.HeadDim
	}
	l.norm(p+"q_norm", q, 1.3)
	l.norm(p+"k_norm", kv, 1.3)
}

func (l *list) latentAttention(p string) {
	s, h := l.spec, l.spec.Hidden
	if s.QLora == 0 {
		l.matrix(p+"q_proj", 1.2, s.Heads*(s.QKNope+s.QKRope), h)
	} else {
		l.matrix(p+"q_a_proj", 1, s.QLora, h)
		l.norm(p+"q_a_layernorm", s.QLora, 1)
		l.matrix(p+"q_b_proj", 1.2, s.Heads*(s.QKNope+s.QKRope), s.QLora)
	}
	l.matrix(p+"kv_a_proj_with_mqa", 1, s.KVLora+s.QKRope, h)
	l.norm(p+"kv_a_layernorm", s.KVLora, 1)
	l.matrix(p+"kv_b_proj", 1.2, s.Heads*(s.QKNope+s.VHead), s.KVLora)
	l.matrix(p+"o_proj", 1.5, h, s.Heads*s.VHead)
}

func (l *list) indexer(p string) {
	s := l.spec
	l.matrix(p+"wq_b", 1.2, s.IndexHeads*s.IndexDim, s.QLora)
	l.matrix(p+"wk", 1.2, s.IndexDim, s.Hidden)
	l.matrix(p+"weights_proj", 1, s.IndexHeads, s.Hidden)
	l.vector(p+"k_norm.weight", s.IndexDim, 1, 0.2)
	l.vector(p+"k_norm.bias", s.IndexDim, 0, 0.2)
}

func (l *list) blockIndexer(p string) {
	s := l.spec
	l.matrix(p+"index_q_proj", 1.2, s.IndexHeads*s.IndexDim, s.Hidden)
	l.matrix(p+"index_k_proj", 1.2, s.IndexDim, s.Hidden)
	l.norm(p+"index_q_norm", s.IndexDim, 1.3)
	l.norm(p+"index_k_norm", s.IndexDim, 1.3)
}

func (l *list) linearAttention(p string) {
	s, h := l.spec, l.spec.Hidden
	k, v := s.LinearKeyHeads*s.LinearKeyDim, s.LinearValueHeads*s.LinearValueDim
	if s.has(nested) {
		l.matrix(p+"in_proj_qkv", 1.5, 2*k+v, h)
		l.matrix(p+"in_proj_z", 1.5, v, h)
		l.matrix(p+"in_proj_b", 1, s.LinearValueHeads, h)
		l.matrix(p+"in_proj_a", 1, s.LinearValueHeads, h)
	} else {
		l.matrix(p+"in_proj_qkvz", 1.5, 2*k+2*v, h)
		l.matrix(p+"in_proj_ba", 1, 2*s.LinearValueHeads, h)
	}
	l.add(drawn{name: p + "conv1d.weight", dtype: safetensors.BF16, shape: []int{2*k + v, 1, s.ConvKernel}, spread: 0.6})
	// These make a head forget within one position to a few dozen.
	l.add(drawn{name: p + "A_log", dtype: safetensors.BF16, shape: []int{s.LinearValueHeads}, mean: -4, spread: 5, even: true})
	if s.has(nested) {
		l.wide()
	}
	l.vector(p+"dt_bias", s.LinearValueHeads, 0, 1)
	l.vector(p+"norm.weight", s.LinearValueDim, 1, 0.2) // never zero-centred
	if s.has(nested) {
		l.wide()
	}
	l.matrix(p+"out_proj", 1.5, h, v)
}

func (l *list) mlp(p string, width int) {
	l.matrix(p+"gate_proj", 1.5, width, l.spec.Hidden)
	l.matrix(p+"up_proj", 1.5, width, l.spec.Hidden)
	l.matrix(p+"down_proj", 1.5, l.spec.Hidden, width)
}

// experts adds router, routed experts and shared expert of the layer whose names begin with layer.
func (l *list) experts(layer string) {
	s, h, p := l.spec, l.spec.Hidden, layer+"mlp."
	if s.has(noaux) {
		l.matrix(p+"gate", 1.5, s.Experts, h)
		l.vector(p+"gate.e_score_correction_bias", s.Experts, 0, 0.2)
		l.wide()
	} else {
		l.matrix(p+"gate", 3, s.Experts, h)
	}
	switch {
	case s.has(linear):
		l.matrix(p+"shared_expert_gate", 1.5, 1, h)
		l.mlp(p+"shared_expert.", s.SharedWidth)
	case s.SharedWidth > 0:
		l.mlp(p+"shared_experts.", s.SharedWidth)
	}
	switch {
	case s.has(fused):
		l.fusedExperts(p)
		return
	case s.has(stepped):
		l.matrix(p+"experts.gate_proj", 1.5, s.Experts, s.ExpertWidth, h)
		l.matrix(p+"experts.up_proj", 1.5, s.Experts, s.ExpertWidth, h)
		l.matrix(p+"experts.down_proj", 1.5, s.Experts, h, s.ExpertWidth)
		return
	case s.has(inTurns):
		l.vector(p+"gate.bias", s.Experts, 0, 1)
		l.expertsInTurns(p + "experts.")
		return
	}
	for e := range s.Experts {
		one := fmt.Sprintf("%sexperts.%d.", p, e)
		if s.has(inner) { // dense layers and shared experts have other names for theirs
			one += "w_"
		}
		l.matrix(one+"gate_proj", 1.5, s.ExpertWidth, h)
		l.matrix(one+"up_proj", 1.5, s.ExpertWidth, h)
		l.matrix(one+"down_proj", 1.5, h, s.ExpertWidth)
	}
}

// fusedExperts adds all experts of a layer as two tensors, whose names do not end in ".weight".
func (l *list) fusedExperts(p string) {
	s := l.spec
	l.matrix(p+"experts.gate_up_proj", 1.5, s.Experts, 2*s.ExpertWidth, s.Hidden)
	l.out[len(l.out)-1].name = p + "experts.gate_up_proj"
	l.matrix(p+"experts.down_proj", 1.5, s.Experts, s.Hidden, s.ExpertWidth)
	l.out[len(l.out)-1].name = p + "experts.down_proj"
}

// expertsInTurns adds all experts of a layer as gpt-oss has them.
func (l *list) expertsInTurns(p string) {
	s := l.spec
	for _, m := range []struct {
		name       string
		rows, cols int
	}{{"gate_up_proj", 2 * s.ExpertWidth, s.Hidden}, {"down_proj", s.Hidden, s.ExpertWidth}} {
		name, spread := p+m.name, 1.5/sqrt(m.cols)
		l.add(drawn{name: name + "_bias", dtype: safetensors.BF16, shape: []int{s.Experts, m.rows}, spread: 0.5})
		if !s.MXFP4 {
			l.add(drawn{name: name, dtype: safetensors.BF16, shape: []int{s.Experts, m.cols, m.rows}, spread: spread})
			continue
		}
		// All codes alike are numbers with a deviation of 2.9.
		scale := 127 + math.Round(math.Log2(spread/2.9))
		l.add(drawn{name: name + "_blocks", dtype: safetensors.U8, shape: []int{s.Experts, m.rows, m.cols / 32, 16}, spread: 256, even: true})
		l.add(drawn{name: name + "_scales", dtype: safetensors.U8, shape: []int{s.Experts, m.rows, m.cols / 32}, mean: scale - 1, spread: 3, even: true})
	}
}
