package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/io/convert"
	"github.com/moeflux/moeflux-actor/io/weights"
	"github.com/moeflux/moeflux-actor/model/quant"
)

type convertCmd struct {
	Src string `arg:"" name:"SRC" help:"The checkpoint directory: Hugging Face bf16, f16, f32, FP8, NVFP4, MXFP4, packed int4 of compressed-tensors, AWQ or GPTQ, or MLX. Or a GGUF file, or any of the files that one model is in. Or a packed model directory, to change its --layout."`
	Dst string `arg:"" name:"DST" help:"The packed model directory to make. It appears once it is complete."`
	conversionFlags
	JSON bool `name:"json" help:"Print one JSON object at the end: dst, seconds."`
}

// conversionFlags say how checkpoints become packed models.
type conversionFlags struct {
	Bits       int    `default:"0" placeholder:"B" help:"Quantise matrices that are not quantised yet or are FP8, in groups of 64, to 4 or 8 bits; 0 keeps them as they are. Fewer bits are smaller, faster and less exact."`
	ExpertBits int    `default:"0" placeholder:"B" help:"Quantise routed experts to 2, 4 or 8 bits, even those that are quantised to more bits already; 0 means as --bits says. Two bits halve disk reads again compared with four, at a considerable loss of quality."`
	Layout     string `placeholder:"NAME" help:"How quantised matrices are stored: panels (16 rows together, which the kernels read fastest) or rows (as moeflux and flash-moe read them). The numbers are the same. Default: panels."`
}

// options returns what the flags say.
func (c *conversionFlags) options() (convert.Options, error) {
	if c.Bits != 0 && c.Bits != 4 && c.Bits != 8 {
		return convert.Options{}, process.Usagef("--bits %d: must be 4 or 8, or 0 to keep matrices as they are", c.Bits)
	}
	if b := c.ExpertBits; b != 0 && b != 2 && b != 4 && b != 8 {
		return convert.Options{}, process.Usagef("--expert-bits %d: must be 2, 4 or 8, or 0 for that of --bits", b)
	}
	rowOrder, err := parseLayout(c.Layout)
	return convert.Options{Bits: c.Bits, ExpertBits: c.ExpertBits, RowOrder: rowOrder}, err
}

// parseLayout returns whether --layout asks for rows; "" is the default.
func parseLayout(name string) (rowOrder bool, err error) {
	layout := quant.Panels
	if name != "" && layout.UnmarshalText([]byte(name)) != nil {
		return false, process.Usagef("--layout %q is unknown; available: panels, rows", name)
	}
	return layout == quant.Rows, nil
}

// Run converts.
func (c *convertCmd) Run(ctx context.Context, inv *process.Invocation) error {
	o, err := c.options()
	if err != nil {
		return err
	}
	begin := inv.Env.Now()
	bar := process.NewProgress(inv)
	o.Progress = func(p convert.Progress) {
		if p.Warning != "" {
			bar.Clear()
			inv.Say("%s", p.Warning)
		}
		bar.Update(p.Step, p.Done, p.Total, figures.Bytes)
	}
	err = convert.Convert(ctx, c.Src, c.Dst, o)
	bar.Clear()
	if err != nil {
		return resumable(ctx, inv, err)
	}
	seconds := inv.Env.Now().Sub(begin).Seconds()
	if c.JSON {
		return process.WriteJSON(inv.Stdout, map[string]any{"dst": c.Dst, "seconds": seconds})
	}
	return sayComplete(inv, c.Dst, seconds)
}

// sayComplete says what a packed directory that was made is good for.
func sayComplete(inv *process.Invocation, dir string, seconds float64) error {
	use := fmt.Sprintf("run it with %s run --model %s -p TEXT", process.Program, dir)
	if _, ok := weights.TextDir(dir); !ok {
		use = "it has no tokenizer, so it takes token ids alone, as logits and eval do"
	}
	_, err := fmt.Fprintf(inv.Stdout, "%s is complete after %.0f s; %s\n", dir, seconds, use)
	return err
}

// resumable returns what the error of a command is that goes on where it was interrupted, and says
// so.
func resumable(ctx context.Context, inv *process.Invocation, err error) error {
	if ctx.Err() == nil || !errors.Is(err, context.Canceled) {
		return err
	}
	inv.Say("interrupted; give the same command again to go on from here")
	return process.ErrInterrupted
}
