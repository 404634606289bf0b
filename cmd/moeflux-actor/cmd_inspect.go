package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/actors"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/forecast"
	"github.com/moeflux/moeflux-actor/internal/ggufinfo"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/gguf"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model"
)

type inspectCmd struct {
	Dir    string `arg:"" optional:"" name:"DIR|FILE.gguf" help:"The packed model directory, or a GGUF file (any part, if there are several). Default: that of --model, or the demo model."`
	Verify bool   `help:"Compare every file with its checksum. It reads the whole model."`
	JSON   bool   `name:"json" help:"Print one JSON object."`

	flags.Engine `group:"Engine:"`
}

// inspectResult is what inspect prints.
type inspectResult struct {
	Dir      string          `json:"dir"`
	Arch     model.Arch      `json:"architecture"`
	Shape    figures.Shape   `json:"shape"`
	Bytes    figures.Weights `json:"bytes"`
	State    *stateBytes     `json:"state"` // null if the model cannot be opened here
	Sampling modelSampling   `json:"sampling"`
	// what the model would run with on this machine, or why it would not
	Here     figures.Settings `json:"here"`
	Hosts    *forecast.Hosts  `json:"hosts"`    // null without --hosts
	Verified bool             `json:"verified"` // only with --verify: every file has its checksum
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
	flags.SamplingUsed
}

func readSampling(dir string) (m modelSampling) {
	own, _, err := moeflux.Defaults(dir)
	if err != nil {
		return modelSampling{File: true, Error: flags.OneLine(err)}
	}
	m.SamplingUsed = (&flags.Sampling{}).Choose(own)
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

// gguf shows what a GGUF file holds.
func (c *inspectCmd) gguf(inv *process.Invocation) error {
	if c.Verify {
		return process.Usagef("--verify: %s is a GGUF file, which has no checksums", c.Model)
	}
	r, err := ggufinfo.Read(c.Model)
	if err != nil {
		return err
	}
	return inv.Print(c.JSON, r, r.String)
}

// Run shows what a directory or a GGUF file holds.
func (c *inspectCmd) Run(ctx context.Context, inv *process.Invocation) error {
	if err := c.TakeDir(c.Dir); err != nil {
		return err
	}
	if err := c.Check(); err != nil {
		return err
	}
	if gguf.Is(c.Model) {
		return c.gguf(inv)
	}
	of, err := filesOf(ctx, inv, &c.Engine)
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
	return inv.Print(c.JSON, r, r.text)
}

// filesOf names the model's files.
func filesOf(ctx context.Context, inv *process.Invocation, f *flags.Engine) (of actors.Config, err error) {
	of.ExpertsDir = f.ExpertsDir
	of.Model, err = flags.ModelDir(ctx, inv, f.Model, f.CacheDir)
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
	return &inspectResult{Dir: of.Model, Arch: c.Model.Arch, Shape: figures.ShapeOf(&c), Bytes: figures.WeightsOf(&c), Sampling: readSampling(of.Model)}, nil
}

// plan says what the engine would run with. That it would not is part of the result; bad flags are
// an error.
func (c *inspectCmd) plan(ctx context.Context, inv *process.Invocation, r *inspectResult) (err error) {
	c.Model = r.Dir
	cfg, err := c.Configure(ctx, inv, c.Logger(inv.Stderr))
	if err == nil {
		defer func() { err = errors.Join(err, cfg.Device.Close()) }()
		var i actors.Info
		if i, err = moeflux.Plan(cfg.Model, moeflux.Options{Config: cfg, Tuned: moeflux.TunedOff}); err == nil {
			return c.here(ctx, inv, cfg, &i, r)
		}
	}
	if process.IsUsage(err) || ctx.Err() != nil {
		return err
	}
	r.Here.Error = flags.OneLine(err)
	return nil
}

// here says what the model would run with, and what expert hosts have.
func (c *inspectCmd) here(ctx context.Context, inv *process.Invocation, cfg actors.Config, i *actors.Info, r *inspectResult) (err error) {
	r.State = &stateBytes{KVPerToken: i.KVBytesPerPos, Fixed: i.StateBytes}
	r.Here = figures.SettingsOf(i)
	flags.SayTopK(inv, i, r.Shape.ExpertsPerToken)
	r.Hosts, err = forecast.SurveyHosts(ctx, cfg, i)
	return err
}

// text is the result for people.
func (r *inspectResult) text() string {
	var b strings.Builder
	line := func(name, format string, args ...any) { figures.Line(&b, name, format, args...) }
	s := r.Shape
	line("model", "%s", r.Dir)
	line("architecture", "%s", r.Arch)
	line("layers", "%s", s.Kinds())
	line("sizes", "hidden %d, %d heads of %d (%d key-value heads), vocabulary %d, context %d", s.Hidden, s.Heads, s.HeadDim, s.KVHeads, s.Vocab, s.Context)
	line("experts", "%d a layer, %d per token, width %d, stored as %s%s", s.Experts, s.ExpertsPerToken, s.ExpertWidth, s.ExpertFormats, s.Shared())
	line("layout", "%s", r.Bytes.Layout())
	line("resident", "%s", figures.Bytes(r.Bytes.Resident))
	line("streamed", "%s in experts of %s", figures.Bytes(r.Bytes.Streamed), figures.Bytes(r.Bytes.Expert))
	line("per token", "%s touched: %s resident, %s experts", figures.Bytes(r.Bytes.TouchedToken), figures.Bytes(r.Bytes.TouchedDense), figures.Bytes(r.Bytes.TouchedExp))
	if r.State != nil {
		line("per sequence", "%s fixed, %s per position", figures.Bytes(r.State.Fixed), figures.Bytes(r.State.KVPerToken))
	}
	line("sampling", "%s", r.Sampling.text())
	if h := r.Here; h.Error != "" {
		line("here", "would not run: %s", h.Error)
	} else {
		line("here", "device %s, %s activations, %s keys and values, expert I/O %s, %d slots of %s, prefetch %s, context %d%s", h.Device, h.Activations, h.KV, figures.ExpertsText(h.ExpertIO, h.Resident), h.Slots, figures.Bytes(int64(h.SlotBytes)), h.Prefetch, h.Context, h.Parked(", "))
	}
	if r.Hosts != nil {
		r.Hosts.Lines(&b)
	}
	if r.Verified {
		line("checksums", "all files match")
	}
	return b.String()
}
