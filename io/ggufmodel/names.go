package ggufmodel

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/model"
)

// whole are the names of tensors outside of layers, and those that they have in a pack.
var whole = map[string]string{
	"token_embd.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight", "output.weight": "lm_head.weight",
}

// inLayer are the names of a layer's tensors, and those that they have in a pack. A point stands
// for what follows in both, ".weight" or ".bias".
var inLayer = map[string]string{
	"attn_norm.": "input_layernorm.", "ffn_norm.": "post_attention_layernorm.", "post_attention_norm.": "post_attention_layernorm.",

	"attn_q.": "self_attn.q_proj.", "attn_k.": "self_attn.k_proj.", "attn_v.": "self_attn.v_proj.", "attn_output.": "self_attn.o_proj.",
	"attn_q_norm.": "self_attn.q_norm.", "attn_k_norm.": "self_attn.k_norm.",

	"attn_q_a.": "self_attn.q_a_proj.", "attn_q_a_norm.": "self_attn.q_a_layernorm.", "attn_q_b.": "self_attn.q_b_proj.",
	"attn_kv_a_mqa.": "self_attn.kv_a_proj_with_mqa.", "attn_kv_a_norm.": "self_attn.kv_a_layernorm.",
	// Old files have what latent vectors become as one matrix. In newer ones it is split, and the
	// part for keys is transposed for each head: so are embed_q and unembed_out of mlx-lm.
	"attn_kv_b.": "self_attn.kv_b_proj.", "attn_k_b.": "self_attn.embed_q.", "attn_v_b.": "self_attn.unembed_out.",

	"indexer.attn_q_b.": "self_attn.indexer.wq_b.", "indexer.attn_k.": "self_attn.indexer.wk.",
	"indexer.k_norm.": "self_attn.indexer.k_norm.", "indexer.proj.": "self_attn.indexer.weights_proj.",

	// Old files of qwen3next have in one matrix what newer ones have in two.
	"ssm_in.": "linear_attn.in_proj_qkvz.", "attn_qkv.": "linear_attn.in_proj_qkv.", "attn_gate.": "linear_attn.in_proj_z.",
	"ssm_ba.": "linear_attn.in_proj_ba.", "ssm_alpha.": "linear_attn.in_proj_a.", "ssm_beta.": "linear_attn.in_proj_b.",
	"ssm_conv1d.": "linear_attn.conv1d.", "ssm_norm.": "linear_attn.norm.", "ssm_out.": "linear_attn.out_proj.",

	"ffn_gate.": "mlp.gate_proj.", "ffn_up.": "mlp.up_proj.", "ffn_down.": "mlp.down_proj.",
	"ffn_gate_inp.": "mlp.gate.", "ffn_gate_inp_shexp.": "mlp.shared_expert_gate.",
	"ffn_gate_exps.": "mlp.switch_mlp.gate_proj.", "ffn_up_exps.": "mlp.switch_mlp.up_proj.", "ffn_down_exps.": "mlp.switch_mlp.down_proj.",
	"ffn_gate_up_exps.": "mlp.switch_mlp.gate_up_proj.",
}

// alone are names of a layer's tensors that are not made of two parts.
var alone = map[string]string{
	"attn_sinks.weight": "self_attn.sinks", "ssm_a": "linear_attn.A_log", "ssm_dt.bias": "linear_attn.dt_bias",
	"exp_probs_b.bias": "mlp.gate.e_score_correction_bias", "exp_probs_b": "mlp.gate.e_score_correction_bias",
}

// sharedNames are what packs call shared experts.
var sharedNames = map[model.SharedExpert]string{model.SharedExpertGated: "shared_expert.", model.SharedExpertUngated: "shared_experts."}

// packName returns the name of a layer's tensor in a pack, "" if no model with such shared experts
// has one like it.
func packName(name string, experts model.SharedExpert) string {
	if to := alone[name]; to != "" {
		return to
	}
	dot := strings.LastIndexByte(name, '.')
	if dot < 0 || name[dot+1:] != "weight" && name[dot+1:] != "bias" {
		return ""
	}
	stem, last := name[:dot], name[dot+1:]
	if proj, ok := strings.CutSuffix(stem, "_shexp"); ok && proj != "ffn_gate_inp" {
		to, shared := inLayer[proj+"."], sharedNames[experts]
		if to == "" || shared == "" {
			return ""
		}
		return "mlp." + shared + strings.TrimPrefix(to, "mlp.") + last
	}
	if to := inLayer[stem+"."]; to != "" {
		return to + last
	}
	return ""
}

// index gives every tensor its name in a pack.
func (m *Model) index() error {
	m.names = map[string]*gguf.Tensor{}
	for t := range m.File.Tensors {
		fail := func(format string, args ...any) error {
			return &gguf.FormatError{Path: m.File.Files()[t.Part].Path(), Name: t.Name, Why: fmt.Sprintf(format, args...)}
		}
		if t.Name == m.rule.read {
			continue
		}
		name := whole[t.Name]
		if layer, in, ok := layerOf(t.Name); ok {
			if layer >= m.Config.NumHiddenLayers {
				m.Unused = append(m.Unused, t)
				continue
			}
			if name = cmp.Or(m.rule.names[in], packName(in, m.Config.SharedExpert)); name != "" {
				name = fmt.Sprintf("model.layers.%d.%s", layer, name)
			}
		}
		if name == "" {
			return fail("this program does not know the tensor, so it cannot tell what the model computes")
		}
		if first := m.names[name]; first != nil {
			return fail("is the same part of the model as %q", first.Name)
		}
		m.names[name] = t
	}
	return nil
}

// layerOf cuts the name of a layer's tensor: blk.3.ffn_norm.weight is ffn_norm.weight of layer 3.
func layerOf(tensor string) (layer int, name string, ok bool) {
	rest, ok := strings.CutPrefix(tensor, "blk.")
	number, name, cut := strings.Cut(rest, ".")
	layer, err := strconv.Atoi(number)
	if !ok || !cut || err != nil || layer < 0 {
		return 0, "", false
	}
	return layer, name, true
}

// Names returns the names that the tensors have in a pack, sorted: those of a checkpoint, but for
// experts, which are stacked (switch_mlp, as mlx-lm has them; gate_up_proj if gate and up are
// together).
func (m *Model) Names() []string { return slices.Sorted(maps.Keys(m.names)) }

// Tensor returns a tensor by its name in a pack, nil if there is none.
func (m *Model) Tensor(pack string) *gguf.Tensor { return m.names[pack] }

// Shape returns a tensor's shape as a checkpoint has it: files leave out axes of one.
func Shape(pack string, t *gguf.Tensor) []int {
	switch {
	case strings.HasSuffix(pack, ".conv1d.weight") && len(t.Shape) == 2:
		return []int{t.Shape[0], t.Shape[1], 1}
	case strings.HasSuffix(pack, ".shared_expert_gate.weight") && len(t.Shape) == 1:
		return []int{1, t.Shape[0]}
	}
	return t.Shape
}
