package main

import (
	"context"
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/dump"
	"github.com/moeflux/moeflux-actor/internal/eval"
	"github.com/moeflux/moeflux-actor/io/safetensors"
)

type dumpCmd struct {
	Files     []string `arg:"" optional:"" name:"file" help:"With --compare: the two files."`
	IDs       string   `name:"ids" placeholder:"FILE" help:"A JSON file with an object of name to list of token ids; - for stdin."`
	Layers    string   `default:"0-" placeholder:"L,..." help:"Which layers, from 0: numbers and ranges, like 0,7,12-. Default: all."`
	Out       string   `placeholder:"FILE" help:"The safetensors file to write. It appears complete or not at all."`
	OneByOne  bool     `help:"Feed the ids one at a time, as generation does, not as a prompt."`
	Compare   bool     `help:"Compare two files that dump or logits wrote: the first tensor, in the order of computation, that departs."`
	Tolerance float64  `default:"0.001" placeholder:"X" help:"With --compare: how far a number may be off, as a part of the largest number of its row. Default: 0.001."`
	JSON      bool     `name:"json" help:"Print one JSON object: out, names, tensors; with --compare the differences."`

	engineFlags `group:"Engine:"`
}

// Run computes and writes the file, or compares two.
func (c *dumpCmd) Run(ctx context.Context, inv *invocation) error {
	switch {
	case c.Compare && (len(c.Files) != 2 || c.IDs != "" || c.Out != ""):
		return usagef("--compare takes two files, and neither --ids nor --out")
	case c.Compare && !(c.Tolerance >= 0):
		return usagef("--tolerance %v: must be 0 or more", c.Tolerance)
	case c.Compare:
		return c.compare(inv)
	case len(c.Files) > 0:
		return usagef("unexpected %s; two files are compared with --compare", c.Files[0])
	case c.IDs == "" || c.Out == "":
		return usagef("give --ids FILE and --out FILE, or --compare and two files")
	}
	prompts, err := c.readPrompts(inv, c.IDs, c.Out)
	if err != nil {
		return err
	}
	return c.withTokens(ctx, inv, func(s *session) error { return c.dump(ctx, inv, s, prompts) })
}

func (c *dumpCmd) dump(ctx context.Context, inv *invocation, s *session, prompts []eval.Prompt) error {
	layers, err := dump.ParseLayers(c.Layers, len(s.engine.Model().Layers))
	if err != nil {
		return usage(err)
	}
	names, _, err := checkPrompts(c.IDs, prompts, s.engine.Model().VocabSize)
	if err != nil {
		return err
	}
	bar := newProgress(inv)
	defer bar.clear()
	tensors, err := dump.Text(ctx, s.engine, s.span, prompts, dump.Options{Layers: layers, OneByOne: c.OneByOne}, bar.of("dump"))
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
	inv.say("wrote %s of %s to %s", counted(len(tensors), "tensor"), counted(len(prompts), "prompt"), c.Out)
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
