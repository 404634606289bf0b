package dump

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model"
	"github.com/moeflux/moeflux-actor/stages"
)

// tensors gathers the dumps of a text's chunks.
type tensors struct {
	name   string
	model  *model.Config
	topK   int
	axis   bool // what a chunk has one of gets an axis of chunks
	chunks int
	all    []actors.Tensor
}

func (t *tensors) add(dump []actors.Tensor) {
	t.chunks++
	if t.all == nil {
		t.all = dump
		return
	}
	for i := range dump {
		t.all[i].Floats = append(t.all[i].Floats, dump[i].Floats...)
		t.all[i].Ints = append(t.all[i].Ints, dump[i].Ints...)
	}
}

// drop leaves the first n rows out.
func (t *tensors) drop(n int) {
	for i := range t.all {
		if x := &t.all[i]; !x.Quantity.OfChunk() {
			x.Floats, x.Ints = x.Floats[min(n*x.Width, len(x.Floats)):], x.Ints[min(n*x.Width, len(x.Ints)):]
		}
	}
}

// keepExperts leaves all but the first k experts of each row out.
func (t *tensors) keepExperts(k int) {
	i := slices.IndexFunc(t.all, func(x actors.Tensor) bool { return x.Quantity == stages.DumpExperts })
	for ; i >= 0 && i < len(t.all) && t.all[i].Quantity == stages.DumpExperts; i++ {
		x, n := &t.all[i], k*t.model.HiddenSize
		var kept []float32
		for at := 0; at < len(x.Floats); at += x.Width {
			kept = append(kept, x.Floats[at:at+n]...)
		}
		x.Floats, x.Width = kept, n
	}
}

// list returns what was gathered in the order of computation.
func (t *tensors) list() []safetensors.Tensor {
	slices.SortStableFunc(t.all, func(a, b actors.Tensor) int { return cmp.Compare(a.Layer, b.Layer) })
	var out []safetensors.Tensor
	for i := range t.all {
		x := &t.all[i]
		if x.Quantity.OfFoldedForm() && allNaN(x.Floats) {
			continue
		}
		shape := x.Quantity.Shape(t.model, x.Layer, t.topK)
		if x.Quantity == stages.DumpExperts { // perhaps fewer than a token has
			shape[0] = x.Width / t.model.HiddenSize
		}
		if !x.Quantity.OfChunk() || t.axis {
			shape = append([]int{x.Len() / max(x.Width, 1)}, shape...)
		}
		out = append(out, tensorOf(fmt.Sprintf("%s.layer.%d.%v", t.name, x.Layer, x.Quantity), x, shape))
	}
	return out
}

func allNaN(x []float32) bool {
	return !slices.ContainsFunc(x, func(v float32) bool { return v == v })
}

func tensorOf(name string, x *actors.Tensor, shape []int) safetensors.Tensor {
	out := safetensors.Tensor{Name: name, DType: safetensors.F32, Shape: shape, Data: make([]byte, 0, 4*x.Len())}
	if x.Quantity.Ints() {
		out.DType = safetensors.I32
	}
	for _, v := range x.Ints {
		out.Data = binary.LittleEndian.AppendUint32(out.Data, uint32(v))
	}
	for _, v := range x.Floats {
		out.Data = binary.LittleEndian.AppendUint32(out.Data, math.Float32bits(v))
	}
	return out
}
