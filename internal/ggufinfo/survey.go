package ggufinfo

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/io/gguf"
)

// keys reads the metadata of one architecture.
type keys struct {
	m      *gguf.Metadata
	prefix string // with the point
}

// number returns the whole number of a key, the greatest where each layer has one; 0 if there is
// none that a count can be.
func (k keys) number(name string) int {
	v, ok := k.m.Get(k.prefix + name)
	if !ok {
		return 0
	}
	most := int64(0)
	if n, ok := v.Int(); ok {
		most = n
	}
	for e := range v.Elements() {
		if n, ok := e.Int(); ok {
			most = max(most, n)
		}
	}
	if most < 0 || most > math.MaxInt32 {
		return 0
	}
	return int(most)
}

// first returns the number of the first of the keys that has one.
func (k keys) first(names ...string) int {
	for _, name := range names {
		if n := k.number(name); n > 0 {
			return n
		}
	}
	return 0
}

// layer is what the tensors tell of one layer.
type layer struct {
	linear, latent, full bool
	experts              int64 // bytes of all routed experts
}

// survey is what the tensors tell of a model.
type survey struct {
	keys   keys
	model  *gguf.Model
	layers map[int]*layer // with tensors

	resident, unused int64
	kinds            [3][]string // types of gate, up and down of experts
}

// experts are the names of tensors with routed experts, and which projections of kinds they hold.
var experts = map[string][]int{
	"ffn_gate_exps": {0}, "ffn_up_exps": {1}, "ffn_down_exps": {2}, "ffn_gate_up_exps": {0, 1},
}

// tensors looks at every tensor.
func (s *survey) tensors() {
	for t := range s.model.Tensors {
		n, name, inLayer := layerOf(t.Name)
		if !inLayer {
			s.resident += int64(len(t.Data))
			continue
		}
		l := s.layers[n]
		if l == nil {
			l = &layer{}
			s.layers[n] = l
		}
		s.tensor(t, n, name, l)
	}
}

// tensor looks at one tensor of layer n.
func (s *survey) tensor(t *gguf.Tensor, n int, name string, l *layer) {
	switch name {
	case "ssm_conv1d", "ssm_a":
		l.linear = true
	case "attn_kv_a_mqa":
		l.latent = true
	case "attn_q", "attn_k", "attn_output":
		l.full = true
	}
	projections, expert := experts[name]
	switch {
	case s.draft(n):
		s.unused += int64(len(t.Data))
	case expert:
		l.experts += int64(len(t.Data))
		for _, p := range projections {
			if !slices.Contains(s.kinds[p], t.Type.Name) {
				s.kinds[p] = append(s.kinds[p], t.Type.Name)
			}
		}
	default:
		s.resident += int64(len(t.Data))
	}
}

// layerOf cuts the name of a layer's tensor: blk.3.ffn_norm.weight is ffn_norm of layer 3.
func layerOf(tensor string) (n int, name string, ok bool) {
	rest, ok := strings.CutPrefix(tensor, "blk.")
	number, rest, cut := strings.Cut(rest, ".")
	n, err := strconv.Atoi(number)
	if !ok || !cut || err != nil || n < 0 {
		return 0, "", false
	}
	name, _, _ = strings.Cut(rest, ".")
	return n, name, true
}

// depth returns how many layers a token passes; behind them come draft layers.
func (s *survey) depth() int {
	return max(s.keys.number("block_count")-s.keys.number("nextn_predict_layers"), 0)
}

// draft reports whether layer n only proposes further tokens.
func (s *survey) draft(n int) bool {
	return n >= s.depth() && s.keys.number("nextn_predict_layers") > 0
}

// drafts counts the draft layers with tensors.
func (s *survey) drafts() int {
	k := 0
	for n := range s.layers {
		if s.draft(n) {
			k++
		}
	}
	return k
}

// shape returns what the keys and the tensors tell.
func (s *survey) shape() figures.Shape {
	k := s.keys
	f := figures.Shape{
		Layers: s.depth(), Hidden: k.number("embedding_length"),
		Heads: k.number("attention.head_count"), KVHeads: k.number("attention.head_count_kv"),
		HeadDim: k.first("attention.key_length_mla", "attention.key_length"),
		Experts: k.number("expert_count"), ExpertsPerToken: k.number("expert_used_count"),
		ExpertWidth: k.number("expert_feed_forward_length"), SharedWidth: k.number("expert_shared_feed_forward_length"),
		Vocab: k.number("vocab_size"), Context: k.number("context_length"),
		TiedEmbeddings: s.model.Tensor("output.weight") == nil,
	}
	if f.HeadDim == 0 && f.Heads > 0 {
		f.HeadDim = f.Hidden / f.Heads
	}
	if f.SharedWidth == 0 {
		f.SharedWidth = k.number("expert_shared_count") * f.ExpertWidth
	}
	if t := s.model.Tensor("token_embd.weight"); f.Vocab == 0 && t != nil && len(t.Shape) == 2 {
		f.Vocab = t.Shape[0]
	}
	s.count(&f)
	if f.LatentLayers > 0 {
		f.KVHeads = f.Heads
	}
	var formats []string
	for _, kinds := range s.kinds {
		formats = append(formats, strings.Join(kinds, " or "))
	}
	if len(s.kinds[2]) > 0 {
		f.ExpertFormats = strings.Join(formats, ", ")
	}
	return f
}

// count counts the kinds of layers.
func (s *survey) count(f *figures.Shape) {
	for n, l := range s.layers {
		switch {
		case s.draft(n):
			continue
		case l.linear:
			f.LinearLayers++
		case l.latent:
			f.LatentLayers++
		case l.full:
			f.FullLayers++
		}
		if l.experts == 0 {
			f.DenseLayers++
		}
	}
}

// weights returns the sizes. Expert is that of the layer with the largest experts.
func (s *survey) weights() figures.Weights {
	w := figures.Weights{Resident: s.resident, TouchedDense: s.resident}
	count, used := int64(s.keys.number("expert_count")), int64(s.keys.number("expert_used_count"))
	for _, l := range s.layers {
		w.Streamed += l.experts
		if count > 0 {
			w.Expert = max(w.Expert, l.experts/count)
			w.TouchedExp += l.experts / count * min(used, count)
		}
	}
	// A token reads one row of the embedding table, unless that is the head too.
	if t := s.model.Tensor("token_embd.weight"); t != nil && len(t.Shape) == 2 && s.model.Tensor("output.weight") != nil {
		w.TouchedDense -= int64(len(t.Data)) - int64(len(t.Data)/t.Shape[0])
	}
	w.TouchedToken = w.TouchedDense + w.TouchedExp
	return w
}
