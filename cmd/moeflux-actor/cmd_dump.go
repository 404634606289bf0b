package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/dump"
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

	engineFlags `group:"Engine:"`
}

// Run computes and writes the file, or compares two.
func (c *dumpCmd) Run(ctx context.Context, inv *invocation) (err error) {
	r := dump.Request{Layers: c.Layers, OneByOne: c.OneByOne, Plain: c.Plain, Input: c.Input, Only: c.Only, Experts: c.Experts, Weights: c.Weights}
	switch {
	case c.Compare && (len(c.Files) != 2 || c.IDs != "" || c.Input != "" || c.Out != ""):
		return usagef("--compare takes two files, and none of --ids, --input, --out")
	case c.Compare && !(c.Tolerance >= 0):
		return usagef("--tolerance %v: must be 0 or more", c.Tolerance)
	case c.Compare:
		return c.compare(inv)
	case len(c.Files) > 0:
		return usagef("unexpected %s; two files are compared with --compare", c.Files[0])
	case c.IDs == "" && c.Input == "" || c.Out == "":
		return usagef("give --ids FILE or --input FILE and --out FILE, or --compare and two files")
	case c.IDs != "":
		r.Texts, err = c.readPrompts(inv, c.IDs, c.Out)
	default:
		err = errors.Join(c.check(), checkOutput(c.Out))
	}
	if err == nil {
		err = r.Check()
	}
	inv.partial = true
	if err == nil {
		err = c.withTokens(ctx, inv, func(s *session) error { return c.dump(ctx, inv, s, r) })
	}
	if errors.As(err, new(*dump.SettingError)) {
		return usage(err)
	}
	return err
}

func (c *dumpCmd) dump(ctx context.Context, inv *invocation, s *session, r dump.Request) error {
	bar := newProgress(inv)
	defer bar.clear()
	tensors, names, err := dump.Run(ctx, s.engine, s.span, r, bar.of("dump"))
	if err != nil {
		return err
	}
	bar.clear()
	if err := safetensors.WriteFile(c.Out, tensors, dump.Metadata(s.engine.Info())); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(inv.stdout, map[string]any{"out": c.Out, "names": names, "tensors": len(tensors)})
	}
	inv.say("wrote %s of %s to %s", counted(len(tensors), "tensor"), counted(len(names), "input"), c.Out)
	return nil
}

// compare fails where a tensor departs, so that scripts can tell.
func (c *dumpCmd) compare(inv *invocation) error {
	r, err := dump.CompareFiles(c.Files[0], c.Files[1], c.Tolerance)
	if err != nil {
		return err
	}
	if c.JSON {
		err = writeJSON(inv.stdout, r)
	} else {
		_, err = fmt.Fprint(inv.stdout, r.Text())
	}
	if err == nil && r.First != nil {
		err = fmt.Errorf("the dumps differ, first in %s", r.First.Name)
	}
	return err
}
