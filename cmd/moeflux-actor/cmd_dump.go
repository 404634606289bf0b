package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/dump"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/io/safetensors"
)

type dumpCmd struct {
	Files     []string  `arg:"" optional:"" name:"file" help:"With --compare: the two files."`
	IDs       string    `name:"ids" placeholder:"FILE" help:"A JSON file with an object of name to list of token ids; - for stdin."`
	Layers    string    `default:"0-" placeholder:"L,..." help:"Which layers, from 0: numbers and ranges, like 0,7,12-. Default: all."`
	Out       string    `placeholder:"FILE" help:"The safetensors file to write. It appears complete or not at all."`
	OneByOne  bool      `help:"Feed the ids one at a time, as generation does, not as a prompt."`
	Plain     bool      `help:"Compute operations one by one that the device would compute together."`
	Input     string    `placeholder:"FILE" help:"A safetensors file of hidden states P.input [rows, hidden]. Each layer reads them by itself, after the ids of the same name, if there are any."`
	Only      string    `placeholder:"PART" help:"A part by itself: embedding of the ids; experts, of what they would read (--input); head, the final norm and the logits of --input."`
	Experts   []int     `placeholder:"E,..." help:"With --only experts: which experts. Default: those that the router chooses."`
	Weights   []float32 `placeholder:"W,..." help:"With --experts: their weights. Default: 1 each."`
	Compare   bool      `help:"Compare two files that dump or logits wrote: the first tensor, in the order of computation, that departs."`
	Tolerance float64   `default:"0.001" placeholder:"X" help:"With --compare: how far a number may be off, as a part of the largest number of its row. Default: 0.001."`
	JSON      bool      `name:"json" help:"Print one JSON object: out, names, tensors; with --compare the differences."`

	flags.Engine `group:"Engine:"`
}

// Run computes and writes the file, or compares two.
func (c *dumpCmd) Run(ctx context.Context, inv *process.Invocation) (err error) {
	r := dump.Request{Layers: c.Layers, OneByOne: c.OneByOne, Plain: c.Plain, Input: c.Input, Only: c.Only, Experts: c.Experts, Weights: c.Weights}
	switch {
	case c.Compare && (len(c.Files) != 2 || c.IDs != "" || c.Input != "" || c.Out != ""):
		return process.Usagef("--compare takes two files, and none of --ids, --input, --out")
	case c.Compare && !(c.Tolerance >= 0):
		return process.Usagef("--tolerance %v: must be 0 or more", c.Tolerance)
	case c.Compare:
		return c.compare(inv)
	case len(c.Files) > 0:
		return process.Usagef("unexpected %s; two files are compared with --compare", c.Files[0])
	case c.IDs == "" && c.Input == "" || c.Out == "":
		return process.Usagef("give --ids FILE or --input FILE and --out FILE, or --compare and two files")
	case c.IDs != "":
		r.Texts, err = readPrompts(inv, &c.Engine, c.IDs, c.Out)
	default:
		err = errors.Join(c.Check(), process.CheckOutput(c.Out))
	}
	if err == nil {
		err = r.Check()
	}
	inv.Partial = true
	if err == nil {
		err = c.WithTokens(ctx, inv, func(s *flags.Opened) error { return c.dump(ctx, inv, s, r) })
	}
	if errors.As(err, new(*dump.SettingError)) {
		return process.Usage(err)
	}
	return err
}

func (c *dumpCmd) dump(ctx context.Context, inv *process.Invocation, s *flags.Opened, r dump.Request) error {
	bar := process.NewProgress(inv)
	defer bar.Clear()
	tensors, names, err := dump.Run(ctx, s.Engine, s.Span, r, bar.Of("dump"))
	if err != nil {
		return err
	}
	bar.Clear()
	if err := safetensors.WriteFile(c.Out, tensors, dump.Metadata(s.Engine.Info())); err != nil {
		return err
	}
	if c.JSON {
		return process.WriteJSON(inv.Stdout, map[string]any{"out": c.Out, "names": names, "tensors": len(tensors)})
	}
	inv.Say("wrote %s of %s to %s", figures.Counted(len(tensors), "tensor"), figures.Counted(len(names), "input"), c.Out)
	return nil
}

// compare fails where a tensor departs, so that scripts can tell.
func (c *dumpCmd) compare(inv *process.Invocation) error {
	r, err := dump.CompareFiles(c.Files[0], c.Files[1], c.Tolerance)
	if err != nil {
		return err
	}
	if c.JSON {
		err = process.WriteJSON(inv.Stdout, r)
	} else {
		_, err = fmt.Fprint(inv.Stdout, r.Text())
	}
	if err == nil && r.First != nil {
		err = fmt.Errorf("the dumps differ, first in %s", r.First.Name)
	}
	return err
}
