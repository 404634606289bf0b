package stages

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/moeflux/moeflux-actor/model"
)

// Quantity is what a layer takes, makes on the way, or gives. The constants are in the order of
// computation, and their comments say what one row of each is; all but picks and positions are
// float32.
type Quantity uint8

// The quantities.
const (
	DumpInput     Quantity = iota // [hidden], the residual stream before the layer; of the layer after the last, behind it
	DumpInputNorm                 // [hidden], the mixer's input

	// Of the gated delta rule. Those that do not belong to a row are of the chunk: before its first
	// row, and after its last.
	DumpConvStateIn // [kernel-1, channels], of the chunk: the last inputs of the convolution, oldest first
	DumpStateIn     // [value heads, value dim, key dim], of the chunk
	DumpQKV         // [channels], the input of the convolution
	DumpZ           // [value heads, value dim], what the output is gated with
	DumpAlpha       // [value heads], of which the decay is computed
	DumpBeta        // [value heads], of which the learning rate is computed
	DumpConv        // [channels], queries, keys and values as they enter the delta rule
	DumpConvState   // like conv_state_in, after the chunk
	DumpState       // like state_in, after the chunk

	// Of attention.
	DumpQLat      // [query rank], compressed queries after their norm
	DumpQ         // [heads, head dim], after norm and rotation
	DumpQGate     // [heads, head dim], what the heads' outputs are gated with
	DumpQPe       // [heads, rotated], the rotated part of q
	DumpK         // [key-value heads, head dim], after norm and rotation
	DumpV         // [key-value heads, head dim]
	DumpKVLat     // [rank], the latent after its norm
	DumpKPe       // [rotated], the rotated key that all heads share
	DumpPositions // [budget] or [key-value heads, budget], int32, the positions or blocks that a row attends to, rising, and -1 where they are fewer
	DumpQFolded   // [heads, rank], queries in the space of latents; NaN where the expanded form computes
	DumpLatents   // [heads, rank], the sums of latents; likewise

	DumpHeads      // [heads, value dim], what attention or the delta rule gives
	DumpHeadsGated // [heads, value dim], the same after the gate, and after the delta rule's norm
	DumpAttn       // [hidden], what the mixer adds to the residual stream
	DumpResidual   // [hidden], the residual stream after that
	DumpPostNorm   // [hidden], the input of router, experts or dense MLP

	DumpScores     // [experts], of the router, before softmax or sigmoid
	DumpPicks      // [top k], int32, heaviest first
	DumpWeights    // [top k], of the picks
	DumpSharedGate // [1], the score of the shared expert's gate, before its sigmoid
	DumpShared     // [hidden], of the shared expert, before its gate
	DumpExperts    // [top k, hidden], of each picked expert
	DumpRouted     // [hidden], the picked experts' weighted sum
	DumpSum        // [hidden], what experts or the dense MLP add to the residual stream
	DumpOutput     // [hidden], the residual stream after the layer

	DumpFinalNorm // [hidden], of the layer after the last: what the head reads, in rows that want logits

	NumQuantities int = iota
)

var quantityNames = [NumQuantities]string{
	"input", "input_norm",
	"conv_state_in", "state_in", "qkv", "z", "alpha", "beta", "conv", "conv_state", "state",
	"q_lat", "q", "q_gate", "q_pe", "k", "v", "kv_lat", "k_pe", "positions", "q_folded", "latents",
	"heads", "heads_gated", "attn", "residual", "post_norm",
	"router_scores", "picks", "weights", "shared_gate", "shared", "experts", "routed", "sum", "output", "final_norm",
}

func (q Quantity) String() string {
	if int(q) < NumQuantities {
		return quantityNames[q]
	}
	return fmt.Sprintf("quantity %d", uint8(q))
}

// ParseQuantity is the opposite of String.
func ParseQuantity(name string) (Quantity, bool) {
	i := slices.Index(quantityNames[:], name)
	return Quantity(max(i, 0)), i >= 0
}

// Ints reports whether the quantity is int32.
func (q Quantity) Ints() bool { return q == DumpPicks || q == DumpPositions }

// OfChunk reports whether there is one of a chunk, and not one of each row.
func (q Quantity) OfChunk() bool {
	switch q {
	case DumpConvStateIn, DumpStateIn, DumpConvState, DumpState:
		return true
	}
	return false
}

// Before reports whether the quantity is of the time before the chunk: the first step has it.
func (q Quantity) Before() bool { return q == DumpConvStateIn || q == DumpStateIn }

// OfFoldedForm reports whether only the folded form of latent attention has the quantity.
func (q Quantity) OfFoldedForm() bool { return q == DumpQFolded || q == DumpLatents }

// Shape returns the shape of one row, or of what a chunk has, in a layer that picks topK experts.
// It is nil where the layer has no such quantity. The layer after the last is the final norm.
func (q Quantity) Shape(m *model.Config, layer, topK int) []int {
	hidden := []int{m.HiddenSize}
	switch {
	case layer < 0 || layer > len(m.Layers) || int(q) >= NumQuantities || (layer == len(m.Layers)) != (q == DumpFinalNorm) && q != DumpInput:
		return nil
	case q == DumpInput, q == DumpFinalNorm:
		return hidden
	}
	switch q {
	case DumpInputNorm, DumpAttn, DumpResidual, DumpPostNorm, DumpSum, DumpOutput:
		return hidden
	}
	if q >= DumpScores {
		return q.moeShape(m, layer, topK)
	}
	switch m.Layers[layer].Mixer {
	case model.LinearAttention:
		return q.linearShape(m)
	case model.LatentAttention:
		return q.latentShape(m)
	}
	return q.fullShape(m, m.Layers[layer])
}

func (q Quantity) linearShape(m *model.Config) []int {
	values := []int{m.LinearNumValueHeads, m.LinearValueHeadDim}
	switch q {
	case DumpConvStateIn, DumpConvState:
		return []int{m.LinearConvKernelDim - 1, m.LinearConvDim()}
	case DumpStateIn, DumpState:
		return append(values, m.LinearKeyHeadDim)
	case DumpQKV, DumpConv:
		return []int{m.LinearConvDim()}
	case DumpZ, DumpHeads, DumpHeadsGated:
		return values
	case DumpAlpha, DumpBeta:
		return values[:1]
	}
	return nil
}

func (q Quantity) fullShape(m *model.Config, layer model.Layer) []int {
	a := m.Attention(layer.Mixer)
	switch q {
	case DumpPositions:
		if layer.Indexer == model.OwnIndexer {
			return []int{m.IndexNHeads, m.IndexTopK}
		}
	case DumpQGate, DumpHeadsGated:
		if !m.AttnOutputGate {
			return nil
		}
		return []int{a.Heads, a.ValueDim}
	case DumpQ:
		return []int{a.Heads, a.HeadDim}
	case DumpHeads:
		return []int{a.Heads, a.ValueDim}
	case DumpK:
		return []int{a.KVHeads, a.HeadDim}
	case DumpV:
		return []int{a.KVHeads, a.ValueDim}
	}
	return nil
}

func (q Quantity) latentShape(m *model.Config) []int {
	heads := m.NumAttentionHeads
	switch q {
	case DumpQLat:
		if m.QLoraRank > 0 {
			return []int{m.QLoraRank}
		}
	case DumpQ:
		return []int{heads, m.QKNopeHeadDim + m.QKRopeHeadDim}
	case DumpQPe:
		return []int{heads, m.QKRopeHeadDim}
	case DumpKVLat:
		return []int{m.KVLoraRank}
	case DumpKPe:
		return []int{m.QKRopeHeadDim}
	case DumpPositions:
		if m.IndexTopK > 0 {
			return []int{m.IndexTopK}
		}
	case DumpQFolded, DumpLatents:
		return []int{heads, m.KVLoraRank}
	case DumpHeads:
		return []int{heads, m.VHeadDim}
	}
	return nil
}

func (q Quantity) moeShape(m *model.Config, layer, topK int) []int {
	if m.Layers[layer].FFN == model.DenseMLP {
		return nil
	}
	switch q {
	case DumpScores:
		return []int{m.NumExperts}
	case DumpPicks, DumpWeights:
		return []int{topK}
	case DumpSharedGate:
		if m.SharedExpert == model.SharedExpertGated {
			return []int{1}
		}
	case DumpShared:
		if m.SharedExpert != model.NoSharedExpert {
			return []int{m.HiddenSize}
		}
	case DumpExperts:
		return []int{topK, m.HiddenSize}
	case DumpRouted:
		return []int{m.HiddenSize}
	}
	return nil
}

// Want names a quantity of a layer. Layers count from 0; the one after the last is the final norm.
type Want struct {
	Quantity Quantity
	Layer    int
}

func (w Want) String() string { return fmt.Sprintf("%v:%d", w.Quantity, w.Layer) }

// Compare orders wants by quantity, then by layer.
func (w Want) Compare(o Want) int {
	return cmp.Or(cmp.Compare(w.Quantity, o.Quantity), cmp.Compare(w.Layer, o.Layer))
}

// WantsOf returns all quantities that the given layers of a model have, in the order of Compare.
func WantsOf(m *model.Config, layers []int) []Want {
	var all []Want
	for q := range Quantity(NumQuantities) {
		for _, l := range layers {
			if q.Shape(m, l, 1) != nil {
				all = append(all, Want{q, l})
			}
		}
	}
	return SortWants(all)
}

// SortWants puts wants into the order of Compare, in place, each once.
func SortWants(all []Want) []Want {
	slices.SortFunc(all, Want.Compare)
	return slices.Compact(all)
}

// CheckWants reports wants that are not in the order of Compare, or of no quantity.
func CheckWants(all []Want) error {
	for i, w := range all {
		if int(w.Quantity) >= NumQuantities || i > 0 && all[i-1].Compare(w) >= 0 {
			return fmt.Errorf("stages: wants %v are not in order", all)
		}
	}
	return nil
}

// Tensor is one quantity of a layer: Width numbers for each row of a chunk or step, row after row.
// Of a quantity that is not of rows a chunk has one, and a step one for each segment.
type Tensor struct {
	Want
	Width  int
	Floats []float32
	Ints   []int32 // of quantities that are int32
}

// NewTensor returns a tensor of n rows. Its numbers are 0.
func NewTensor(w Want, width, n int) Tensor {
	t := Tensor{Want: w, Width: width}
	if w.Quantity.Ints() {
		t.Ints = make([]int32, n*width)
	} else {
		t.Floats = make([]float32, n*width)
	}
	return t
}

// Len returns how many numbers the tensor has.
func (t *Tensor) Len() int { return len(t.Floats) + len(t.Ints) }

// CopyRows copies n rows of src, from row from on, to t from row to on.
func (t *Tensor) CopyRows(to int, src *Tensor, from, n int) {
	w := t.Width
	if t.Quantity.Ints() {
		copy(t.Ints[to*w:], src.Ints[from*w:(from+n)*w])
		return
	}
	copy(t.Floats[to*w:], src.Floats[from*w:(from+n)*w])
}

// FindTensor returns the tensor of a want in a list in the order of Compare, or nil.
func FindTensor(list []Tensor, w Want) *Tensor {
	i, ok := slices.BinarySearchFunc(list, w, func(t Tensor, w Want) int { return t.Want.Compare(w) })
	if !ok {
		return nil
	}
	return &list[i]
}
