package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/model/quant"
)

type convertCmd struct {
	Src        string `arg:"" name:"SRC" help:"The checkpoint directory: Hugging Face bf16, f16, f32, block-scaled fp8 or packed int4, or MLX. Or a packed model directory, to change its --layout."`
	Dst        string `arg:"" name:"DST" help:"The packed model directory to make. It appears once it is complete."`
	Bits       int    `default:"0" placeholder:"B" help:"Quantises matrices that are not quantised yet, in groups of 64: 4 or 8; 0 keeps them. Fewer bits are smaller, faster and less exact."`
	ExpertBits int    `default:"0" placeholder:"B" help:"As --bits, for the routed experts: 2, 4 or 8; 0 is as --bits. It also quantises again what has more bits. Two bits halve what is read from disk once more and cost much exactness."`
	Layout     string `placeholder:"NAME" help:"How quantised matrices are stored: panels (16 rows together, what the kernels read fastest) or rows (as moeflux and flash-moe read them). The numbers are the same. Default: panels."`
	JSON       bool   `name:"json" help:"Print one JSON object at the end: dst, seconds."`
}

// Help is shown by --help.
func (convertCmd) Help() string {
	return `Example:

    moeflux-actor convert ~/checkpoints/Qwen3.5-35B-A3B-4bit ~/models/qwen3.5-35b
    moeflux-actor convert --bits 4 ~/checkpoints/Qwen3.5-35B-A3B ~/models/qwen3.5-35b
    moeflux-actor convert --layout rows ~/checkpoints/Qwen3.5-35B-A3B-4bit ~/models/for-moeflux
    moeflux-actor convert --expert-bits 2 ~/checkpoints/Qwen3.5-397B-A17B-4bit ~/models/qwen3.5-397b-2bit
    moeflux-actor convert --layout rows ~/models/qwen3.5-35b ~/models/for-moeflux

The last takes a packed directory and gives what its checkpoint would have given. Other bits cannot be made of it without loss, and are
refused; its checksums, if it has any, are held against what is read.

An interrupted conversion goes on where it stopped when the same command is given again.`
}

// parseLayout returns whether --layout asks for rows; "" is the default.
func parseLayout(name string) (rowOrder bool, err error) {
	layout := quant.Panels
	if name != "" && layout.UnmarshalText([]byte(name)) != nil {
		return false, usagef("--layout %q, want panels or rows", name)
	}
	return layout == quant.Rows, nil
}

// Run converts.
func (c *convertCmd) Run(ctx context.Context, inv *invocation) error {
	if c.Bits != 0 && c.Bits != 4 && c.Bits != 8 {
		return usagef("--bits %d, want 4 or 8, or 0 to keep matrices as they are", c.Bits)
	}
	if b := c.ExpertBits; b != 0 && b != 2 && b != 4 && b != 8 {
		return usagef("--expert-bits %d, want 2, 4 or 8, or 0 for that of --bits", b)
	}
	rowOrder, err := parseLayout(c.Layout)
	if err != nil {
		return err
	}
	begin := inv.env.now()
	bar := newProgress(inv)
	err = convert.Convert(ctx, c.Src, c.Dst, convert.Options{
		Bits:       c.Bits,
		ExpertBits: c.ExpertBits,
		RowOrder:   rowOrder,
		Progress: func(p convert.Progress) {
			if p.Warning != "" {
				bar.clear()
				inv.say("%s", p.Warning)
			}
			bar.update(p.Step, p.Done, p.Total, formatBytes)
		},
	})
	bar.clear()
	if err != nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
		inv.say("interrupted; what is done is kept, give the same command again to go on")
		return errInterrupted
	}
	if err != nil {
		return err
	}
	seconds := inv.env.now().Sub(begin).Seconds()
	if c.JSON {
		return writeJSON(inv.stdout, map[string]any{"dst": c.Dst, "seconds": seconds})
	}
	_, err = fmt.Fprintf(inv.stdout, "%s is complete after %.0f s; run it with %s run --model %s -p TEXT\n", c.Dst, seconds, program, c.Dst)
	return err
}
