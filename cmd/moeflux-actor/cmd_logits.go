package main

import (
	"context"
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/eval"
	"github.com/moeflux/moeflux-actor/io/safetensors"
)

type logitsCmd struct {
	IDs     string `name:"ids" required:"" placeholder:"FILE" help:"A JSON file with an object of name to list of token ids; - for stdin."`
	Out     string `required:"" placeholder:"FILE" help:"The safetensors file to write. It appears complete or not at all."`
	Hidden  bool   `help:"Also write P.hidden F32 [layers+1, T, hidden]."`
	Routing bool   `help:"Also write P.router_idx I32 and P.router_weight F32 [moe layers, T, k], heaviest first."`
	Decode  int    `placeholder:"N" help:"Also decode N ids greedily: P.decode_ids I32 [N] and P.decode_logits F32 [N, vocab]."`
	JSON    bool   `name:"json" help:"Print one JSON object: out, names, tokens."`

	engineFlags `group:"Engine:"`
}

// Run computes and writes the file.
func (c *logitsCmd) Run(ctx context.Context, inv *invocation) error {
	if c.Decode < 0 {
		return usagef("--decode %d: must be 0 or more", c.Decode)
	}
	prompts, err := c.readPrompts(inv, c.IDs, c.Out)
	if err != nil {
		return err
	}
	return c.withTokens(ctx, inv, func(s *session) error { return c.logits(ctx, inv, s, prompts) })
}

// readPrompts checks the flags of the engine and the output, and reads the ids.
func (e *engineFlags) readPrompts(inv *invocation, ids, out string) ([]eval.Prompt, error) {
	if err := e.check(); err != nil {
		return nil, err
	}
	if err := checkOutput(out); err != nil {
		return nil, err
	}
	data, err := readInput(inv, ids)
	if err != nil {
		return nil, fmt.Errorf("the ids cannot be read: %w", err)
	}
	prompts, err := eval.ParsePrompts(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ids, err)
	}
	return prompts, nil
}

func (c *logitsCmd) logits(ctx context.Context, inv *invocation, s *session, prompts []eval.Prompt) error {
	var names []string
	tokens := 0
	for _, p := range prompts {
		if err := eval.CheckVocab(p.IDs, s.engine.Model().VocabSize); err != nil {
			return fmt.Errorf("%s: the ids of %q: %w", c.IDs, p.Name, err)
		}
		names, tokens = append(names, p.Name), tokens+len(p.IDs)+c.Decode
	}
	bar := newProgress(inv)
	defer bar.clear()
	tensors, err := eval.Logits(ctx, s.engine, s.span, prompts, eval.LogitsOptions{Hidden: c.Hidden, Routing: c.Routing, Decode: c.Decode}, bar.of("logits"))
	if err != nil {
		return err
	}
	bar.clear()
	if err := safetensors.WriteFile(c.Out, tensors, nil); err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(inv.stdout, map[string]any{"out": c.Out, "names": names, "tokens": tokens})
	}
	inv.say("wrote %s of %s to %s", counted(len(tensors), "tensor"), counted(len(prompts), "prompt"), c.Out)
	return nil
}
