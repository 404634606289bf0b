package main

import (
	"context"
	"fmt"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
)

type inspectCmd struct {
	Dir    string `arg:"" optional:"" name:"DIR" help:"The packed model directory. Default: that of --model, or the demo model."`
	Verify bool   `help:"Compare every file with its checksum. It reads the whole model."`
	JSON   bool   `name:"json" help:"Print one JSON object."`

	engineFlags `group:"Engine:"`
}

// inspectResult is what inspect prints.
type inspectResult struct {
	Dir      string        `json:"dir"`
	Arch     model.Arch    `json:"architecture"`
	Shape    modelShape    `json:"shape"`
	Bytes    modelBytes    `json:"bytes"`
	State    *stateBytes   `json:"state"` // null if the model cannot be opened here
	Sampling modelSampling `json:"sampling"`
	// what the model would run with on this machine, or why it would not
	Here     figures.Settings `json:"here"`
	Verified bool             `json:"verified"` // only with --verify: every file has its checksum
}

type modelShape struct {
	Layers          int    `json:"layers"`
	LinearLayers    int    `json:"linear_attention_layers"`
	FullLayers      int    `json:"full_attention_layers"`
	LatentLayers    int    `json:"latent_attention_layers"`
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

// modelBytes are sizes of the files' content. What a token touches is all resident weights but the
// embedding table, of which it reads one row (all of it, if the head is the same matrix), and its
// experts of every layer.
type modelBytes struct {
	Resident int64 `json:"resident"` // everything but routed experts
	Streamed int64 `json:"streamed"` // routed experts
	Expert   int64 `json:"expert"`   // one record
	// of Resident and Streamed, what is stored in panels; the rest is in rows
	Panels       int64 `json:"panels"`
	TouchedToken int64 `json:"touched_per_token"`
	TouchedDense int64 `json:"touched_per_token_resident"`
	TouchedExp   int64 `json:"touched_per_token_experts"`
}

// stateBytes is the memory of one sequence.
type stateBytes struct {
	KVPerToken int64 `json:"kv_per_token"`
	Fixed      int64 `json:"fixed"`
}

// modelSampling is how the model's makers want tokens chosen. A text of run goes by it.
type modelSampling struct {
	File  bool   `json:"file"` // there is a generation_config.json
	Error string `json:"error,omitempty"`
	samplingUsed
}

func readSampling(dir string) (m modelSampling) {
	own, _, err := moeflux.Defaults(dir)
	if err != nil {
		return modelSampling{File: true, Error: oneLine(err)}
	}
	m.samplingUsed = (&samplingFlags{}).choose(own)
	raw, err := weights.ReadGeneration(dir)
	m.File = raw != nil && err == nil
	return m
}

// text is the values for people.
func (m *modelSampling) text() string {
	var parts []string
	add := func(set bool, format string, value any) {
		if set {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	add(m.Temperature > 0, "temperature %v", m.Temperature)
	add(m.TopK > 0, "top-k %v", m.TopK)
	add(m.TopP > 0 && m.TopP < 1, "top-p %v", m.TopP)
	add(m.MinP > 0, "min-p %v", m.MinP)
	add(m.RepeatPenalty > 0 && m.RepeatPenalty != 1, "repeat penalty %v", m.RepeatPenalty)
	switch {
	case m.Error != "":
		return m.Error
	case m.Temperature == 0:
		return strings.Join(append([]string{"greedy"}, parts...), ", ")
	}
	return strings.Join(parts, ", ")
}

// Run shows what a directory holds.
func (c *inspectCmd) Run(ctx context.Context, inv *invocation) error {
	if err := c.takeDir(c.Dir); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	of, err := c.files(ctx, inv)
	if err != nil {
		return err
	}
	r, err := inspectFiles(of)
	if err != nil {
		return err
	}
	if err := c.plan(ctx, inv, r); err != nil {
		return err
	}
	if c.Verify {
		if err := verify(ctx, of); err != nil {
			return err
		}
		r.Verified = true
	}
	return inv.print(c.JSON, r, r.text)
}

// files names the model's files.
func (f *engineFlags) files(ctx context.Context, inv *invocation) (of actors.Config, err error) {
	of.ExpertsDir = f.ExpertsDir
	of.Model, err = modelDir(ctx, inv, f.Model, f.CacheDir)
	return of, err
}

// verify compares all files with their checksums, wherever the experts lie.
func verify(ctx context.Context, of actors.Config) error {
	if of.ExpertsDir == "" {
		return convert.Verify(ctx, of.Model)
	}
	x, err := actors.OpenExperts(of)
	if err != nil {
		return err
	}
	defer x.Close()
	return convert.VerifyWith(ctx, of.Model, x.Dir())
}

// inspectFiles reads what the files say, without an engine.
func inspectFiles(of actors.Config) (*inspectResult, error) {
	c, err := actors.Describe(of)
	if err != nil {
		return nil, err
	}
	m, experts := c.Model, c.TouchedExperts(c.Model.NumExpertsPerTok)
	b := modelBytes{
		Resident: c.WeightBytes, Streamed: c.ExpertBytes, Expert: int64(c.Record.Bytes), Panels: c.PanelBytes,
		TouchedToken: c.TouchedWeights + experts, TouchedDense: c.TouchedWeights, TouchedExp: experts,
	}
	return &inspectResult{Dir: of.Model, Arch: m.Arch, Bytes: b, Shape: shapeOf(m, c.Record), Sampling: readSampling(of.Model)}, nil
}

func shapeOf(cfg *model.Config, l model.ExpertLayout) modelShape {
	return modelShape{
		Layers: cfg.NumHiddenLayers, LinearLayers: cfg.Count(model.LinearAttention), FullLayers: cfg.Count(model.FullAttention),
		LatentLayers: cfg.Count(model.LatentAttention), DenseLayers: cfg.NumHiddenLayers - len(cfg.MoELayers()),
		Hidden: cfg.HiddenSize, Heads: cfg.NumAttentionHeads, KVHeads: cfg.NumKeyValueHeads, HeadDim: cfg.HeadDim,
		Experts: cfg.NumExperts, ExpertsPerToken: cfg.NumExpertsPerTok, ExpertWidth: cfg.MoEIntermediateSize,
		SharedWidth: cfg.SharedExpertIntermediateSize, Vocab: cfg.VocabSize, Context: cfg.MaxPositionEmbeddings,
		TiedEmbeddings: cfg.TieWordEmbeddings,
		ExpertFormats:  fmt.Sprintf("%v, %v, %v", l.Gate.Format, l.Up.Format, l.Down.Format),
	}
}

// plan says what the engine would run with. That it would not is part of the result; bad flags are
// an error.
func (c *inspectCmd) plan(ctx context.Context, inv *invocation, r *inspectResult) error {
	c.Model = r.Dir
	i, err := c.engineFlags.plan(ctx, inv, c.logger(inv.stderr))
	switch {
	case isUsage(err) || err != nil && ctx.Err() != nil:
		return err
	case err != nil:
		r.Here.Error = oneLine(err)
		return nil
	}
	r.State = &stateBytes{KVPerToken: i.KVBytesPerPos, Fixed: i.StateBytes}
	r.Here = figures.SettingsOf(&i)
	sayTopK(inv, &i, r.Shape.ExpertsPerToken)
	return nil
}

// layers lists the kinds of layers that there are.
func (s *modelShape) layers() string {
	parts := []string{}
	for _, k := range []struct {
		n    int
		what string
	}{
		{s.LinearLayers, "linear attention"}, {s.FullLayers, "full attention"}, {s.LatentLayers, "latent attention"},
		{s.DenseLayers, "without experts"},
	} {
		if k.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", k.n, k.what))
		}
	}
	return fmt.Sprintf("%d: %s", s.Layers, strings.Join(parts, ", "))
}

func (s *modelShape) shared() string {
	if s.SharedWidth == 0 {
		return ""
	}
	return fmt.Sprintf("; shared expert of width %d", s.SharedWidth)
}

// layout says how the matrices are stored.
func (b *modelBytes) layout() string {
	if b.Panels == 0 {
		return "rows, as moeflux and flash-moe read them"
	}
	return fmt.Sprintf("panels: %s of %s; the rest in rows", formatBytes(b.Panels), formatBytes(b.Resident+b.Streamed))
}

// text is the result for people.
func (r *inspectResult) text() string {
	var b strings.Builder
	line := func(name, format string, args ...any) { figures.Line(&b, name, format, args...) }
	s := r.Shape
	line("model", "%s", r.Dir)
	line("architecture", "%s", r.Arch)
	line("layers", "%s", s.layers())
	line("sizes", "hidden %d, %d heads of %d (%d key-value heads), vocabulary %d, context %d", s.Hidden, s.Heads, s.HeadDim, s.KVHeads, s.Vocab, s.Context)
	line("experts", "%d a layer, %d per token, width %d, stored as %s%s", s.Experts, s.ExpertsPerToken, s.ExpertWidth, s.ExpertFormats, s.shared())
	line("layout", "%s", r.Bytes.layout())
	line("resident", "%s", formatBytes(r.Bytes.Resident))
	line("streamed", "%s in experts of %s", formatBytes(r.Bytes.Streamed), formatBytes(r.Bytes.Expert))
	line("per token", "%s touched: %s resident, %s experts", formatBytes(r.Bytes.TouchedToken), formatBytes(r.Bytes.TouchedDense), formatBytes(r.Bytes.TouchedExp))
	if r.State != nil {
		line("per sequence", "%s fixed, %s per position", formatBytes(r.State.Fixed), formatBytes(r.State.KVPerToken))
	}
	line("sampling", "%s", r.Sampling.text())
	if h := r.Here; h.Error != "" {
		line("here", "would not run: %s", h.Error)
	} else {
		line("here", "device %s, %s activations, %s keys and values, expert I/O %s, %d slots of %s, prefetch %s, context %d%s", h.Device, h.Activations, h.KV, figures.ExpertsText(h.ExpertIO, h.Resident), h.Slots, formatBytes(int64(h.SlotBytes)), h.Prefetch, h.Context, h.Parked(", "))
	}
	if r.Verified {
		line("checksums", "all files match")
	}
	return b.String()
}
