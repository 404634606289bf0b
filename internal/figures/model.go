package figures

import (
	"fmt"
	"strings"

	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/model"
)

// Shape is what a model consists of.
type Shape struct {
	Layers          int    `json:"layers"`
	LinearLayers    int    `json:"linear_attention_layers"`
	FullLayers      int    `json:"full_attention_layers"`
	LatentLayers    int    `json:"latent_attention_layers"`
	WindowLayers    int    `json:"sliding_attention_layers,omitempty"`
	DenseLayers     int    `json:"dense_layers"` // without routed experts
	Hidden          int    `json:"hidden"`
	Heads           int    `json:"heads"`
	KVHeads         int    `json:"kv_heads"`
	HeadDim         int    `json:"head_dim"`
	Experts         int    `json:"experts"`
	ExpertsPerToken int    `json:"experts_per_token"`
	ExpertWidth     int    `json:"expert_width"`
	SharedWidth     int    `json:"shared_expert_width"`
	Vocab           int    `json:"vocab"`
	Context         int    `json:"context"`
	TiedEmbeddings  bool   `json:"tied_embeddings"`
	ExpertFormats   string `json:"expert_formats"` // gate, up, down
}

// Weights are sizes of the files' content. What a token touches is all resident weights but the
// embedding table, of which it reads one row (all of it, if the head is the same matrix), and its
// experts of every layer.
type Weights struct {
	Resident int64 `json:"resident"` // everything but routed experts
	Streamed int64 `json:"streamed"` // routed experts
	Expert   int64 `json:"expert"`   // one record
	// of Resident and Streamed, what is stored in panels; the rest is in rows
	Panels       int64 `json:"panels"`
	TouchedToken int64 `json:"touched_per_token"`
	TouchedDense int64 `json:"touched_per_token_resident"`
	TouchedExp   int64 `json:"touched_per_token_experts"`
}

// ShapeOf returns the shape of a model.
func ShapeOf(c *actors.Contents) Shape {
	cfg, l := c.Model, c.Record
	return Shape{
		Layers: cfg.NumHiddenLayers, LinearLayers: cfg.Count(model.LinearAttention), FullLayers: cfg.Count(model.FullAttention), WindowLayers: cfg.Count(model.WindowAttention),
		LatentLayers: cfg.Count(model.LatentAttention), DenseLayers: cfg.NumHiddenLayers - len(cfg.MoELayers()),
		Hidden: cfg.HiddenSize, Heads: cfg.NumAttentionHeads, KVHeads: cfg.NumKeyValueHeads, HeadDim: cfg.HeadDim,
		Experts: cfg.NumExperts, ExpertsPerToken: cfg.NumExpertsPerTok, ExpertWidth: cfg.MoEIntermediateSize,
		SharedWidth: cfg.SharedExpertIntermediateSize, Vocab: cfg.VocabSize, Context: cfg.MaxPositionEmbeddings,
		TiedEmbeddings: cfg.TieWordEmbeddings,
		ExpertFormats:  fmt.Sprintf("%v, %v, %v", l.Gate.Format, l.Up.Format, l.Down.Format),
	}
}

// WeightsOf returns the sizes of a model whose tokens use as many experts as it was trained with.
func WeightsOf(c *actors.Contents) Weights {
	experts := c.TouchedExperts(c.Model.NumExpertsPerTok)
	return Weights{
		Resident: c.WeightBytes, Streamed: c.ExpertBytes, Expert: int64(c.Record.Bytes), Panels: c.PanelBytes,
		TouchedToken: c.TouchedWeights + experts, TouchedDense: c.TouchedWeights, TouchedExp: experts,
	}
}

// Kinds lists the kinds of layers that there are.
func (s *Shape) Kinds() string {
	parts := []string{}
	for _, k := range []struct {
		n    int
		what string
	}{
		{s.LinearLayers, "linear attention"}, {s.FullLayers, "full attention"}, {s.LatentLayers, "latent attention"},
		{s.WindowLayers, "attention with a window"},
		{s.DenseLayers, "without experts"},
	} {
		if k.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k.n, k.what))
		}
	}
	return fmt.Sprintf("%d: %s", s.Layers, strings.Join(parts, ", "))
}

// Shared describes the shared expert, after a separator; "" if there is none.
func (s *Shape) Shared() string {
	if s.SharedWidth == 0 {
		return ""
	}
	return fmt.Sprintf("; shared expert of width %d", s.SharedWidth)
}

// Layout says how the matrices are stored.
func (b *Weights) Layout() string {
	if b.Panels == 0 {
		return "rows, as moeflux and flash-moe read them"
	}
	return fmt.Sprintf("panels: %s of %s; the rest in rows", Bytes(b.Panels), Bytes(b.Resident+b.Streamed))
}
