package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/moeflux/moeflux-actor/internal/durable"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/io/synth"
)

type synthCmd struct {
	Dst string `arg:"" optional:"" name:"DST" help:"The packed model directory to make. It appears once it is complete. Without it, nothing is written."`

	Shape   string `placeholder:"NAME" help:"The published model whose shape to use: qwen3-30b-a3b, qwen3.5-35b-a3b, qwen3.5-122b-a10b, qwen3.5-397b-a17b, qwen3-next-80b-a3b, deepseek-v3 or mistral-small-4."`
	Layers  int    `placeholder:"N" help:"The number of layers, for a smaller model. Default: the shape's own."`
	Vocab   int    `placeholder:"N" help:"The size of the vocabulary. Default: the shape's own."`
	Experts int    `placeholder:"N" help:"The number of experts in a layer. Default: the shape's own."`
	Seed    uint64 `default:"1" placeholder:"N" help:"The random seed; the same seed gives the same bytes. Default: 1."`
	Route   string `default:"mild" placeholder:"LAW" help:"How tokens use experts: uniform (the worst case for a cache), skew (some experts are popular), mild (also topics that last; realistic) or strong. Default: mild."`
	Layout  string `placeholder:"NAME" help:"How matrices are stored: panels (16 rows together, what the kernels read fastest) or rows (as moeflux and flash-moe read them). The numbers are the same. Default: panels."`

	ExpertsOf string `placeholder:"DIR" help:"A model that synth made with the same flags except --route. DST links to its expert files, which do not depend on the route, instead of copying them."`

	Chain    int    `placeholder:"N" help:"Print N tokens of the chain: fed the first, greedy decoding must emit the rest."`
	Simulate int    `placeholder:"N" help:"Route N tokens of the chain and print what a cache of experts would see."`
	Routing  string `placeholder:"FILE" help:"With --simulate: write the routing there, a line for each token: number, token, and the experts of each layer."`

	Check  string `placeholder:"DIR" help:"Decode with the model in DIR, which synth made, and compare every token and every layer's experts with what they should be. Exits with 1 if any differs."`
	Tokens int    `default:"64" placeholder:"N" help:"With --check: tokens of the chain to feed, 8 of them at once and then one by one. Default: 64."`

	JSON bool `name:"json" help:"Print one JSON object: dst, bytes, seconds, chain, simulation; or with --check: tokens, differences, too_close, seconds."`

	flags.Engine `group:"Engine, with --check:"`
}

// synthResult is what synth --json prints.
type synthResult struct {
	Dst        string            `json:"dst,omitempty"`
	Bytes      int64             `json:"bytes,omitempty"`
	Seconds    float64           `json:"seconds,omitempty"` // of writing
	Chain      []int32           `json:"chain,omitempty"`
	Simulation *synth.Simulation `json:"simulation,omitempty"`
}

// Run makes a model, or says what one would do, or checks one.
func (c *synthCmd) Run(ctx context.Context, inv *process.Invocation) error {
	if err := c.checkUsage(); err != nil {
		return err
	}
	if c.Check != "" {
		return c.checkModel(ctx, inv)
	}
	shape, err := synth.Named(c.Shape)
	if err != nil {
		return process.Usage(err)
	}
	rowOrder, err := parseLayout(c.Layout)
	if err != nil {
		return err
	}
	m, err := synth.New(synth.Options{
		RowOrder: rowOrder, ExpertsOf: c.ExpertsOf,
		Shape: shape, Layers: c.Layers, Vocab: c.Vocab, Experts: c.Experts, Seed: c.Seed, Route: synth.Route(c.Route),
	})
	if errors.As(err, new(*synth.OptionError)) {
		return process.Usage(err)
	}
	if err != nil {
		return err
	}
	var r synthResult
	if c.Dst != "" {
		if err := c.write(ctx, inv, m, &r); err != nil {
			return err
		}
	}
	r.Chain = m.Chain(c.Chain)
	if c.Simulate > 0 {
		if r.Simulation, err = c.simulate(ctx, m); err != nil {
			return err
		}
	}
	return inv.Print(c.JSON, r, r.text)
}

// checkUsage refuses flags that do not go together.
func (c *synthCmd) checkUsage() error {
	switch {
	case c.Check != "" && (c.Dst != "" || c.Shape != "" || c.Layers != 0 || c.Vocab != 0 || c.Experts != 0 || c.Layout != "" || c.Chain != 0 || c.Simulate != 0):
		return process.Usagef("--check takes a finished model alone; leave DST, --shape, --layers, --vocab, --experts, --layout, --chain and --simulate out")
	case c.Model != "":
		return process.Usagef("--model is not for synth; name the model with --check DIR")
	case c.Check == "" && c.Shape == "":
		return process.Usagef("no --shape; available: %s", strings.Join(synth.Names(), ", "))
	case c.Check == "" && c.Dst == "" && c.Chain == 0 && c.Simulate == 0:
		return process.Usagef("nothing to do: give DST, --chain N or --simulate N")
	case c.ExpertsOf != "" && c.Dst == "":
		return process.Usagef("--experts-of does nothing without DST")
	case c.Routing != "" && c.Simulate == 0:
		return process.Usagef("--routing goes with --simulate N")
	case c.Chain < 0:
		return process.Usagef("--chain %d: must be 1 or more", c.Chain)
	case c.Simulate < 0 || c.Simulate == 1:
		return process.Usagef("--simulate %d: must be 2 or more", c.Simulate)
	case c.Tokens < 1:
		return process.Usagef("--tokens %d: must be 1 or more", c.Tokens)
	case c.Layers < 0 || c.Vocab < 0 || c.Experts < 0:
		return process.Usagef("--layers, --vocab and --experts cannot be negative")
	}
	return c.Engine.Check()
}

// write makes the directory.
func (c *synthCmd) write(ctx context.Context, inv *process.Invocation, m *synth.Model, r *synthResult) error {
	begin, bar := inv.Env.Now(), process.NewProgress(inv)
	err := m.Write(ctx, c.Dst, func(p synth.Progress) { bar.Update("writing", p.Done, p.Total, figures.Bytes) })
	bar.Clear()
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		inv.Say("interrupted; nothing is left of %s", c.Dst)
		return process.ErrInterrupted
	}
	if err != nil {
		return err
	}
	dense, experts := m.Size()
	r.Dst, r.Bytes, r.Seconds = c.Dst, dense+experts, inv.Env.Now().Sub(begin).Seconds()
	return nil
}

// simulate routes the chain, and writes the routing where it is wanted.
func (c *synthCmd) simulate(ctx context.Context, m *synth.Model) (s *synth.Simulation, err error) {
	if c.Routing == "" {
		return m.Simulate(ctx, c.Simulate, nil)
	}
	err = durable.Replace(c.Routing, durable.Shared, func(w io.Writer) (err error) {
		s, err = m.Simulate(ctx, c.Simulate, w)
		return err
	})
	return s, err
}

// text is the result for people.
func (r *synthResult) text() string {
	var b strings.Builder
	if r.Dst != "" {
		fmt.Fprintf(&b, "%s is complete: %s in %.1f s; check it with %s synth --check %s\n", r.Dst, figures.Bytes(r.Bytes), r.Seconds, process.Program, r.Dst)
	}
	if len(r.Chain) > 0 {
		fmt.Fprintln(&b, strings.Trim(fmt.Sprint(r.Chain), "[]"))
	}
	if r.Simulation != nil {
		b.WriteString(r.Simulation.Text())
	}
	return b.String()
}
