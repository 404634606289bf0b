package main

import (
	"context"
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/eval"
	"github.com/moeflux/moeflux-actor/internal/figures"
	"github.com/moeflux/moeflux-actor/internal/flags"
	"github.com/moeflux/moeflux-actor/internal/process"
	"github.com/moeflux/moeflux-actor/io/safetensors"
)

type logitsCmd struct {
	IDs     string `name:"ids" required:"" placeholder:"FILE" help:"A JSON file with an object of name to list of token ids; - for stdin."`
	Out     string `required:"" placeholder:"FILE" help:"The safetensors file to write. It appears complete or not at all."`
	Hidden  bool   `help:"Also write P.hidden F32 [layers+1, T, hidden]."`
	Routing bool   `help:"Also write P.router_idx I32 and P.router_weight F32 [moe layers, T, k], heaviest first."`
	Decode  int    `placeholder:"N" help:"Also decode N ids greedily: P.decode_ids I32 [N] and P.decode_logits F32 [N, vocab]."`
	JSON    bool   `name:"json" help:"Print one JSON object: out, names, tokens."`

	flags.Engine `group:"Engine:"`
}

// Run computes and writes the file.
func (c *logitsCmd) Run(ctx context.Context, inv *process.Invocation) error {
	if c.Decode < 0 {
		return process.Usagef("--decode %d: must be 0 or more", c.Decode)
	}
	prompts, err := readPrompts(inv, &c.Engine, c.IDs, c.Out)
	if err != nil {
		return err
	}
	return c.WithTokens(ctx, inv, func(s *flags.Opened) error { return c.logits(ctx, inv, s, prompts) })
}

// readPrompts checks the flags of the engine and the output, and reads the ids.
func readPrompts(inv *process.Invocation, e *flags.Engine, ids, out string) ([]eval.Prompt, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	if err := process.CheckOutput(out); err != nil {
		return nil, err
	}
	data, err := process.ReadInput(inv, ids)
	if err != nil {
		return nil, fmt.Errorf("the ids cannot be read: %w", err)
	}
	prompts, err := eval.ParsePrompts(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ids, err)
	}
	return prompts, nil
}

func (c *logitsCmd) logits(ctx context.Context, inv *process.Invocation, s *flags.Opened, prompts []eval.Prompt) error {
	var names []string
	tokens := 0
	for _, p := range prompts {
		if err := eval.CheckVocab(p.IDs, s.Engine.Model().VocabSize); err != nil {
			return fmt.Errorf("%s: the ids of %q: %w", c.IDs, p.Name, err)
		}
		names, tokens = append(names, p.Name), tokens+len(p.IDs)+c.Decode
	}
	bar := process.NewProgress(inv)
	defer bar.Clear()
	tensors, err := eval.Logits(ctx, s.Engine, s.Span, prompts, eval.LogitsOptions{Hidden: c.Hidden, Routing: c.Routing, Decode: c.Decode}, bar.Of("logits"))
	if err != nil {
		return err
	}
	bar.Clear()
	if err := safetensors.WriteFile(c.Out, tensors, nil); err != nil {
		return err
	}
	if c.JSON {
		return process.WriteJSON(inv.Stdout, map[string]any{"out": c.Out, "names": names, "tokens": tokens})
	}
	inv.Say("wrote %s of %s to %s", figures.Counted(len(tensors), "tensor"), figures.Counted(len(prompts), "prompt"), c.Out)
	return nil
}
